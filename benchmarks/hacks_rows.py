"""Rows of the benchmark of hacks: candidates carried through a court, and their answers kept in a file."""

import contextlib
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import provenance
from benchmarks.format_checks import results_of_library, results_of_module
from stitch_tui.tools.errors import StitchError
from stitch_tui.tools.screen import screen_source
from tests.hacks import judging
from tests.hacks.table import CASES, HACKS, Case, Run
from tests.honest.kernels import HONEST, Honest
from tests.honest.kernels import MODEL as HONEST_MODEL

Row = dict[str, Any]
Checker = Callable[[str, str], str]
Key = tuple[int, str, str]
TIMED = ("06_timed_replay", "07_ahead", "32_hidden_zero_times", "33_background")
"""What only a timing shows."""
NEVER, UNSHOWN, OLDER, DONE = range(4)
"""How much is known of a candidate: nothing of its present text, or it got through; no evidence was kept;
an answer at another commit; at this one."""


def text_of(item: Case | Honest) -> str:
    """The candidate's text, as the Verifier gets it."""
    if isinstance(item, Honest):
        return item.source
    if item.run is Run.DEVICE:
        return judging.device_source(item.number)
    return judging.path_of(item).read_text(encoding="utf-8")


def digest(item: Case | Honest) -> str:
    """By which an answer about it is known again: the candidate's text and its reference's."""
    model = "" if isinstance(item, Honest) else judging.MODELS.get(item.name, judging.MODEL)
    return hashlib.sha256((text_of(item) + model).encode()).hexdigest()[:12]


def key_of(case: Case) -> Key:
    return case.number, case.title, str(case.run)


class Courts:
    """A judge for each reference, opened when first asked for.

    Args:
        builds: nvcc's, shared with other courts; None: of these alone.
    """

    def __init__(self, folder: Path, device: str, builds: Path | None = None) -> None:
        self.folder, self.device, self.builds = folder, device, builds
        self._open: dict[str, judging.Court] = {}
        self._count = 0

    def of(self, name: str, model: str = "") -> judging.Court:
        text = model or judging.MODELS.get(name, judging.MODEL)
        if text not in self._open:
            self._count += 1
            folder = self.folder / f"court_{self._count}"
            self._open[text] = judging.Court(folder, text, self.device, self.builds)
        return self._open[text]

    def carry(self, case: Case) -> judging.Found:
        """The verdict; on a judge that a candidate took along, once more on another."""
        try:
            return self._carried(case)
        except StitchError:
            self.close()
            return self._carried(case)

    def honest(self, program: Honest) -> judging.Found:
        path = self.folder / "honest.cu"
        path.write_text(program.source)
        return self.of("", HONEST_MODEL).kernel(path, program.output)

    def _carried(self, case: Case) -> judging.Found:
        court, path = self.of(case.name), judging.path_of(case)
        if case.name == "22_pinned":
            return court.pinned(path)
        if case.run is Run.DEVICE:
            return court.numbered(case.number)
        timed = case.name in TIMED
        if path.suffix == ".py":
            return court.module(path, time_it=timed, beside=case.beside)
        return court.kernel(path, time_it=timed)

    def close(self) -> None:
        while self._open:
            _, court = self._open.popitem()
            with contextlib.suppress(StitchError):
                court.close()


def results_of(case: Case, folder: Path, courts: Courts) -> str:
    """What ``allclose`` alone says."""
    if case.run is Run.HOST:
        return results_of_library(case.number, folder)
    path = judging.path_of(case)
    if path.suffix == ".py" and case.run in (Run.MODULE, Run.GPU):
        return results_of_module(path, courts.of(case.name).folder, courts.device)
    return "not run"


