"""``stitch prompts``: the built-in texts, the user's own in their place, and the way back."""

import os
from pathlib import Path

import pytest

from stitch_tui.cli import invoke


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    return tmp_path


def test_a_prompt_is_changed_compared_and_taken_back(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["prompts", "edit", "coder-draft"]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert path == home / "stitch" / "prompts" / "coder-draft.md"
    path.write_text(path.read_text().replace("You write CUDA C++", "You write fine CUDA C++"))
    assert invoke(["prompts", "diff", "coder-draft"]) == 0
    assert "+You write fine CUDA C++" in capsys.readouterr().out
    invoke(["prompts", "show", "coder-draft"])
    assert capsys.readouterr().out.startswith("You write fine CUDA C++")
    invoke(["prompts", "show"])
    assert "coder-draft      yours" in capsys.readouterr().out
    assert invoke(["prompts", "reset", "coder-draft"]) == 0
    assert not os.path.exists(path)
    capsys.readouterr()
    assert invoke(["prompts", "diff", "coder-draft"]) == 0
    assert capsys.readouterr().out == ""


def test_a_prompt_that_there_is_not_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["prompts", "show", "coder-dream"]) == 2
    assert (
        "there is coder-draft, coder-optimise, coder-program, coder-repair, planner-plan"
        in capsys.readouterr().err
    )
