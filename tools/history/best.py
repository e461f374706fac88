"""Which iteration of a session is the best: a rule that anyone can repeat from `git log`."""

from collections.abc import Iterable
from math import inf

from stitch_tui.tools.history.iteration import Iteration
from stitch_tui.tools.history.read import Commit
from stitch_tui.tools.iteration import Kind, Outcome


def best_of(commits: Iterable[Commit]) -> Commit | None:
    """The best commit of a session, None when nothing was judged correct.

    Only correct iterations compete, never one that was redirected, cancelled or quarantined, and never
    a restore or seal, which repeats another.  The first that tells two apart decides:

    1. the whole program, stitched and judged, before any single subtask;
    2. the whole program's speedup over the best baseline, then over eager; unmeasured comes last.
       (Speedups of different subtasks do not compare, so they do not count.);
    3. coverage: the share of the reference's time in custom kernels;
    4. the later one.

    Of a stitched program and the host programs that were kept after it, each measured against the one before,
    only the last competes.
    """
    judged = [commit for commit in commits if commit.entry and not commit.entry.again]
    replaced = _replaced([commit.iteration for commit in judged])
    competing = [c for c in judged if _competes(c.iteration) and c.iteration.iteration not in replaced]
    return max(competing, key=lambda commit: _rank(commit.iteration), default=None)


def _competes(iteration: Iteration) -> bool:
    # A slower stitched program is complete all the same; a slower candidate left a better one behind.
    stitched = iteration.whole_program and iteration.kind not in (Kind.PROGRAM, Kind.HUMAN)
    outcomes = {Outcome.KEPT, Outcome.SLOWER} if stitched else {Outcome.KEPT}
    return iteration.correct and not iteration.again and iteration.outcome in outcomes


def _replaced(iterations: Iterable[Iteration]) -> set[int]:
    """Numbers of the whole programs in whose place a host program was kept."""
    found, standing = set[int](), None
    for iteration in sorted(iterations, key=lambda each: each.iteration):
        if not iteration.whole_program or not _competes(iteration):
            continue
        if iteration.kind in (Kind.PROGRAM, Kind.HUMAN) and standing is not None:
            found.add(standing)
        standing = iteration.iteration
    return found


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
