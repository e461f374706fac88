"""Where the subtask of the host program goes, and what becomes of each attempt at it.  Pure.

The stitched program with stitch's own host side is the one to beat: another is kept when it is correct and
its time, measured in the same blocks, is distinguishably shorter.
"""

from stitch_tui.agents.route import Next, Route, attempts_since_best, limit_reached, stitched
from stitch_tui.agents.route import outcome as outcome_alone
from stitch_tui.agents.settings import Settings
from stitch_tui.agents.state import HOST, Plan, Session, Subtask, Task
from stitch_tui.tools.iteration import Outcome
from stitch_tui.tools.verdict import Verdict

TITLE = "host program"
OWN = "stitch's own host program stays"


def subtask(title: str = TITLE, strategy: str = "") -> Subtask:
    """The subtask of the host program, not begun."""
    return Subtask(id=HOST, title=title, task=Task.PROGRAM, strategy=strategy)


def planned(plan: Plan, settings: Settings, device: str) -> Plan:
    """The plan with a subtask for the host program, where a model may write one and a GPU times it."""
    asked = settings.models.coder.provider != "builtin" and settings.session.host_program
    if plan.host or not asked or not device.startswith("cuda") or any(s.opaque for s in plan.subtasks):
        return plan
    return plan.model_copy(update={"subtasks": (*plan.subtasks, subtask())})


def outcome(verdict: Verdict) -> Outcome:
    """What becomes of a host program; where nothing is timed a correct one stays: a human asked for it."""
    alone = outcome_alone(verdict, None)
    if alone is not Outcome.KEPT or verdict.timing is None:
        return alone
    replaced = verdict.timing.replaced
    return Outcome.KEPT if replaced and replaced.speedup.verdict == "faster" else Outcome.SLOWER


def route(session: Session, host: Subtask, settings: Settings) -> Route:
    """What follows on the host program as it stands; it never fails, since there is one in any case."""
    program, attempts = session.program, session.attempts_of(host.id)
    if not stitched(session):
        return Route(Next.INTEGRATE, "the program has changed: it is stitched anew first")
    if program is None or not program.correct:
        return _ended(host, "there is no correct stitched program to start from")
    if attempts and attempts[-1].outcome is Outcome.REDIRECTED:
        return Route(Next.OPTIMISE, "redirected")
    if program.timing is None and (host.best is not None or not host.direction):
        return _ended(host, "nothing is timed on the emulator")
    if len(attempts) >= settings.limits.iterations:
        return _ended(host, limit_reached(len(attempts)))
    stale = attempts_since_best(attempts)
    if stale >= settings.goal.stagnation:
        return _ended(host, f"no improvement in {stale} attempts")
    return Route(Next.OPTIMISE, "another host program may be faster")


def exhausted(host: Subtask) -> Route:
    """What follows when the Coder writes no host program: the built-in one leaves it to the stitcher."""
    return _ended(host, "the Coder has no other")


def _ended(host: Subtask, reason: str) -> Route:
    return Route(Next.DONE, reason if host.best is not None else f"{OWN}: {reason}")
