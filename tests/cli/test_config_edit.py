import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stitch_tui.config import load
from stitch_tui.config_edit import set_setting
from stitch_tui.config_fields import catalogue
from stitch_tui.config_layers import Layer, file_values
from stitch_tui.toml_text import render
from stitch_tui.tools.errors import EnvironmentFault

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
positive = st.floats(min_value=1e-6, max_value=1e12)
ALLOWED = {
    "limits.minutes": positive,
    "limits.iterations": st.integers(1, 10**9),
    "limits.cost": st.floats(0, 1e12),
    "reference.path": words,
    "reference.mode": st.sampled_from(["train", "eval"]),
    "session.warm_start": st.booleans(),
    "autonomy.deny": st.lists(st.sampled_from(["network", "commit"]), max_size=3),
    "models.coder.model": words,
    "models.coder.temperature": st.floats(0, 2),
    "models.coder.headers.X-Team": words,
    "device.arch": st.from_regex(r"(sm_[1-9][0-9]{1,2}[af]?)?", fullmatch=True),
    "models.coder.base_url": st.sampled_from(["", "http://localhost:1/v1", "https://[::1]/v1"]),
}
changes = st.lists(
    st.sampled_from(sorted(ALLOWED)).flatmap(lambda k: st.tuples(st.just(k), ALLOWED[k])), max_size=8
)


@given(changes)
def test_what_was_set_is_what_holds(changes: list[tuple[str, Any]]) -> None:
    """Whatever is set in whatever order, in a file of comments: the last value of each holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stitch.toml"
        path.write_text("# mine\n[limits]  # of a run\n# more\n")
        for name, value in changes:
            set_setting(path, Layer.USER, name, value if isinstance(value, str) else render(value))
        assert path.read_text().startswith("# mine\n[limits]  # of a run\n")
        values = file_values(path, Layer.USER)
    assert {".".join(key): value.value for key, value in values.items()} == dict(changes)


@given(changes)
def test_the_environment_says_the_same_as_a_file(changes: list[tuple[str, Any]]) -> None:
    wanted = {
        name: value
        for name, value in dict(changes).items()
        if "headers" not in name and "\0" not in str(value)
    }
    environ = {
        f"STITCH_{name.replace('.', '__').upper()}": value if isinstance(value, str) else render(value)
        for name, value in wanted.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        effective = load(Path(folder), environ=environ)
    assert {".".join(key): value.value for key, value in effective.origins.items()} == wanted


def test_every_allowed_name_is_a_setting() -> None:
    known = {".".join(path) for path in catalogue()}
    assert {name.removesuffix(".X-Team") for name in ALLOWED} <= known


def test_a_file_that_cannot_be_written_is_an_environment_error() -> None:
    with pytest.raises(EnvironmentFault, match="cannot write"):
        set_setting(Path("/proc/none/stitch.toml"), Layer.USER, "limits.minutes", "3")


def test_a_link_keeps_its_target_and_a_file_its_mode(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("[limits]\nminutes = 3\n")
    real.chmod(0o600)
    (tmp_path / "stitch.toml").symlink_to(real)
    set_setting(tmp_path / "stitch.toml", Layer.USER, "limits.minutes", "4")
    assert (tmp_path / "stitch.toml").is_symlink()
    assert real.read_text() == "[limits]\nminutes = 4\n"
    assert real.stat().st_mode & 0o777 == 0o600
