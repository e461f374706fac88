"""Which detector catches which hack: the corpus of ``tests/hacks``, beside format checks alone.

``python -m benchmarks.hacks [--quick]`` in a checkout writes ``benchmarks/results/hacks_cpu.json``.  The
column ``format_checks`` is KernelBench's rule on the task's own inputs: shape and ``allclose`` in five calls.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import provenance
from stitch_tui.tools.screen import screen_source
from stitch_tui.tools.worker.candidate_fault import CandidateFault
from stitch_tui.tools.worker.checking import border_of
from stitch_tui.tools.worker.numerics import kernelbench_rule
from stitch_tui.tools.worker.rig import Launch, Rig
from tests.hacks import judging
from tests.hacks.table import CASES, ELSEWHERE, HACKS, Case, Run
from tests.honest.kernels import HONEST

CALLS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out Python modules and the emulator")
    parser.add_argument("--output", type=Path, default=provenance.RESULTS / "hacks_cpu.json")
    options = parser.parse_args()
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    for row in judged(quick=options.quick):
        rows.append(row)
        # Written each time: the emulator's candidates come last and take minutes.
        text = json.dumps(table(rows, time.monotonic() - started), indent=1)
        options.output.write_text(text + "\n", encoding="utf-8")


def table(rows: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """The results so far."""
    run = {(row["hack"], row["candidate"], row["detector"]) for row in rows}
    accused = [program.name for program in HONEST if screen_source(program.source, "honest.cu").evidence]
    return {
        "commit": provenance.commit(),
        "device": provenance.processor(),
        "versions": provenance.versions("torch"),
        "seconds": round(seconds, 1),
        "candidates": len(rows),
        "not_run": [
            f"{case.number} {case.name or 'native'} ({case.run})"
            for case in CASES
            if (case.number, case.name or "native", case.run) not in run
        ],
        "elsewhere": {str(number): why for number, why in ELSEWHERE.items()},
        "missed": [row for row in rows if not row["caught"]],
        "hacks_caught": sorted({row["hack"] for row in rows if row["caught"]}),
        "passed_by_format_checks_alone": sorted({r["hack"] for r in rows if r["format_checks"] == "passed"}),
        "honest": {"programs": len(HONEST), "falsely_rejected_by_the_screen": accused},
        "rows": rows,
    }


def judged(*, quick: bool) -> Iterator[dict[str, Any]]:
    """A row for each candidate that runs here."""
    with tempfile.TemporaryDirectory() as folder:
        court = None if quick else judging.Court(Path(folder))
        for case in sorted(CASES, key=lambda case: list(Run).index(case.run)):
            if case.run is Run.GPU or (court is None and case.run in (Run.MODULE, Run.EMULATOR)):
                continue
            found = carried(case, Path(folder), court)
            print(f"{case.number:2} {case.run:9} {found.category}", flush=True)
            yield {
                "hack": case.number,
                "what": HACKS[case.number],
                "candidate": case.name or "native",
                "detector": case.run,
                "category": found.category,
                "evidence": found.message[:300] or "; ".join(found.questions)[:300],
                "caught": found.catches(case),
                "format_checks": format_checks(case, Path(folder)),
            }
        if court:
            court.close()


def carried(case: Case, folder: Path, court: judging.Court | None) -> judging.Found:
    if case.run is Run.SCREEN:
        return judging.screened(case)
    if case.run is Run.HOST:
        return judging.hosted(case.number, folder)
    assert court
    if case.number == 28:
        own = folder / "dropout"
        own.mkdir(exist_ok=True)
        court = judging.Court(own, judging.DROPOUT)
    if case.run is Run.MODULE:
        return court.module(judging.path_of(case))
    return court.kernel(judging.path_of(case))


class Trusting(Rig):
    """A rig that looks at results only: not at inputs, guard zones, threads or late writes."""

    def _search(self, tensors: Any) -> None:
        pass

    def _left_running(self) -> None:
        pass

    def _late_writes(self) -> None:
        pass


def format_checks(case: Case, folder: Path) -> str:
    """What ``allclose`` on the task's inputs says of a native candidate; others are not run so."""
    if case.run is not Run.HOST:
        return "not run"
    target = judging.LinearAndSums()
    library = folder / f"hack_{case.number}.so"
    argv = (sys.executable, str(judging.BOOT), "runner", "host")
    rig = Trusting(border_of(target), Launch(argv, load=str(library), deadline_s=10.0))
    try:
        for seed in range(CALLS):
            tensors = target.draw("full", seed)
            own = target.evaluate(tensors, "own")
            if seed == 0:
                rig.place(tensors, own)
                rig.bind(tensors)
            got, _ = rig.run(tensors)
            if not all(map(kernelbench_rule, got, own)):
                return "rejected"
    except CandidateFault as fault:
        return f"ended: {fault.message[:80]}"
    finally:
        rig.close()
    return "passed"


if __name__ == "__main__":
    main()
