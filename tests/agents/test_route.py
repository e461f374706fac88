"""Where a subtask goes after a verdict, and whether a session met its goal."""

import pytest
import sessions

from stitch_tui.agents import events, goal, plan_edits, route
from stitch_tui.agents.route import Next
from stitch_tui.agents.settings import GoalSettings, LimitSettings, Settings
from stitch_tui.agents.state import Candidate, Plan, Session, Subtask, SubtaskState
from stitch_tui.tools.errors import ExitCode
from stitch_tui.tools.graph import Region, region_of
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.verdict import Category, Flag, Verdict

SETTINGS = Settings(limits=LimitSettings(iterations=4), goal=GoalSettings(stagnation=2))
CORRECT, WRONG = sessions.verdict(), sessions.verdict(Category.NUMERICS)
QUARANTINED = sessions.verdict(speedup=50).model_copy(update={"flags": (Flag.QUARANTINED,)})


def after(*attempts: tuple[Outcome, Verdict]) -> Session:
    history = list(sessions.started())
    for number, (outcome, verdict) in enumerate(attempts, 1):
        history += sessions.attempt(number, outcome, verdict)
    return events.fold(history)


def routed(session: Session) -> Next:
    return route.route(session, session.subtask("s01"), SETTINGS).next


def test_an_incorrect_attempt_is_repaired_while_the_budget_lasts() -> None:
    assert routed(after((Outcome.WRONG, WRONG))) is Next.REPAIR
    assert routed(after(*[(Outcome.WRONG, WRONG)] * 4)) is Next.GIVE_UP


def test_a_correct_attempt_survives_later_failures() -> None:
    session = after((Outcome.KEPT, sessions.verdict(speedup=2)), *[(Outcome.WRONG, WRONG)] * 3)
    assert routed(session) is Next.DONE


def test_on_the_emulator_the_first_correct_attempt_is_enough() -> None:
    assert routed(after((Outcome.WRONG, WRONG), (Outcome.KEPT, CORRECT))) is Next.DONE


def test_a_timed_attempt_is_optimised_until_nothing_improves() -> None:
    fast, slow = sessions.verdict(speedup=2), sessions.verdict(speedup=1)
    assert routed(after((Outcome.KEPT, fast))) is Next.OPTIMISE
    assert routed(after((Outcome.KEPT, fast), (Outcome.SLOWER, slow))) is Next.OPTIMISE
    assert routed(after((Outcome.KEPT, fast), *[(Outcome.SLOWER, slow)] * 2)) is Next.DONE


@pytest.mark.parametrize(
    ("bound_us", "then"), [(9.0, Next.DONE), (5.0, Next.OPTIMISE), (None, Next.OPTIMISE)]
)
def test_a_kernel_near_the_bound_of_the_device_is_good_enough(bound_us: float | None, then: Next) -> None:
    task = sessions.subtask().model_copy(update={"bound_us": bound_us})
    fast = sessions.attempt(1, Outcome.KEPT, sessions.verdict(speedup=2))
    assert routed(events.fold([*sessions.started(task), *fast])) is then


def test_the_kind_of_an_attempt_follows_from_the_one_before() -> None:
    assert route.kind_of_next(()) is Kind.DRAFT
    assert route.kind_of_next(after((Outcome.WRONG, WRONG)).iterations) is Kind.REPAIR
    assert route.kind_of_next(after((Outcome.KEPT, CORRECT)).iterations) is Kind.OPTIMISE
    (nothing,) = after((Outcome.ERROR, WRONG)).iterations
    refused = Candidate(source="", strategy="no usable answer", refused="there is no file in it")
    nothing = nothing.model_copy(update={"candidate": refused})
    assert route.kind_of_next((nothing,)) is Kind.DRAFT, "there is nothing to repair"


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (WRONG, Outcome.WRONG),
        (sessions.verdict(Category.HACK_SUSPECTED), Outcome.WRONG),
        (QUARANTINED, Outcome.WRONG),
        (sessions.verdict(Category.BUILD_ERROR), Outcome.ERROR),
        (sessions.verdict(speedup=1.4), Outcome.SLOWER),
        (sessions.verdict(speedup=1.6), Outcome.KEPT),
    ],
)
def test_the_outcome_compares_with_the_best_so_far(verdict: Verdict, expected: Outcome) -> None:
    best = after((Outcome.KEPT, sessions.verdict(speedup=1.5))).iterations[0]
    assert route.outcome(verdict, best) is expected


