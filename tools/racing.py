"""A race of candidates for one region: built side by side, timed in the same blocks.  It gives no verdict."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic

from stitch_tui.tools import launches, scratch
from stitch_tui.tools.bench import CHECK_SECONDS, Bench, Json, OnEvent, target_of
from stitch_tui.tools.graph import Region
from stitch_tui.tools.race import Race
from stitch_tui.tools.timing import summary
from stitch_tui.tools.verdict import Build

BUILDING = 0.5
"""Share of a race's time for the builds; what they do not need is the contestants'."""
UNBUILT = "not built in time"


async def raced(
    bench: Bench,
    sources: Mapping[str, str],
    region: Region,
    *,
    seconds: float,
    on_event: OnEvent | None = None,
    now: Callable[[], float] = monotonic,
) -> Race:
    """Build candidates for a region and time those that build, in one call of the judge's.

    Args:
        sources: texts of ``.cu`` files by name, the likeliest first.
        seconds: for all of it, without what it waits for the GPU.
        on_event: as for `verify_region`; the stages are ``build`` and ``timing``.

    Raises:
        StitchError: the reference or the judge is at fault, never a candidate.
    """
    begun, tell = now(), on_event or _nothing
    tell("stage", {"stage": "build"})
    builds = await _built(bench, sources, seconds * BUILDING)
    failed = {name: _why(build) for name, build in builds.items() if not build.ok}
    left_out = {name: UNBUILT for name in sources if name not in builds}
    runners = {name: launches.on_gpu(bench, build) for name, build in builds.items() if build.ok}
    left = seconds - (now() - begun)
    report: Json = {"blocks": {}, "failed": {}, "left_out": {}}
    if runners:
        async with bench.gpu("racing", alone=True, on_event=on_event):
            tell("stage", {"stage": "timing"})
            params = {"target": target_of(region), "runners": runners, "options": {"seconds": left}}
            report = await bench.judge.call("race", params, timeout=CHECK_SECONDS, on_event=on_event)
    times = {name: summary(blocks) for name, blocks in report["blocks"].items()}
    return Race(
        times=dict(sorted(times.items(), key=lambda item: item[1].median_us)),
        failed=failed | report["failed"],
        left_out=left_out | report["left_out"],
        seconds=round(now() - begun, 1),
    )


async def _built(bench: Bench, sources: Mapping[str, str], seconds: float) -> dict[str, Build]:
    """Those builds that end in time; how many compilers run at once is the slots' affair."""
    assert bench.cuda
    with scratch.folder("race-") as folder:
        jobs: dict[str, asyncio.Task[Build]] = {}
        for number, (name, text) in enumerate(sources.items()):
            path = Path(folder, f"{number}.cu")
            path.write_text(text, encoding="utf-8")
            jobs[name] = asyncio.create_task(bench.cuda.build(path))
        try:
            await asyncio.wait(jobs.values(), timeout=seconds)
            return {name: job.result() for name, job in jobs.items() if job.done()}
        finally:
            for job in jobs.values():
                job.cancel()
            await asyncio.gather(*jobs.values(), return_exceptions=True)


def _why(build: Build) -> str:
    found = build.diagnostics[0] if build.diagnostics else None
    return f"{found.category}: {found.message}" if found else "it does not build"


def _nothing(event: str, data: Json) -> None:
    pass
