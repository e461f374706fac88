"""The corpus of hacks on a GPU: the least known first, several judges side by side."""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock, get_ident
from typing import Any

from benchmarks.hacks_rows import Answers, Checker, Courts, honest_texts, results_of, row_of, text_of
from stitch_tui.tools.build import build_cuda
from stitch_tui.tools.errors import StitchError
from stitch_tui.tools.gpu import devices
from tests.hacks import judging
from tests.hacks.table import CASES, Case, Run
from tests.honest.kernels import Honest

JUDGES = 8
"""Side by side: each holds half a GiB of the device and a core or two."""
ALONE = ("22_pinned", "33_hoard")
"""Nothing else may run beside: one compares times, one takes all memory."""
ALONE_SECONDS = 60.0
"""Kept free for those."""
ON_GPU = tuple(run for run in Run if run is not Run.HOST)
"""``device.cu`` has what a library's hacks can do on a device."""


def on_gpu(
    output: Path, checker: Checker, seconds: float, programs: Sequence[Honest], *, missing: bool
) -> None:
    """Hacks side by side, those that must be alone, then honest kernels; until `seconds` are over.

    Args:
        missing: only what has no answer for its present text.
    """
    answers = Answers(output, str(devices()[0]), ON_GPU, honest_texts(checker))
    end = time.monotonic() + seconds
    cases = ordered([c for c in CASES if c.run in ON_GPU and answers.wanted(c, missing=missing)], answers)
    alone = [case for case in cases if case.name in ALONE]
    shared = [case for case in cases if case not in alone]
    honest = sorted((p for p in programs if answers.wanted(p, missing=missing)), key=answers.known)
    print(f"{len(cases)} candidates, {len(honest)} honest kernels", flush=True)
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(JUDGES + 1) as pool:
        folder = Path(name)
        bench = Benches(folder)
        asyncio.run(prebuilt(folder / "hacks", [c for c in shared if judging.path_of(c).suffix == ".cu"]))
        print(f"built with {end - time.monotonic():.0f} s left", flush=True)
        building = pool.submit(lambda: asyncio.run(prebuilt(folder / "honest", honest)))

        def hack(case: Case) -> None:
            started, courts = time.monotonic(), bench.own()
            found = courts.carry(case)
            taken = time.monotonic() - started
            results = answers.format_checks(case) or results_of(case, courts.folder, courts)
            answers.of_case(case, row_of(case, found, results, checker, taken))

        def program(item: Honest) -> None:
            found = bench.own().honest(item)
            print(f"   honest    {item.name[:44]:44} {found.category}", flush=True)
            answers.of_program(item, found)

        last = end - ALONE_SECONDS if alone else end
        for done in [pool.submit(by, last, hack, case) for case in shared]:
            done.result()
        building.result()
        for case in alone:
            pool.submit(by, end, hack, case).result()
        for done in [pool.submit(by, end, program, item) for item in honest]:
            done.result()
        bench.close()


def by(end: float, action: Callable[[Any], None], item: Case | Honest) -> None:
    """`action` on an item unless the time is over; what the machine keeps from being judged stays open."""
    if time.monotonic() > end:
        return
    try:
        action(item)
    except StitchError as error:
        print(f"not judged: {error}", flush=True)


def ordered(cases: Sequence[Case], answers: Answers) -> list[Case]:
    """The least known first, and of those one of each hack before another of the same."""
    seen: Counter[tuple[int, int]] = Counter()
    ranks = []
    for case in cases:
        known = answers.known(case)
        ranks.append((known, seen[known, case.number], case.number))
        seen[known, case.number] += 1
    return [case for _, case in sorted(zip(ranks, cases, strict=True), key=lambda pair: pair[0])]


class Benches:
    """Courts for each thread: the kernel ends a process with the thread that started it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._adding = folder, Lock()
        self._courts: dict[int, Courts] = {}

    def own(self) -> Courts:
        with self._adding:
            if (thread := get_ident()) not in self._courts:
                own = self._folder / f"judge_{len(self._courts)}"
                own.mkdir()
                self._courts[thread] = Courts(own, "cuda:0", self._folder / "builds")
            return self._courts[thread]

    def close(self) -> None:
        for courts in self._courts.values():
            courts.close()


async def prebuilt(folder: Path, items: Sequence[Case | Honest]) -> None:
    """nvcc over every ``.cu``, as many at once as memory allows; the verdicts find them built."""
    folder.mkdir()
    gpu, toolkit = devices()[0], await judging.find_toolkit()
    jobs = []
    for number, item in enumerate(items):
        source = folder / f"candidate_{number:03}.cu"
        source.write_text(text_of(item))
        jobs.append(
            build_cuda(source, arch=gpu.arch, toolkit=toolkit, cache=folder.parent / "builds", timeout=180)
        )
    await asyncio.gather(*jobs)
