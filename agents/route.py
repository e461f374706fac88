"""Where a subtask goes after a verdict.  Pure: decided from the state alone."""

from dataclasses import dataclass
from enum import StrEnum

from stitch_tui.agents.prompt_text import fingerprint
from stitch_tui.agents.settings import Settings
from stitch_tui.agents.state import Candidate, Iteration, Plan, Session, Subtask, SubtaskState
from stitch_tui.tools.graph import Graph
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.region_form import form_of
from stitch_tui.tools.verdict import Category, Flag, Verdict

SAME_FAILURES = 4
"""Failures of one kind in a row that end a subtask's way."""
IGNORED = 2
"""Recommendations in a row that were not followed."""

AT_THE_BOUND = 0.8
"""Share of the device's own speed at which a kernel is not tried again: streams of data reach 0.8 to 0.9."""


class Next(StrEnum):
    REPAIR = "repair"
    OPTIMISE = "optimise"
    REPLAN = "replan"
    REPLACED = "replaced"
    """Other subtasks have taken its place."""
    INTEGRATE = "integrate"
    """The program has to be stitched anew first."""
    DONE = "done"
    GIVE_UP = "give up"


@dataclass(frozen=True)
class Route:
    next: Next
    reason: str


def outcome(verdict: Verdict, best: Iteration | None, kind: Kind = Kind.DRAFT) -> Outcome:
    """What becomes of an attempt beside the best one so far; a time that is not believed counts as wrong.

    Where nothing is timed the first correct version stays, unless a human wrote another.
    """
    if not verdict.correct:
        unbuilt = {Category.BUILD_ERROR, Category.LINK_ERROR, Category.ENVIRONMENT}
        return Outcome.ERROR if verdict.category in unbuilt else Outcome.WRONG
    if Flag.QUARANTINED in verdict.flags:
        return Outcome.WRONG
    chosen = kind is Kind.HUMAN and verdict.timing is None
    if best is None or best.verdict is None or chosen:
        return Outcome.KEPT
    return Outcome.KEPT if score(verdict) > score(best.verdict) else Outcome.SLOWER


def score(verdict: Verdict) -> float:
    """Speedup over the strongest baseline measured beside it; 0 when it was not timed."""
    speedups = verdict.timing.speedups if verdict.timing else {}
    return min((ratio.value for ratio in speedups.values()), default=0.0)


def kind_of_next(attempts: tuple[Iteration, ...]) -> Kind:
    """Why the next attempt at a subtask is made; attempts without code or without a verdict do not count."""
    coded = [attempt for attempt in attempts if attempt.candidate and attempt.candidate.source]
    judged = [attempt.verdict for attempt in coded if attempt.verdict is not None]
    if not judged:
        return Kind.DRAFT
    return Kind.OPTIMISE if judged[-1].correct else Kind.REPAIR


def route(session: Session, subtask: Subtask, settings: Settings) -> Route:
    """What follows on `subtask` as it stands.

    An attempt that was cut short counts against the limit, what a human wrote does not.
    """
    attempts = session.attempts_of(subtask.id)
    if not attempts:
        return Route(Next.REPAIR, "not begun")
    last = attempts[-1].verdict
    spent = sum(a.kind is not Kind.HUMAN for a in attempts) >= settings.limits.iterations
    if last is None or not last.correct:
        if spent:
            return Route(Next.GIVE_UP if subtask.best is None else Next.DONE, limit_reached(len(attempts)))
        if dead_end := _dead_end(session, subtask, attempts, settings):
            return Route(Next.REPLAN, dead_end)
        cut_short = "the last attempt was cut short"
        return Route(Next.REPAIR, cut_short if last is None else "the last attempt was not correct")
    if attempts[-1].outcome is Outcome.REDIRECTED:
        return Route(Next.REPAIR, "redirected")
    if last.timing is None:
        return Route(Next.DONE, "functional: correct on the emulator, nothing to time or to race")
    if spent:
        return Route(Next.DONE, limit_reached(len(attempts)))
    if (share := _share_of_bound(session, subtask)) >= AT_THE_BOUND:
        return Route(Next.DONE, f"at {share:.0%} of what the device can do")
    stale = attempts_since_best(attempts)
    if stale >= settings.goal.stagnation:
        return Route(Next.DONE, f"no improvement in {stale} attempts")
    return Route(Next.OPTIMISE, "correct; the next strategy may be faster")


def _share_of_bound(session: Session, subtask: Subtask) -> float:
    """How near the best kernel is to the device's bound for the subtask; 0 where none is known."""
    best = session.best_of(subtask)
    timing = best.verdict.timing if best and best.verdict else None
    return (subtask.bound_us or 0.0) / timing.candidate.median_us if timing else 0.0


