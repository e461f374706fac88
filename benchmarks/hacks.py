"""Which detector catches which hack: the corpus of ``tests/hacks``, beside format checks alone.

``python -m benchmarks.hacks [--device cuda] [--quick] [--kernelbench SRC]`` in a checkout writes
``benchmarks/results/hacks_cpu.json`` or ``hacks_cuda.json``; ``--table`` writes ``hacks.md`` from what is
there.  On a GPU the modules, the ``.cu`` files and the honest kernels are judged there, without the emulator.
SRC is the ``src`` folder of a KernelBench checkout, for the column of its static checker.
"""

import argparse
import asyncio
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import provenance
from benchmarks.format_checks import results_of_library, results_of_module, text_checker
from benchmarks.hacks_table import written
from stitch_tui.tools.build import build_cuda
from stitch_tui.tools.gpu import devices
from stitch_tui.tools.screen import screen_source
from tests.hacks import judging
from tests.hacks.table import CASES, HACKS, Case, Run
from tests.honest.kernels import HONEST, Honest
from tests.honest.kernels import MODEL as HONEST_MODEL

Row = dict[str, Any]
Checker = Callable[[str, str], str]
JUDGES = 6
"""Side by side on a GPU."""
TIMED = ("32_hidden_zero_times", "33_background")
"""What only a timing shows."""
ON_GPU = (Run.MODULE, Run.EMULATOR, Run.GPU)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave out Python modules and the emulator")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--kernelbench", type=Path)
    parser.add_argument("--seconds", type=float, default=270.0, help="for the GPU's candidates together")
    parser.add_argument("--every", type=int, default=1, help="judge every so manyeth honest kernel on a GPU")
    parser.add_argument("--table", action="store_true", help="only write hacks.md")
    options = parser.parse_args()
    if not options.table:
        checker = text_checker(options.kernelbench) if options.kernelbench else _unchecked
        output = provenance.RESULTS / f"hacks_{options.device}.json"
        if options.device == "cuda":
            on_gpu(output, checker, options.seconds, HONEST[:: options.every])
        else:
            on_cpu(output, checker, quick=options.quick)
    written(provenance.RESULTS)


def _unchecked(text: str, suffix: str) -> str:
    return "not run"


def on_cpu(output: Path, checker: Checker, *, quick: bool) -> None:
    """One candidate after the other; written each time: the emulator's come last and take minutes."""
    started, rows = time.monotonic(), list[Row]()
    for row in judged(quick=quick, checker=checker):
        rows.append(row)
        stored(output, table(rows, honest_texts(checker), provenance.processor(), started))


