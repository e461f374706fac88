"""The reference's own processes get ready, compiled ones for long, while a candidate is built and checked."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from stitch_tui.tools.bench import CHECK_SECONDS, Bench, Json, OnEvent
from stitch_tui.tools.errors import StitchError


@asynccontextmanager
async def compiling(
    bench: Bench, targets: Sequence[Json], on_event: OnEvent | None = None
) -> AsyncIterator[None]:
    """Holds the GPU beside others; while it does, the baselines of `targets` compile and try themselves out.

    Those that are not ready at the end are stopped until the next time: nothing may run beside a timing.
    """
    async with bench.gpu("checking", on_event=on_event):
        for target in targets:
            await warm(bench, target)
        try:
            yield
        except StitchError:
            with suppress(StitchError):  # the judge may be what failed
                await _rest(bench, targets)
            raise
        await _rest(bench, targets)


async def _rest(bench: Bench, targets: Sequence[Json]) -> None:
    if targets:
        await bench.judge.call("rest", timeout=CHECK_SECONDS)


async def warm(bench: Bench, target: Json, *, wait: bool = False, on_event: OnEvent | None = None) -> None:
    """Start the baselines of a target; with `wait`, until they run."""
    await bench.judge.call("warm", {"target": target, "wait": wait}, timeout=CHECK_SECONDS, on_event=on_event)
