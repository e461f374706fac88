"""Session names and the .stitch folder."""

import stat
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.history import session_name, state_folder, work_folder
from stitch_tui.tools.history.iteration import SessionName

NOW = datetime(2026, 11, 29, 14, 2)


def test_a_session_is_named_by_time_and_slug_and_counts_collisions() -> None:
    assert session_name("LeNet", NOW) == "20261129-1402-lenet"
    assert session_name("pkg.mod:Le Net!", NOW) == "20261129-1402-pkg-mod-le-net"
    assert session_name("漢字", NOW) == "20261129-1402-session"
    taken = {"20261129-1402-x", "20261129-1402-x-2"}
    assert session_name("x", NOW, taken) == "20261129-1402-x-3"


@given(st.text())
def test_any_slug_gives_a_valid_session_name(slug: str) -> None:
    name = session_name(slug, NOW)
    assert TypeAdapter(SessionName).validate_python(name) == name


def test_the_state_folder_is_private_and_hides_itself(project: Any) -> None:
    folder = state_folder(project.path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / ".gitignore").read_text() == "*\n"
    assert work_folder(project.path, "s") == folder / "work" / "s"
    assert work_folder(project.path, "s").is_dir()
    assert project.git("status", "--porcelain") == ""


@pytest.mark.parametrize("kind", ["file", "link", "nowhere"])
def test_something_else_named_stitch_is_refused(tmp_path: Path, kind: str) -> None:
    place = tmp_path / ".stitch"
    if kind == "file":
        place.write_text("")
    elif kind == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o755)
        place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentFault, match=r"\.stitch"):
        state_folder(tmp_path / "absent" if kind == "nowhere" else tmp_path)
    assert not (tmp_path / "elsewhere" / ".gitignore").exists()
