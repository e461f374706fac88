"""What a runner's end is called, for every way to end."""

import pytest

from stitch_tui.tools.worker.runner_end import ended_because

FOUND = [{"severity": "error", "category": "data_race", "msg": "two threads at once"}]


@pytest.mark.parametrize(
    ("code", "findings", "category", "message"),
    [
        (None, FOUND, "hack_suspected", "the private channel was closed in run, the process went on"),
        (1, FOUND, "data_race", "two threads at once"),
        (-11, [], "illegal_access", "killed by SIGSEGV in run; its last output: bye"),
        (-9, [], "out_of_memory_host", "killed by SIGKILL in run; its last output: bye"),
        (-25, [], "hack_suspected", "killed by SIGXFSZ in run: more than 64 MiB of output, or in one file;"),
        (-40, [], "launch_error", "killed by signal 40 in run; its last output: bye"),
        (0, [], "hack_suspected", "the process was ended with exit status 0 in run"),
        (3, [], "launch_error", "the process ended with exit status 3 in run; its last output: bye"),
    ],
)
def test_each_way_to_end_has_its_category(
    code: int | None, findings: list[dict[str, str]], category: str, message: str
) -> None:
    fault = ended_because(code, "in run", findings, "\nbye\n")
    assert (fault.category, fault.message.startswith(message)) == (category, True), fault.message


def test_of_what_it_printed_the_end_is_shown_and_nothing_where_it_printed_nothing() -> None:
    assert ended_because(3, "in run", [], " \n").message.endswith("in run")
    assert ended_because(3, "in run", [], 500 * "a" + "b").message.endswith(": " + 399 * "a" + "b")
