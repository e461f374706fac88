"""Whether a session met its goal.  Pure; never 0 when a required step did not happen."""

from stitch_tui.agents.settings import GoalSettings
from stitch_tui.agents.state import Session, Status, SubtaskState
from stitch_tui.tools.errors import ExitCode
from stitch_tui.tools.verdict import Flag, Verdict

_STATUS = {
    ExitCode.GOAL_MET: Status.GOAL_MET,
    ExitCode.GOAL_NOT_MET: Status.GOAL_NOT_MET,
    ExitCode.LIMIT: Status.LIMIT,
    ExitCode.HANGUP: Status.STOPPED,
    ExitCode.INTERRUPT: Status.STOPPED,
    ExitCode.TERMINATED: Status.STOPPED,
}


def status(code: ExitCode) -> Status:
    """The session's status that goes with an exit code."""
    return _STATUS.get(code, Status.FAILED)


def reached(session: Session, goal: GoalSettings, coverage: float) -> tuple[ExitCode, str]:
    """The exit code of a session whose subtasks have all ended, and why in a sentence.

    Args:
        coverage: share of the reference's time in kernels that were kept, 0..1.
    """
    wanted = [s for s in session.kernels if s.state is not SubtaskState.SKIPPED]
    if not wanted:
        return ExitCode.GOAL_NOT_MET, "no part of the program was given to a custom kernel"
    if failed := [s for s in wanted if s.state is not SubtaskState.DONE]:
        names = ", ".join(f"{s.id} {s.title}" for s in failed)
        return ExitCode.GOAL_NOT_MET, f"without a correct kernel: {names}"
    if all(s.best is None for s in wanted):
        return ExitCode.GOAL_NOT_MET, "no kernel is faster than PyTorch"
    if session.program is None:
        return ExitCode.UNPROVEN, "the stitched program was not checked"
    if not session.program.correct:
        return ExitCode.GOAL_NOT_MET, f"the stitched program is not correct: {session.program.summary}"
    if Flag.QUARANTINED in session.program.flags:
        return ExitCode.UNPROVEN, f"the stitched program's time is not believed: {session.program.summary}"
    if coverage < goal.min_coverage:
        return (
            ExitCode.GOAL_NOT_MET,
            f"kernels cover {coverage:.0%} of the time, goal {goal.min_coverage:.0%}",
        )
    if goal.speedup:
        return _speedup(session.program, goal)
    return ExitCode.GOAL_MET, f"{len(wanted)} subtask{'s' * (len(wanted) > 1)} and the program correct"


def _speedup(program: Verdict, goal: GoalSettings) -> tuple[ExitCode, str]:
    if program.timing is None:
        return ExitCode.UNPROVEN, "the stitched program was not timed"
    timing = program.timing
    name = timing.best_baseline if goal.baseline == "best" else goal.baseline
    if name not in timing.speedups:
        return ExitCode.UNPROVEN, f"baseline {name} was not timed"
    ratio = timing.speedups[name]
    text = f"{ratio.value:.2f}x over {name} (95 % {ratio.low:.2f}-{ratio.high:.2f}), goal {goal.speedup:g}x"
    return (ExitCode.GOAL_MET if ratio.low >= goal.speedup else ExitCode.GOAL_NOT_MET), text
