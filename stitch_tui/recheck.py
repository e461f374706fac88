"""``stitch recheck``: an iteration of the past judged again, and what has changed since."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.agents.settings import Mode, Settings
from stitch_tui.tools import scratch
from stitch_tui.tools.bundle import Bundle, read_bundle
from stitch_tui.tools.errors import ExitCode, UsageError
from stitch_tui.tools.history import History, Iteration
from stitch_tui.tools.history.archive import Number
from stitch_tui.tools.judge import OnEvent
from stitch_tui.tools.verdict import Category, Verdict
from stitch_tui.verify import exit_code, verify_file

SLOWER = 1.1
"""A time this much above the old one is drift: less is what machines and days differ by."""


@dataclass(frozen=True)
class Recheck:
    """An iteration as it was judged then and now."""

    before: Iteration
    now: Verdict
    drift: tuple[str, ...]
    """What got worse."""
    notes: tuple[str, ...]
    """What differs and cannot be held against it."""

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.GOAL_NOT_MET if self.drift else exit_code(self.now)


async def recheck(
    project: Path,
    settings: Settings,
    history: History,
    number: Number,
    session: str | None,
    on_event: OnEvent | None = None,
) -> Recheck:
    """Judge an iteration's own files against the reference that was committed with them.

    A subtask's iteration is judged alone, one of the program end to end.

    Raises:
        UsageError: there is no such iteration, or it was never correct.
        StitchError: the reference or this machine is at fault.
    """
    before = history.show(number, session).commit.iteration
    if not before.correct:
        raise UsageError(
            f"iteration {before.iteration} was not correct then",
            why=before.verdict or before.outcome,
            advice="`stitch log` lists those that were",
        )
    with scratch.folder("stitch-recheck-") as folder:
        bundle = history.export(number, folder / "stitched", session)
        stored = read_bundle(bundle)
        reference = stored.reference
        mode = settings.reference.model_copy(update={"mode": Mode(reference.mode)})
        kernel = bundle / "kernels" / f"{before.subtask}.cu"
        judged = await verify_file(
            project,
            settings.model_copy(update={"reference": mode}),
            bundle / "model_new.py" if before.whole_program else kernel,
            f"{bundle / 'reference.py'}:{reference.class_name}",
            on_event,
        )
    drift, notes = compared(before, judged.verdict, _verdict_of(stored, before))
    return Recheck(before, judged.verdict, drift, notes)


def _verdict_of(bundle: Bundle, iteration: Iteration) -> Verdict | None:
    """The verdict of that time, with what it was made on."""
    if iteration.whole_program:
        return bundle.verdict
    return next((kernel.verdict for kernel in bundle.kernels if kernel.id == iteration.subtask), None)


def compared(
    before: Iteration, now: Verdict, then: Verdict | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What got worse, and what else differs; times are compared only on the same device.

    Args:
        then: the verdict of that time, where the bundle holds it.
    """
    if now.category is Category.ENVIRONMENT:
        return (), (f"it could not be judged here: {now.summary}",)
    changed = tuple(_changes(_made_on(then), _made_on(now))) if then else ()
    if not now.correct:
        return (f"it was correct, and is {now.category} now: {now.summary}",), changed
    return tuple(_slower(before, now)), (*_differences(before, now), *changed)


def _slower(before: Iteration, now: Verdict) -> Iterator[str]:
    if before.device != now.device or before.time_us is None or now.timing is None:
        return
    limit = SLOWER * (before.time_interval_us[1] if before.time_interval_us else before.time_us)
    if now.timing.candidate.low_us > limit:
        yield f"it took {before.time_us:.1f} us, and takes {now.timing.candidate.median_us:.1f} us now"


def _differences(before: Iteration, now: Verdict) -> Iterator[str]:
    if before.device != now.device:
        yield f"judged on {before.device} then, on {now.device} now: times are not compared"
    elif before.time_us is not None and now.timing is None:
        yield "it was timed then and is not now"


def _made_on(verdict: Verdict) -> dict[str, str]:
    """What a verdict may change with."""
    known = verdict.numbers | (verdict.timing.environment if verdict.timing else {})
    named = {name: str(known[name]) for name in ("torch", "cuda", "driver") if known.get(name)}
    return named | ({"compiler": verdict.build.compiler} if verdict.build and verdict.build.compiler else {})


def _changes(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in [name for name in then if name in now]:
        if then[name] != now[name]:
            yield f"{name} was {then[name]}, and is {now[name]} now"
