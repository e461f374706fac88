"""``stitch --auto --json`` on a run that cannot begin."""

import json
import os
import signal
from pathlib import Path

import pytest

from stitch_tui.cli import invoke
from stitch_tui.commands import run
from stitch_tui.tools.errors import StitchError


@pytest.mark.parametrize(
    ("arguments", "config", "words"),
    [
        (["nope.py"], "", "no such file"),
        (["nope.py"], "[limits]\niteration = 3\n", "limits.iterations"),
        (["nope.py"], '[models.coder]\nbase_url = "http://x/v1"\n', "not trusted"),
        (["--set", "minutes"], "", "KEY=VALUE"),
    ],
)
def test_it_says_so_in_one_line_of_stderr_and_one_last_event(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], config: str, words: str
) -> None:
    if config:
        (project / "stitch.toml").write_text(config)
    assert invoke(["--auto", "--json", *arguments]) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert words in line
    event = json.loads(printed.out.splitlines()[-1])
    assert (event["type"], event["exit_code"], event["status"]) == ("session.finished", 2, "failed")
    assert words in event["reason"]


@pytest.mark.parametrize("name", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_engine_runs_is_an_interruption_with_its_code(name: signal.Signals) -> None:
    before = signal.getsignal(name)
    with pytest.raises(StitchError, match="interrupted") as stopped, run._signals():
        os.kill(os.getpid(), name)
    assert stopped.value.exit_code == 128 + name
    assert signal.getsignal(name) is before