def test_a_subtask_with_nothing_left_to_try_ends_by_what_it_has() -> None:
    assert route.exhausted(after((Outcome.WRONG, WRONG)).subtask("s01")).next is Next.GIVE_UP
    assert route.exhausted(after((Outcome.KEPT, CORRECT)).subtask("s01")).next is Next.DONE


def finished(state: SubtaskState, program: Verdict | None) -> Session:
    session = after((Outcome.KEPT, CORRECT))
    done = events.SubtaskFinished(subtask="s01", state=state, best=1).applied_to(session)
    return done.model_copy(update={"program": program})


@pytest.mark.parametrize(
    ("state", "program", "speedup", "code"),
    [
        (SubtaskState.DONE, CORRECT, 0, ExitCode.GOAL_MET),
        (SubtaskState.DONE, WRONG, 0, ExitCode.GOAL_NOT_MET),
        (SubtaskState.DONE, None, 0, ExitCode.UNPROVEN),
        (SubtaskState.FAILED, CORRECT, 0, ExitCode.GOAL_NOT_MET),
        (SubtaskState.SKIPPED, CORRECT, 0, ExitCode.GOAL_NOT_MET),
        (SubtaskState.DONE, CORRECT, 2, ExitCode.UNPROVEN),
        (SubtaskState.DONE, sessions.verdict(speedup=2.5), 2, ExitCode.GOAL_MET),
        (SubtaskState.DONE, sessions.verdict(speedup=2.01), 2, ExitCode.GOAL_NOT_MET),
        (SubtaskState.DONE, QUARANTINED, 0, ExitCode.UNPROVEN),
    ],
)
def test_the_goal_is_met_only_when_everything_needed_happened(
    state: SubtaskState, program: Verdict | None, speedup: float, code: ExitCode
) -> None:
    assert goal.reached(finished(state, program), GoalSettings(speedup=speedup), 1.0)[0] is code


def test_a_session_without_subtasks_has_not_met_its_goal() -> None:
    assert goal.reached(Session(), GoalSettings(), 0.0)[0] is ExitCode.GOAL_NOT_MET


def test_a_subtask_of_the_same_form_as_an_ended_one_is_not_judged_again() -> None:
    graph = sessions.two_layers()
    regions = [region_of(graph, nodes) for nodes in (["a", "b"], ["c", "d"], ["e"])]
    tasks = [Subtask(id=f"s{n}", title="layer", region=region) for n, region in enumerate(regions, 1)]
    session = events.fold([*sessions.started(*tasks), *sessions.attempt(1, Outcome.KEPT, CORRECT, "s1")])
    assert route.twin(session, session.subtask("s2"), graph) is None
    session = events.SubtaskFinished(subtask="s1", state=SubtaskState.DONE, best=1).applied_to(session)
    found = route.twin(session, session.subtask("s2"), graph)
    assert found is not None
    assert (found.id, found.best) == ("s1", 1)
    assert route.twin(session, session.subtask("s3"), graph) is None
    as_told = session.subtask("s2").model_copy(update={"direction": "use half as many threads"})
    assert route.twin(session, as_told, graph) is None


def test_a_kernel_that_pytorch_outruns_is_left_to_it() -> None:
    slow = after((Outcome.KEPT, sessions.verdict(speedup=0.5)))
    assert route.loses(slow, slow.subtask("s01")).startswith("left to PyTorch, which is faster")
    same = after((Outcome.KEPT, sessions.verdict(speedup=1.0)))
    assert not route.loses(same, same.subtask("s01"))
    functional = after((Outcome.KEPT, CORRECT))
    assert not route.loses(functional, functional.subtask("s01"))
    nothing = events.SubtaskFinished(subtask="s01", state=SubtaskState.DONE).applied_to(slow)
    code, reason = goal.reached(nothing, GoalSettings(), 1.0)
    assert (code, reason) == (ExitCode.GOAL_NOT_MET, "no kernel is faster than PyTorch")


