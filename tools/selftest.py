"""``stitch selftest``: are the Verifier's verdicts right on this machine?  Known candidates, known answers.

A verdict is only as good as the machine that gave it: a compiler that drops a check, a kernel that refuses
confinement or a GPU whose clock jumps shows here, before anybody's work is judged.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools import launches, reference, scratch
from stitch_tui.tools.bench import Json, target_of
from stitch_tui.tools.build import build_cuda
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.gpu import CudaDevice, Device
from stitch_tui.tools.graph import Graph, region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.paths import cache_dir
from stitch_tui.tools.selftest_corpus import CORPUS, MODEL, Case, Kind, kernel
from stitch_tui.tools.timing import medians, speedup
from stitch_tui.tools.toolkit import find_toolkit
from stitch_tui.tools.verdict import Category, Verdict
from stitch_tui.tools.verification import Bench, Cuda, verify_program, verify_region

DEADLINE_S = 5.0
"""For one call of a candidate: they are tiny, and one of them never ends."""
TIMING_SECONDS = 120.0


@dataclass(frozen=True)
class Row:
    """What one candidate got."""

    kind: str
    name: str
    found: str
    good: bool
    seconds: float


async def selftest(
    device: Device, python: str = "", on_row: Callable[[Row], None] = lambda _: None
) -> list[Row]:
    """Judge the whole corpus; a row for each candidate as it comes.

    Args:
        python: the interpreter with torch; empty: this one.

    Raises:
        EnvironmentFault: nothing can be judged here: no compiler, no torch.
    """
    python = python or sys.executable
    rows: list[Row] = []

    def told(row: Row) -> None:
        rows.append(row)
        on_row(row)

    with scratch.folder("stitch-selftest-") as folder:
        (folder / "model.py").write_text(MODEL)
        cuda = await _cuda(device) if isinstance(device, CudaDevice) else None
        async with Judge(python, folder) as judge:
            options = reference.ReferenceOptions(path="model.py", device="cuda:0" if cuda else "cpu")
            await reference.open_reference(judge, options)
            graph = (await reference.graph(judge)).graph
            bench = Bench(judge, _emulator(cuda), python=python, cuda=cuda, deadline_s=DEADLINE_S)
            if cuda:
                await _built_ahead(cuda, folder)
            for case in CORPUS:
                told(await _judged(bench, graph, case, folder))
            if cuda:
                for row in await _timed(bench, graph, folder):
                    told(row)
    return rows


def passed(rows: Sequence[Row]) -> bool:
    return bool(rows) and all(row.good for row in rows)


async def _cuda(device: CudaDevice) -> Cuda:
    toolkit = await find_toolkit()
    toolkit.require_nvcc()
    return Cuda(device.name, device.arch, toolkit, cache_dir("builds"), uuid=device.uuid)


def _emulator(cuda: Cuda | None) -> Emulator | None:
    """On a GPU the emulator is an extra that a machine without a host compiler goes without."""
    if cuda is None:
        return Emulator(cache_dir("emulator"))
    with suppress(EnvironmentFault):
        return Emulator(cache_dir("emulator"))
    return None


async def _built_ahead(cuda: Cuda, folder: Path) -> None:
    """All kernels at once, as many as memory allows; the verdicts find them built."""
    sources = []
    for number, case in enumerate(case for case in CORPUS if case.suffix == ".cu"):
        sources.append(folder / f"ahead_{number}.cu")
        sources[-1].write_text(case.text)
    await asyncio.gather(*map(cuda.build, sources))


async def _judged(bench: Bench, graph: Graph, case: Case, folder: Path) -> Row:
    path = folder / f"candidate{case.suffix}"
    path.write_text(case.text)
    started = time.monotonic()
    if case.suffix == ".cu":
        verdict = await verify_region(bench, path, region_of(graph, graph.node), time_it=False)
    else:
        verdict = await verify_program(bench, path, small_shapes=True, time_it=False)
    good, words = _held_against(case, verdict, located=bench.emulator is not None)
    return Row(case.kind, case.name, words, good, time.monotonic() - started)


def _held_against(case: Case, verdict: Verdict, *, located: bool) -> tuple[bool, str]:
    """Is the verdict the one that the candidate must get, and in which words?"""
    wanted = case.categories or tuple(c for c in Category if c is not Category.CORRECT)
    if verdict.category not in wanted or verdict.category is Category.ENVIRONMENT:
        expected = " or ".join(case.categories) or "anything but correct"
        return False, f"{verdict.summary}; expected: {expected}"
    if case.line and located:
        lines, first = case.text.splitlines(), verdict.findings[0].line
        named = lines[first - 1] if 0 < first <= len(lines) else ""
        if case.line not in named:
            return False, f"{verdict.category} in line {first}, not where {case.line!r} stands"
        return True, f"{verdict.category} in line {first}"
    return True, str(verdict.category)


async def _timed(bench: Bench, graph: Graph, folder: Path) -> list[Row]:
    """One kernel against itself, and against one that does the same twice."""
    cuda = bench.cuda
    assert cuda
    started, runners = time.monotonic(), dict[str, Json]()
    twice = "if (at < rows * columns)\n    for (int r = 0; r < 400; r++) spare[at] = sqrtf(spare[at] + r);"
    for name, text in (("once", kernel()), ("twice", kernel(BEFORE=twice))):
        path = folder / f"{name}.cu"
        path.write_text(text)
        build = await build_cuda(path, arch=cuda.arch, toolkit=cuda.toolkit, cache=cuda.cache)
        runners[name] = launches.on_gpu(bench, build)
    params = {
        "target": target_of(region_of(graph, graph.node)),
        "runner": runners["once"],
        "rivals": {"again": runners["once"], "slower": runners["twice"]},
        "options": {"baselines": []},
    }
    report = await bench.judge.call("time", params, timeout=TIMING_SECONDS)
    if report["category"] != Category.CORRECT:
        message = report["findings"][0]["message"]
        return [Row("timing", "a kernel against itself", message, False, time.monotonic() - started)]
    own = medians(report["blocks"]["candidate"])
    rows = []
    for rival, name, wanted in (
        ("again", "a kernel against itself", "not distinguishable"),
        ("slower", "a kernel against a slower one", "faster"),
    ):
        words, good = "; ".join(report["unchecked"]), False
        if rival in report["blocks"]:
            found = speedup(medians(report["blocks"][rival]), own)
            words = f"{found.value:.3f}x [{found.low:.3f}, {found.high:.3f}], {found.verdict}"
            good = found.verdict == wanted
        rows.append(Row("timing", name, words, good, time.monotonic() - started))
    return rows


__all__ = ["Kind", "Row", "passed", "selftest"]
