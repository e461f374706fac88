"""One line for a person, one code for a script."""

from itertools import permutations

from stitch_tui.tools.errors import EnvironmentFault, ExitCode, ReferenceFault, decisive


def test_an_error_is_one_line_with_where_what_why_and_advice() -> None:
    fault = ReferenceFault("no class Model", where="net.py:3", why="only Net is defined", advice="name it")
    assert str(fault) == "net.py:3: no class Model: only Net is defined (name it)"
    assert str(EnvironmentFault("no compiler")) == "no compiler"


def test_a_signal_outranks_everything_and_success_nothing() -> None:
    order = [ExitCode.INTERRUPT, ExitCode.USAGE, ExitCode.ENVIRONMENT, ExitCode.LIMIT, ExitCode.GOAL_MET]
    for codes in permutations(order):
        assert decisive(codes) is ExitCode.INTERRUPT
    assert decisive([ExitCode.GOAL_MET, ExitCode.LIMIT]) is ExitCode.LIMIT
    assert decisive([ExitCode.UNPROVEN, ExitCode.LIMIT]) is ExitCode.UNPROVEN


def test_no_code_at_all_is_not_success() -> None:
    assert decisive([]) is ExitCode.GOAL_NOT_MET
