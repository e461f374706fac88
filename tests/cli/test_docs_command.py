"""``stitch docs``: a first use is told what to do; what was added is found, listed and taken out again."""

import json
from pathlib import Path

import pytest

from stitch_tui.cli import invoke
from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.client import is_indexed
from stitch_tui.tools.docs.index import Index
from stitch_tui.tools.paths import cache_dir


def test_the_first_use_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for command in (["search", "anything"], ["list"], ["stats"]):
        assert invoke(["docs", *command]) == 3
        assert "nothing is indexed yet (run `stitch docs build`)" in capsys.readouterr().err
    assert invoke(["docs", "add", "ftp://example.org/a.html"]) == 2
    assert "only http and https URLs are fetched" in capsys.readouterr().err


def test_a_cache_that_cannot_be_made_is_named_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nothing")
    for command in (["build"], ["search", "anything"]):
        assert invoke(["docs", *command]) == 3
        said = capsys.readouterr().err
        assert "cannot create a folder of stitch's" in said
        assert "XDG_CACHE_HOME" in said
        assert "worker" not in said
    assert not is_indexed(), "doctor and screen, which ask, go on"


@pytest.mark.slow
def test_pages_of_ones_own_are_added_found_and_removed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Index(cache_dir("docs")).build(sources.notes(), lambda *_: None)
    (project / "ours.md").write_text("# House rules\n\nTiles are 64 wide [@click=x]a[/]\x1b[31m.\n")
    assert invoke(["docs", "add", "ours.md", "--version", "7"]) == 0
    assert "1 of 1 files read, 1 chunk," in capsys.readouterr().out
    assert invoke(["docs", "search", "how wide are tiles", "--library", "ours"]) == 0
    out = capsys.readouterr().out
    assert "1. House rules  (ours 7)" in out
    assert f"{project / 'ours.md'}:1" in out
    assert "\x1b" not in out
    assert invoke(["docs", "search", "coalesced loads", "--json", "--limit", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [passage["library"] for passage in found] == ["notes", "notes"]
    assert invoke(["docs", "list"]) == 0
    assert "1 in 1 files" in capsys.readouterr().out
    assert invoke(["docs", "remove", "ours.md"]) == 0
    assert invoke(["docs", "search", "tiles", "--library", "ours"]) == 1
    assert "nothing was found" in capsys.readouterr().out
    assert invoke(["docs", "add", "none.pdf"]) == 2
    assert "no such file" in capsys.readouterr().err
    assert invoke(["docs", "stats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["overlap"] == 100
