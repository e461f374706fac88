"""Themes are data: those of stitch are complete and readable, a wrong one of the user's is explained."""

import os
import re
from pathlib import Path

import pytest

from stitch_tui import themes, theming
from stitch_tui.themes import InvalidTheme, Palette

ALL = themes.builtin()
READ_ON_BACKGROUND = ("foreground", "success", "error", "warning", "primary", "accent")


def luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """By WCAG 2: 4.5 is what text needs."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_there_are_dark_light_and_high_contrast_ones() -> None:
    assert sum(p.dark and not p.ansi for p in ALL) >= 3
    assert sum(not p.dark for p in ALL) >= 2
    assert theming.DEFAULT in {p.name for p in ALL}


@pytest.mark.parametrize("palette", [p for p in ALL if not p.ansi], ids=lambda p: p.name)
def test_text_can_be_read(palette: Palette) -> None:
    background = palette.colors["background"]
    least = 7.0 if palette.name == "stitch-contrast" else 4.5
    for name in READ_ON_BACKGROUND:
        assert contrast(palette.colors[name], background) >= (least if name == "foreground" else 4.5), name
    shown = themes.VARIABLES | palette.variables
    for name, color in shown.items():
        if name.startswith("code-") or name in ("muted", "hot", "cold"):
            low = 3.0 if name in ("muted", "code-comment") else 4.5
            assert contrast(color, background) >= low, name
        if name.startswith("code-"):
            for ground in ("diff-added", "diff-removed"):
                assert contrast(color, shown[ground]) >= 2.5, (name, ground)


@pytest.mark.parametrize("palette", ALL, ids=lambda p: p.name)
def test_textual_takes_every_theme(palette: Palette) -> None:
    made = theming.textual_theme(palette)
    assert set(themes.VARIABLES) <= set(made.variables)
    assert made.to_color_system().generate()["background"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('primary = "#zzz"', "no colour"),
        ('primary = "#fff"\nfoo = "#fff"', "no colour 'foo'"),
        ('primary = "#fff"\n[variables]\nfoo = "#fff"', "no colour 'foo'"),
        ('primary = "#fff"\n[variables]\ngain = "$nothing"', "no colour"),
        ('secondary = "#fff"', "primary is missing"),
        ('name = "a b"\nprimary = "#fff"', "name is"),
        ("primary = ", "Invalid value"),
    ],
)
def test_a_wrong_theme_is_explained(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    [found] = themes.of_user(tmp_path)
    assert isinstance(found, InvalidTheme)
    assert re.search(said, str(found))
    assert "mine.toml" in str(found)


def test_a_pipe_among_the_themes_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mine.toml")
    assert [str(found) for found in themes.of_user(tmp_path)] == ["mine.toml: not a regular file"]


def test_a_theme_of_the_users_needs_one_colour(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('primary = "#ff8800"')
    [found] = themes.of_user(tmp_path)
    assert isinstance(found, Palette)
    variables = theming.textual_theme(found).variables
    assert not [name for name, color in variables.items() if color.startswith("$")], (
        "the rest is made from it"
    )
