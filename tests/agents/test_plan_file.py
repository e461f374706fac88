"""What a person may leave in ``plan.toml``: read, or refused with the reason; no fault of the engine's."""

import pytest

from stitch_tui.agents import plan_file
from stitch_tui.tools.errors import UsageError

PLAN = b'outline = "x"\n[[subtask]]\nid = "s01"\ntitle = "t"\nnodes = ["a"]\n'


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf" + PLAN, PLAN.replace(b"\n", b"\r\n")], ids=["mark", "CRLF"])
def test_any_editors_way_of_saving_is_read(data: bytes) -> None:
    assert plan_file.read(data) == plan_file.read(PLAN)


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