def twin(session: Session, subtask: Subtask, graph: Graph) -> Subtask | None:
    """An ended subtask of the same form: its verdict holds for this one too."""
    if subtask.attempts or subtask.direction or subtask.is_host:
        return None
    form = form_of(graph, subtask.region)
    judged = (s for s in session.kernels if s.state in (SubtaskState.DONE, SubtaskState.FAILED))
    return next((s for s in judged if s.id != subtask.id and form_of(graph, s.region) == form), None)


def loses(session: Session, subtask: Subtask) -> str:
    """Why the best kernel is not worth having: PyTorch is faster on its nodes; else empty."""
    best = None if subtask.is_host else session.best_of(subtask)
    timing = best.verdict.timing if best and best.verdict else None
    ratio = timing.speedups.get("eager") if timing else None
    if timing is None or ratio is None or ratio.high >= 1:
        return ""
    ours, theirs = timing.candidate.median_us, timing.baselines["eager"].median_us
    return f"left to PyTorch, which is faster: {theirs:.1f} us, the best kernel {ours:.1f} us"


def refused(candidate: Candidate, device: str) -> Verdict:
    """The verdict on an answer that holds no candidate: nothing of it was built."""
    return Verdict(
        category=Category.BUILD_ERROR, device=device, summary=f"no candidate in it: {candidate.refused}"
    )


def wrong_in_program(program: Verdict) -> Verdict:
    """The verdict on a kernel that is correct alone and makes the program wrong."""
    return program.model_copy(
        update={"summary": f"correct alone, and wrong in the program: {program.summary}", "timing": None}
    )


def replaced(failed: Subtask, plan: Plan, reason: str) -> Route:
    """What becomes of a subtask in whose place `plan` has others; given up unless they own all its nodes."""
    new = [s for s in plan.kernels if s.id != failed.id and s.state is SubtaskState.PROPOSED]
    owned = {node for subtask in new for node in subtask.region.nodes}
    if left := [node for node in failed.region.nodes if node not in owned]:
        return Route(Next.GIVE_UP, f"{reason}; {', '.join(left[:5])} left to PyTorch")
    return Route(Next.REPLACED, f"{reason}; planned anew as {', '.join(s.id for s in new)}")


def exhausted(subtask: Subtask) -> Route:
    """What follows when the Coder has nothing left to try."""
    if subtask.best is None:
        return Route(Next.GIVE_UP, "the Coder has nothing left to try and no attempt was correct")
    return Route(Next.DONE, "every strategy of the Coder was tried or raced")


def stitched(session: Session) -> bool:
    """Was the program judged as the subtasks stand now?  Also when there is nothing to stitch."""
    best = [subtask.best for subtask in session.kernels if subtask.best is not None]
    if not best:
        return True
    restores = [i.number for i in session.iterations if i.kind is Kind.RESTORE]
    programs = [i.number for i in session.iterations if not i.subtask and i.verdict is not None]
    judged = max(programs, default=0)
    return session.program is not None and judged > max(best + restores) and _has_its_host(session, judged)


def _has_its_host(session: Session, judged: int) -> bool:
    """Is the host program still the one of the last integration, or one that was kept after it?"""
    host = session.host
    if host is None:
        return True
    kept = [i.number for i in session.attempts_of(host.id) if i.outcome is Outcome.KEPT and i.number > judged]
    return not kept or host.best == kept[-1]


def _dead_end(session: Session, subtask: Subtask, attempts: tuple[Iteration, ...], settings: Settings) -> str:
    """Why a subtask without a correct version should be planned anew, or empty.

    Only a Planner that is a model knows another way, and only so often.
    """
    revision = session.plan.revision if session.plan else 0
    no_other_way = settings.models.planner.provider == "builtin" or revision >= settings.limits.replans
    redirected = attempts[-1].outcome is Outcome.REDIRECTED
    if subtask.best is not None or subtask.opaque or no_other_way or redirected:
        return ""
    judged = [attempt for attempt in attempts if attempt.verdict is not None]
    if len(judged) >= settings.goal.replan_after:
        return f"{len(judged)} attempts, and none was correct"
    failures = [fingerprint(attempt) for attempt in judged[-SAME_FAILURES:]]
    if len(failures) == SAME_FAILURES and len(set(failures)) == 1:
        return f"{SAME_FAILURES} attempts in a row failed in the same way"
    followed = [attempt.candidate.followed for attempt in judged[-IGNORED:] if attempt.candidate]
    if followed == [False] * IGNORED:
        return f"what was recommended was not followed {IGNORED} times"
    return ""


def limit_reached(attempts: int) -> str:
    return f"the limit of iterations is reached: {attempts}"


def attempts_since_best(attempts: tuple[Iteration, ...]) -> int:
    """Attempts that did not better the best one, a human's and cancelled ones aside."""
    stale = 0
    for attempt in reversed(attempts):
        if attempt.outcome is Outcome.KEPT:
            break
        stale += attempt.outcome is not Outcome.CANCELLED and attempt.kind is not Kind.HUMAN
    return stale
