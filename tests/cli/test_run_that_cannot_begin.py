"""``stitch --auto --json`` on a run that cannot begin."""

import json
from pathlib import Path

import pytest

from stitch_tui.cli import invoke


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
    event = json.loads(printed.out)
    assert (event["type"], event["exit_code"], event["status"]) == ("session.finished", 2, "failed")
    assert words in event["reason"]
