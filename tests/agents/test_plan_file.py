"""What a person may leave in ``plan.toml``: read, or refused with the reason; no fault of the engine's."""

from contextlib import suppress

import pytest

from stitch_tui.agents import plan_file
from stitch_tui.agents.plan_outline import Row
from stitch_tui.tools.errors import UsageError

PLAN = b'outline = "x"\n[[subtask]]\nid = "s01"\ntitle = "t"\nnodes = ["a"]\n'


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf" + PLAN, PLAN.replace(b"\n", b"\r\n")], ids=["mark", "CRLF"])
def test_any_editors_way_of_saving_is_read(data: bytes) -> None:
    assert plan_file.read(data) == plan_file.read(PLAN)


def test_a_plan_that_is_cut_anywhere_is_not_whole() -> None:
    """Half of a file that is being saved may well be a plan with fewer subtasks."""
    bundle = b"format = 1\n" + b"".join(
        b'[[subtask]]\nid = "s%d"\ntitle = "t"\nnodes = ["a"]\nstrategy = ""\nstate = "done"\n' % n
        for n in (1, 2)
    )
    rows = [Row(f"s{n}", "t", ("a",), "one warp a row", "done") for n in (1, 2)]
    data = plan_file.written(bundle, rows)
    assert plan_file.read(data).whole
    assert not plan_file.read(data).by_hand
    cut = []
    for length in range(len(data.rstrip())):
        with suppress(UsageError):
            cut.append(plan_file.read(data[:length]))
    assert any(plan.rows == tuple(rows[:1]) for plan in cut), "as if the second had been deleted"
    assert not any(plan.whole for plan in cut)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a = " + b"9" * 5000, "digits"),
        (bytes(range(256)), "utf-8"),
        (b"subtask = 3", "subtask: it is not read"),
        (b"[[subtask]]\nnodes = [1]", "subtask.0.nodes.0"),
        (b"format = 1\n", "no subtask stands there"),
    ],
)
def test_what_is_no_plan_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        plan_file.read(data)
