"""What a candidate goes through that is about to become *best*: compute-sanitizer, then the profilers."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from stitch_tui.tools.bench import Bench, Json, OnEvent
from stitch_tui.tools.draft import Draft
from stitch_tui.tools.profiling.profile import Profile
from stitch_tui.tools.sanitizer import sanitized
from stitch_tui.tools.verdict import Build


async def last_word(
    draft: Draft, bench: Bench, target: Json, source: Path, build: Build, on_event: OnEvent
) -> None:
    """compute-sanitizer's tools on a small shape; what they find fails the draft."""
    on_event("stage", {"stage": "sanitizer"})
    async with bench.gpu("compute-sanitizer", on_event=on_event):
        found = await sanitized(bench, target, source, build)
    draft.unchecked(*found.unchecked)
    draft.note({"sanitizer_s": round(found.seconds, 1)})
    if found.findings:
        draft.fail(found.findings[0].category, found.findings)


async def looked_into(
    draft: Draft, bench: Bench, profiling: Callable[[], Awaitable[Profile | None]], on_event: OnEvent
) -> None:
    """Where the time goes, for who writes the next version; alone on the GPU."""
    on_event("stage", {"stage": "profile"})
    async with bench.gpu("profiling", alone=True, on_event=on_event):
        draft.update(profile=await profiling())
