"""How a session ended: what was judged, the result, where it is, what to do next.  Lines of text."""

from collections.abc import Iterator

from stitch_tui.agents import events
from stitch_tui.agents.state import Iteration, Session, SubtaskState
from stitch_tui.plain_text import columns, count, one_line
from stitch_tui.tools.verdict import Flag
from stitch_tui.view.verdict_line import speedups
from stitch_tui.view.wording import FUNCTIONAL, error_of_limit

SHA = 10
"""Characters of a commit's name that people see."""


def summary(session: Session, end: events.SessionFinished, *, told: str = "") -> Iterator[str]:
    """How a session ended: a table of what was judged, the result, where it is, what to do next.

    Args:
        told: a reason that stands on stderr already.
    """
    if session.plan is not None:
        yield ""
        yield from columns(_rows(session))
        yield ""
    yield one_line(str(end.status) if end.reason == told else f"{end.status}: {end.reason}")
    if session.plan is not None:
        yield from map(one_line, _scope(session))
    yield from map(one_line, _paid(session))
    if end.best:
        yield one_line(f"branch {session.branch}, its tip {end.best[:SHA]} holds the best iteration")
    yield ""
    yield from _next_steps(session)


def _paid(session: Session) -> Iterator[str]:
    """What the models took, by role."""
    for role, used in session.usage.items():
        counted = "about " if used.estimated else ""
        cost = f", cost {used.cost:.4g}" if used.cost is not None else ""
        tokens = f"{counted}{used.input:,} tokens in, {used.output:,} out"
        yield f"{role}: {tokens} in {count(used.calls, 'answer')}{cost}"


def _rows(session: Session) -> Iterator[tuple[str, ...]]:
    timed = any(shown.verdict and shown.verdict.timing for shown in session.iterations)
    speedup = "speedup" if timed else ""
    yield "subtask", "state", "verdict", "error of limit", speedup, "tries", "commit", "what"
    for subtask in session.plan.subtasks if session.plan else ():
        shown = session.best_of(subtask) or _last(session, subtask.id)
        what = subtask.title if shown or not subtask.reason else f"{subtask.title}: {subtask.reason}"
        yield subtask.id, str(subtask.state), *_judged(shown), str(subtask.attempts), _commit(shown), what
    if session.program is not None:
        host = session.best_of(session.host) if session.host else None
        stitched = [each for each in session.attempts_of("") if each.verdict]  # no restore, no seal
        whole = max(filter(None, (*stitched, host)), key=lambda each: each.number, default=None)
        state = SubtaskState.DONE if session.program.correct else SubtaskState.FAILED
        yield "program", str(state), *_judged(whole), str(len(stitched)), _commit(whole), "all of it"


def _judged(shown: Iteration | None) -> tuple[str, str, str]:
    """Verdict, error and speedup cells."""
    verdict = shown.verdict if shown else None
    if verdict is None:
        return "none", "", ""
    return str(verdict.category), error_of_limit(verdict), ", ".join(speedups(verdict))


def _scope(session: Session) -> Iterator[str]:
    """What the verdicts say, and about how much of the program."""
    verdicts = [shown.verdict for shown in session.iterations if shown.verdict]
    if any(Flag.FUNCTIONAL in verdict.flags for verdict in verdicts):
        yield f"judged on the CPU emulator: {FUNCTIONAL}"
    kept = [s.region for s in session.kernels if s.best is not None]
    nodes = sum(len(region.nodes) for region in kept)
    left = sum(len(u.nodes) for u in session.plan.uncovered) if session.plan else 0
    covered = f"{count(len(kept), 'kernel')} for {count(nodes, 'operator')}"
    yield f"{covered}, {left} left to PyTorch" if left else covered


def _next_steps(session: Session) -> Iterator[str]:
    steps = [("stitch log", "every iteration, kept or not")] if session.iterations else []
    if session.program is not None and session.program.correct:
        verify = f"stitch verify stitched/model_new.py --reference {session.reference}"
        steps += [
            ("stitch show best", "the best one: message, files, changes"),
            ("stitch apply", "bring it into your tree as stitched/; to judge it there again:"),
            ("", verify),
        ]
    elif session.iterations:
        steps += [("stitch show last", "the last one: message, files, changes")]
    else:
        steps += [("stitch doctor", "what this machine has and lacks")]
    labels = ("next", *("" for _ in steps[1:]))
    yield from columns((label, *step) for label, step in zip(labels, steps, strict=True))


def _last(session: Session, subtask: str) -> Iteration | None:
    attempts = session.attempts_of(subtask)
    return attempts[-1] if attempts else None


def _commit(shown: Iteration | None) -> str:
    return shown.commit[:SHA] if shown else ""