def test_kernels_that_cover_too_little_miss_the_goal() -> None:
    session = finished(SubtaskState.DONE, CORRECT)
    assert goal.reached(session, GoalSettings(min_coverage=0.5), 0.4)[0] is ExitCode.GOAL_NOT_MET
    assert goal.reached(session, GoalSettings(min_coverage=0.5), 0.5)[0] is ExitCode.GOAL_MET


def models() -> Settings:
    return Settings.model_validate(
        {"models": {"planner": {"provider": "openai"}}, "goal": {"replan_after": 3}}
    )


def test_a_subtask_that_gets_nowhere_is_planned_anew_only_by_a_planner_that_can() -> None:
    stuck = after(*[(Outcome.WRONG, WRONG)] * 3)
    assert route.route(stuck, stuck.subtask("s01"), models()).next is Next.REPLAN
    assert route.route(stuck, stuck.subtask("s01"), Settings()).next is Next.REPAIR
    assert stuck.plan
    often = stuck.model_copy(update={"plan": stuck.plan.model_copy(update={"revision": 2})})
    assert route.route(often, often.subtask("s01"), models()).next is Next.REPAIR
    better = after((Outcome.KEPT, CORRECT), *[(Outcome.WRONG, WRONG)] * 3)
    assert route.route(better, better.subtask("s01"), models()).next is Next.REPAIR


def stitched_with_one_of_two() -> Session:
    """Two kernels were kept, one was skipped then, and the program was judged with the other."""
    elsewhere = Region(nodes=("relu",), inputs=("linear",), outputs=("relu",))
    second = sessions.subtask("s02").model_copy(update={"region": elsewhere})
    return events.fold(
        [
            *sessions.started(sessions.subtask("s01"), second),
            *sessions.attempt(1, Outcome.KEPT, CORRECT, "s01"),
            *sessions.attempt(2, Outcome.KEPT, CORRECT, "s02"),
            events.SubtaskFinished(subtask="s01", state=SubtaskState.DONE, best=1),
            events.SubtaskFinished(subtask="s02", state=SubtaskState.SKIPPED),
            events.IterationStarted(iteration=3, subtask="", attempt=1, kind=Kind.INTEGRATE),
            events.VerdictReached(iteration=3, subtask="", verdict=CORRECT, outcome=Outcome.KEPT),
            events.IterationCommitted(iteration=3, sha="3" * 40, subject="the program"),
        ]
    )


def test_a_kernel_that_is_taken_back_makes_the_program_stale() -> None:
    session = stitched_with_one_of_two()
    assert route.stitched(session)
    again = events.PlanUpdated(plan=plan_edits.taken_back(session, "s02")).applied_to(session)
    assert again.subtask("s02").best == 2, "older than the program, and not in it"
    assert not route.stitched(again)


def test_a_kernel_that_joins_as_a_twin_makes_the_program_stale() -> None:
    session = stitched_with_one_of_two()
    added = Plan(subtasks=(*session.subtasks, sessions.subtask("s03")))
    planned = events.PlanUpdated(plan=added).applied_to(session)
    assert route.stitched(planned), "nothing of it is kept yet"
    done = events.SubtaskFinished(subtask="s03", state=SubtaskState.DONE, best=1).applied_to(planned)
    assert not route.stitched(done)


def test_other_words_in_a_plan_leave_the_program_as_it_was_judged() -> None:
    session = stitched_with_one_of_two()
    named = session.subtask("s01").model_copy(update={"title": "the same"})
    plan = plan_edits.replaced(plan_edits.plan_of(session), named)
    assert route.stitched(events.PlanUpdated(plan=plan).applied_to(session))
