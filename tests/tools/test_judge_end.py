"""What a judge's end is called, for every way to end."""

from pathlib import Path

import pytest

from stitch_tui.tools.errors import JudgeKilled, ReferenceFault
from stitch_tui.tools.judge_end import ended_because, frame, last_line

PROJECT = Path("/home/ada/net")
STACK = """loading
Fatal Python error: Segmentation fault
Current thread 0x1 (most recent call first):
  File "/home/ada/net/.venv/lib/site-packages/torch/nn.py", line 9 in __call__
  File "/home/ada/net/model.py", line 12 in forward
  File "/usr/lib/python3/runpy.py", line 3 in run
"""


@pytest.mark.parametrize(
    ("code", "during", "held", "kind", "what"),
    [
        (-9, "check", 3 << 30, ReferenceFault, "too large for memory"),
        (None, "check", 0, ReferenceFault, "closed the judge's connection"),
        (3, "check", 0, ReferenceFault, "exit code 3) during check"),
        (0, "", 0, ReferenceFault, "ended the process (exit code 0)"),
        (-9, "check", 0, JudgeKilled, "was killed"),
        (-11, "check", 0, ReferenceFault, "crashed (SIGSEGV)"),
        (-40, "check", 0, ReferenceFault, "crashed (signal 40)"),
    ],
)
def test_each_way_to_end_has_its_name(
    code: int | None, during: str, held: int, kind: type[Exception], what: str
) -> None:
    fault = ended_because(code, STACK, PROJECT, during=during, held=held, memory_limit=2 << 30)
    assert type(fault) is kind
    assert what in str(fault)


def test_a_crash_is_laid_to_the_users_own_line() -> None:
    assert frame(STACK, PROJECT) == "model.py:12"
    assert frame("no stack\n", PROJECT) == ""
    fault = ended_because(-11, STACK, PROJECT, during="check", held=0, memory_limit=1)
    assert "model.py:12" in str(fault)


def test_the_last_line_is_one_that_says_something() -> None:
    assert last_line("one\ntwo \n\n") == "two"
    assert last_line("\n") == ""
