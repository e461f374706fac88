"""Which iteration of a session is the best: a rule that anyone can repeat from `git log`."""

from collections.abc import Iterable
from math import inf

from stitch_tui.tools.history.iteration import Iteration
from stitch_tui.tools.history.read import Commit
from stitch_tui.tools.iteration import Outcome


def best_of(commits: Iterable[Commit]) -> Commit | None:
    """The best commit of a session, None when nothing was judged correct.

    Only correct iterations compete, never one that was redirected, cancelled or quarantined, and never
    a restore or seal, which repeats another.  The first that tells two apart decides:

    1. the whole program, stitched and judged, before any single subtask;
    2. the whole program's speedup over the best baseline, then over eager; unmeasured comes last.
       (Speedups of different subtasks do not compare, so they do not count.);
    3. coverage: the share of the reference's time in custom kernels;
    4. the later one.
    """
    competing = [commit for commit in commits if commit.entry and _competes(commit.entry)]
    return max(competing, key=lambda commit: _rank(commit.iteration), default=None)


def _competes(iteration: Iteration) -> bool:
    # A slower whole program is complete all the same; a slower subtask left a better one behind.
    outcomes = {Outcome.KEPT, Outcome.SLOWER} if iteration.whole_program else {Outcome.KEPT}
    return iteration.correct and not iteration.again and iteration.outcome in outcomes


def _rank(iteration: Iteration) -> tuple[bool, float, float, float, int]:
    whole = iteration.whole_program
    return (
        whole,
        _or_least(iteration.speedup_best_baseline) if whole else 0.0,
        _or_least(iteration.speedup_eager) if whole else 0.0,
        _or_least(iteration.coverage),
        iteration.iteration,
    )


def _or_least(value: float | None) -> float:
    return -inf if value is None else value
