"""``stitch prompts``: the built-in texts, the user's own in their place, and the way back."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from stitch_tui.agents.cast import require_models
from stitch_tui.agents.settings import Settings
from stitch_tui.cli import invoke
from stitch_tui.tools.errors import UsageError


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


BROKEN: dict[str, Callable[[Path], object]] = {
    "bytes": lambda path: path.write_bytes(b"\xff\xfe"),
    "nothing": lambda path: path.write_text(" \n"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to nowhere": lambda path: path.symlink_to("/nowhere"),
    "a link without end": lambda path: path.symlink_to("/dev/zero"),
    "a pipe": os.mkfifo,
    "too long": lambda path: path.write_bytes(b"w" * 2_000_000),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_prompt_that_cannot_be_used_is_said_before_a_run_and_taken_back(
    home: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = home / "stitch" / "prompts" / "coder-repair.md"
    path.parent.mkdir(parents=True)
    BROKEN[name](path)
    assert invoke(["prompts", "show", "coder-repair"]) == 2
    assert "to go back: stitch prompts reset coder-repair" in capsys.readouterr().err
    invoke(["prompts", "show"])
    assert "coder-repair     yours" in capsys.readouterr().out
    role = {"provider": "openai", "model": "tiny", "base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(UsageError, match="prompts reset"):
        require_models(Settings.model_validate({"models": {"coder": role}}))
    require_models(Settings.model_validate({"models": {"planner": role}}))
    assert invoke(["prompts", "reset", "coder-repair"]) == 0
    require_models(Settings.model_validate({"models": {"coder": role}}))


def test_a_folder_in_a_prompts_place_is_left_and_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / "stitch" / "prompts" / "coder-draft.md"
    path.mkdir(parents=True)
    assert invoke(["prompts", "reset", "coder-draft"]) == 3
    assert f"{path}: cannot remove: Is a directory" in capsys.readouterr().err


def test_a_prompt_that_there_is_not_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["prompts", "show", "coder-dream"]) == 2
    assert (
        "there is coder-draft, coder-optimise, coder-program, coder-repair, planner-plan"
        in capsys.readouterr().err
    )
