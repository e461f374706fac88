import tomllib
from pathlib import Path

import pytest

from stitch_tui.agents.settings import Settings
from stitch_tui.config import load
from stitch_tui.config_example import example
from stitch_tui.config_fields import Setting, catalogue

EXAMPLE = Path(__file__).resolve().parents[2] / "stitch.toml.example"


def test_the_example_is_what_the_settings_say() -> None:
    assert EXAMPLE.read_text() == example(), "run: python -m stitch_tui.config_example"


@pytest.mark.parametrize("setting", catalogue().values(), ids=lambda s: ".".join(s.path))
def test_every_setting_stands_in_the_example_with_its_sentence(setting: Setting) -> None:
    name, text = setting.path[-1], setting.text
    assert text.endswith(".")
    assert f"# {text}\n" in EXAMPLE.read_text()
    assert f"{name} = " in EXAMPLE.read_text()


def test_the_example_loads_as_a_project_file_and_changes_nothing(project: Path) -> None:
    (project / "stitch.toml").write_bytes(EXAMPLE.read_bytes())
    assert load(project, environ={}).settings == Settings()
    assert tomllib.loads(EXAMPLE.read_text())["limits"]["iterations"] == 15
