"""A candidate that hung once is known, also to a process that starts later."""

from pathlib import Path

import pytest

from stitch_tui.tools import hangs
from stitch_tui.tools.hangs import Hangs

KEY = "ab12"


def test_a_hang_is_recalled_with_where_it_happened_and_how_to_forget_it(tmp_path: Path) -> None:
    Hangs(tmp_path).remember(KEY, "in stitch_run", 60)
    said = Hangs(tmp_path).recall(KEY, 60)
    assert "did not end within 60 s" in said
    assert "in stitch_run" in said
    assert str(tmp_path / f"{KEY}.json") in said
    assert Hangs(tmp_path).recall("cd34", 60) == ""


def test_a_longer_limit_gives_it_another_chance(tmp_path: Path) -> None:
    Hangs(tmp_path).remember(KEY, "in stitch_run", 60)
    assert Hangs(tmp_path).recall(KEY, 30)
    assert Hangs(tmp_path).recall(KEY, 61) == ""


@pytest.mark.parametrize("text", ["", "[]", '{"since": 1}', '{"since": "x", "deadline_s": 1, "where": ""}'])
def test_a_damaged_memory_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / f"{KEY}.json").write_text(text)
    assert Hangs(tmp_path).recall(KEY, 1) == ""


def test_the_oldest_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hangs, "KEPT", 2)
    for number in range(4):
        Hangs(tmp_path).remember(str(number), "in stitch_run", 1)
    assert len(list(tmp_path.iterdir())) == 2
    assert Hangs(tmp_path).recall("3", 1)