class Answers:
    """What is known of each candidate, kept in a file as it comes; each answer names its commit.

    Args:
        path: the result, read when it is there: a candidate that is not judged again keeps its answer.
        ran: the detectors of this device.
        texts: what a look at the honest programs' text alone rejects.
    """

    def __init__(self, path: Path, device: str, ran: Sequence[Run], texts: dict[str, list[str]]) -> None:
        self._path, self._device, self._ran, self._texts = path, device, ran, texts
        self._started, self._saving = time.monotonic(), threading.Lock()
        self._rows: dict[Key, Row] = {}
        self._honest: dict[str, Row] = {}
        if path.exists():
            self._read(json.loads(path.read_text()))

    def _read(self, before: Row) -> None:
        wanted = {key_of(case) for case in CASES if case.run in self._ran}
        for row in before["rows"]:
            key = (row["hack"], row["candidate"], row["detector"])
            if key in wanted:
                self._rows[key] = {"commit": before["commit"], "source": "", **row}
        names = {program.name for program in HONEST}
        kept = before["honest"].get("rows", [])
        self._honest = {row["program"]: row for row in kept if row["program"] in names}

    def known(self, item: Case | Honest) -> int:
        """How much: one of `NEVER`, `UNSHOWN`, `OLDER` and `DONE`."""
        if isinstance(item, Honest):
            row = self._honest.get(item.name)
            good, shown = row is not None and row["category"] == "correct", True
        else:
            row = self._rows.get(key_of(item))
            good, shown = bool(row and row["caught"]), bool(row and row["evidence"])
        if row is None or not good or row["source"] not in ("", digest(item)):
            return NEVER
        if not shown:
            return UNSHOWN
        return DONE if row["source"] and row["commit"] == provenance.commit() else OLDER

    def wanted(self, item: Case | Honest, *, missing: bool) -> bool:
        """Is it to be judged: always but when it was at this commit, or (`missing`) when nothing is known?"""
        known = self.known(item)
        return known == NEVER if missing else known != DONE

    def format_checks(self, case: Case) -> str:
        """Their answer about the same text, if there is one."""
        row = self._rows.get(key_of(case))
        same = row is not None and row["source"] == digest(case)
        return str(row["format_checks"]) if row and same else ""

    def of_case(self, case: Case, row: Row) -> None:
        with self._saving:
            self._rows[key_of(case)] = row
            self._save()

    def of_program(self, program: Honest, found: judging.Found) -> None:
        with self._saving:
            self._honest[program.name] = {
                "program": program.name,
                "category": found.category,
                "evidence": "" if found.category == "correct" else found.message[:300],
                "source": digest(program),
                "commit": provenance.commit(),
            }
            self._save()

    def _save(self) -> None:
        result = self.result()
        self._path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")

    def result(self) -> Row:
        """All of it, with its sums."""
        rows = [self._rows[key] for key in sorted(self._rows)]
        honest = [self._honest[name] for name in sorted(self._honest)]
        return {
            "benchmark": "hacks",
            "commit": provenance.commit(),
            "commits": dict(Counter(row["commit"] for row in rows).most_common()),
            "device": self._device,
            "versions": provenance.versions("torch"),
            "seconds": round(time.monotonic() - self._started, 1),
            "candidates": len(rows),
            "not_run": [
                f"{case.number} {case.title} ({case.run})"
                for case in CASES
                if case.run in self._ran and key_of(case) not in self._rows
            ],
            "missed": [row for row in rows if not row["caught"]],
            "hacks_caught": sorted({row["hack"] for row in rows if row["caught"]}),
            "passed_by_format_checks_alone": sorted(
                {row["hack"] for row in rows if row["format_checks"] == "passed"}
            ),
            "honest": {
                "programs": len(HONEST),
                "judged": len(honest),
                "falsely_rejected": {
                    row["program"]: row["evidence"] for row in honest if row["category"] != "correct"
                },
                "falsely_rejected_by_the_screen": self._texts["screen"],
                "falsely_rejected_by_text_checks": self._texts["text_checks"],
                "rows": honest,
            },
            "rows": rows,
        }


def row_of(case: Case, found: judging.Found, results: str, checker: Checker, seconds: float) -> Row:
    caught = found.catches(case)
    text = "not run"
    if case.run is not Run.HOST:
        path = judging.path_of(case)
        text = checker(path.read_text(encoding="utf-8"), path.suffix)
    print(
        f"{case.number:2} {case.run:9} {case.title:22} {found.category:18} {seconds:5.1f} s"
        f" {'' if caught else f'MISSED: {found.message[:200]}'}",
        flush=True,
    )
    return {
        "hack": case.number,
        "what": HACKS[case.number],
        "candidate": case.title,
        "detector": case.run,
        "category": found.category,
        "evidence": found.message[:300] or "; ".join(found.questions)[:300],
        "caught": caught,
        "format_checks": results,
        "text_checks": text,
        "seconds": round(seconds, 1),
        "source": digest(case),
        "commit": provenance.commit(),
    }


def honest_texts(checker: Checker) -> dict[str, list[str]]:
    """Honest programs that a look at their text rejects: ours, and KernelBench's static checker."""
    ours = [p.name for p in HONEST if screen_source(p.source, "honest.cu").evidence]
    theirs = [p.name for p in HONEST if checker(p.source, ".cu").startswith("rejected")]
    return {"screen": ours, "text_checks": theirs}