def judged(*, quick: bool, checker: Checker) -> Iterator[Row]:
    """A row for each candidate that runs here."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        courts = Courts(folder, "cpu")
        for case in sorted(CASES, key=lambda case: list(Run).index(case.run)):
            if case.run is Run.GPU or (quick and case.run in (Run.MODULE, Run.EMULATOR)):
                continue
            if case.run is Run.SCREEN:
                found = judging.screened(case)
            elif case.run is Run.HOST:
                found = judging.hosted(case.number, folder)
            else:
                found = courts.carry(case)
            results = results_of(case, folder, courts)
            yield row_of(case, found, results, checker)
        courts.close()


def results_of(case: Case, folder: Path, courts: "Courts") -> str:
    """What ``allclose`` alone says."""
    if case.run is Run.HOST:
        return results_of_library(case.number, folder)
    path = judging.path_of(case)
    if path.suffix == ".py" and case.run in (Run.MODULE, Run.GPU):
        return results_of_module(path, courts.of(case.name).folder, courts.device)
    return "not run"


class Courts:
    """A judge for each reference, opened when first asked for."""

    def __init__(self, folder: Path, device: str) -> None:
        self.folder, self.device = folder, device
        self._open: dict[str, judging.Court] = {}

    def of(self, name: str, model: str = "") -> judging.Court:
        text = model or judging.MODELS.get(name, judging.MODEL)
        if text not in self._open:
            self._open[text] = judging.Court(self.folder / f"court_{len(self._open)}", text, self.device)
        return self._open[text]

    def carry(self, case: Case) -> judging.Found:
        court, path = self.of(case.name), judging.path_of(case)
        if case.name == "22_pinned":
            return court.pinned(path)
        timed = case.name in TIMED
        return (
            court.module(path, time_it=timed) if path.suffix == ".py" else court.kernel(path, time_it=timed)
        )

    def close(self) -> None:
        for court in self._open.values():
            court.close()


def on_gpu(output: Path, checker: Checker, seconds: float, programs: Sequence[Honest]) -> None:
    """Those that are timed alone first, the others on a few judges side by side, at last honest kernels."""
    started, rows, honest = time.monotonic(), list[Row](), dict[str, str]()
    device, texts, saving = str(devices()[0]), honest_texts(checker), threading.Lock()

    def save() -> None:
        """What there is so far: a slow machine may end the run."""
        with saving:
            ordered = sorted(rows, key=lambda row: (row["hack"], row["candidate"]))
            result = table(ordered, texts, device, started, ran=ON_GPU)
            result["honest"]["judged"] = len(honest)
            result["honest"]["falsely_rejected"] = {n: s for n, s in dict(honest).items() if s != "correct"}
            stored(output, result)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = honest_sources(folder, programs)
        asyncio.run(prebuilt(folder, list(sources.values())))
        print(f"built at {time.monotonic() - started:.0f} s", flush=True)
        cases = [case for case in CASES if case.run in ON_GPU]
        alone = [case for case in cases if case.name in (*TIMED, "22_pinned", "33_hoard")]
        shared: list[Case | Honest] = [case for case in cases if case not in alone]
        shared += programs

        def work(share: Sequence[Case | Honest], number: int) -> None:
            own = folder / f"judge_{number}"
            own.mkdir()
            courts = Courts(own, "cuda:0")
            for item in share:
                if time.monotonic() - started > seconds:
                    break
                if isinstance(item, Case):
                    found = courts.carry(item)
                    rows.append(row_of(item, found, results_of(item, own, courts), checker))
                else:
                    court = courts.of("", HONEST_MODEL)
                    honest[item.name] = said(court.kernel(sources[item.name], item.output))
                save()
            courts.close()

        work(alone, JUDGES)
        with ThreadPoolExecutor(JUDGES) as pool:
            for done in [pool.submit(work, shared[n::JUDGES], n) for n in range(JUDGES)]:
                done.result()


def said(found: judging.Found) -> str:
    return "correct" if found.category == "correct" else f"{found.category}: {found.message[:200]}"


def honest_sources(folder: Path, programs: Sequence[Honest]) -> dict[str, Path]:
    paths = {}
    for number, program in enumerate(programs):
        paths[program.name] = folder / f"honest_{number:02}.cu"
        paths[program.name].write_text(program.source)
    return paths


async def prebuilt(folder: Path, sources: Sequence[Path]) -> None:
    """nvcc over every honest kernel, as many at once as memory allows; the verdicts find them built."""
    gpu, toolkit = devices()[0], await judging.find_toolkit()
    jobs = [
        build_cuda(s, arch=gpu.arch, toolkit=toolkit, cache=folder / "builds", timeout=180) for s in sources
    ]
    await asyncio.gather(*jobs)


def row_of(case: Case, found: judging.Found, results: str, checker: Checker) -> Row:
    caught = found.catches(case)
    text = "not run"
    if case.run is not Run.HOST:
        path = judging.path_of(case)
        text = checker(path.read_text(encoding="utf-8"), path.suffix)
    print(
        f"{case.number:2} {case.run:9} {case.name:22} {found.category:18} {'' if caught else 'MISSED'}",
        flush=True,
    )
    return {
        "hack": case.number,
        "what": HACKS[case.number],
        "candidate": case.name or "native",
        "detector": case.run,
        "category": found.category,
        "evidence": found.message[:300] or "; ".join(found.questions)[:300],
        "caught": caught,
        "format_checks": results,
        "text_checks": text,
    }


def honest_texts(checker: Checker) -> dict[str, list[str]]:
    """Honest programs that a look at their text rejects: ours, and KernelBench's static checker."""
    ours = [p.name for p in HONEST if screen_source(p.source, "honest.cu").evidence]
    theirs = [p.name for p in HONEST if checker(p.source, ".cu").startswith("rejected")]
    return {"screen": ours, "text_checks": theirs}


def table(
    rows: Sequence[Row],
    rejected: dict[str, list[str]],
    device: str,
    started: float,
    ran: Sequence[Run] = tuple(r for r in Run if r is not Run.GPU),
) -> dict[str, Any]:
    """The results so far."""
    run = {(row["hack"], row["candidate"], row["detector"]) for row in rows}
    return {
        "benchmark": "hacks",
        "commit": provenance.commit(),
        "device": device,
        "versions": provenance.versions("torch"),
        "seconds": round(time.monotonic() - started, 1),
        "candidates": len(rows),
        "not_run": [
            f"{case.number} {case.name or 'native'} ({case.run})"
            for case in CASES
            if case.run in ran and (case.number, case.name or "native", case.run) not in run
        ],
        "missed": [row for row in rows if not row["caught"]],
        "hacks_caught": sorted({row["hack"] for row in rows if row["caught"]}),
        "passed_by_format_checks_alone": sorted({r["hack"] for r in rows if r["format_checks"] == "passed"}),
        "honest": {
            "programs": len(HONEST),
            "falsely_rejected_by_the_screen": rejected["screen"],
            "falsely_rejected_by_text_checks": rejected["text_checks"],
        },
        "rows": list(rows),
    }


def stored(output: Path, result: dict[str, Any]) -> None:
    output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
