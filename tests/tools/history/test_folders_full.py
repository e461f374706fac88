"""What the `.stitch` folder leaves behind when it cannot be made."""

import os
from pathlib import Path

import pytest

from stitch_tui.tools.atomic_write import replace_file, writing
from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.history import folders


def test_a_folder_that_cannot_be_filled_is_taken_away_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(EnvironmentFault, match="No space left"):
        folders.state_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_an_environment_fault(tmp_path: Path) -> None:
    (tmp_path / "kernels").write_text("in the way")
    path = tmp_path / "kernels" / "s01.cu"
    with pytest.raises(EnvironmentFault, match="kernels"), writing(path, "cannot write a candidate"):
        replace_file(path, b"x")
