"""Themes as data: every ``*.toml`` of this folder and of the user's, checked; no Textual here.

A theme names Textual's colours and, under ``[variables]``, those of stitch's own matters: gain and
regression, gates that pass or fail, hot and cold, code and diffs.  What it leaves out has a built-in value.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

COLORS = (
    "primary", "secondary", "accent", "foreground", "background", "surface", "panel",
    "success", "warning", "error",
)  # fmt: skip
VARIABLES = {
    "gain": "$success",
    "regression": "$error",
    "gate-pass": "$success",
    "gate-fail": "$error",
    "waiting": "$warning",
    "muted": "#808b96",
    "hot": "#ff8c42",
    "cold": "#4fa3d1",
    "diff-added": "#2e7d3240",
    "diff-removed": "#b7354440",
    "diff-mark": "#e0b04050",
    "code-comment": "#7d8590",
    "code-string": "#a5d6a7",
    "code-number": "#f0b673",
    "code-type": "#6cc7d9",
    "code-keyword": "#c792ea",
    "code-preproc": "#d3869b",
    "code-cuda": "#8bd450",
    "code-call": "#82aaff",
    "code-function": "#ffd479",
    "code-builtin": "#8bd450",
}
"""stitch's own variables and their values where a theme has none."""
_NAME = re.compile(r"[a-z0-9-]+")
_COLOR = re.compile(r"#[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3}(?:[0-9a-fA-F]{2})?)?|ansi_[a-z_]+|\$[a-z-]+")


class InvalidTheme(ValueError):
    """A theme file that cannot be used; says where and why."""


@dataclass(frozen=True)
class Palette:
    """One theme."""

    name: str
    label: str
    """A few words about it."""
    dark: bool
    colors: dict[str, str]
    variables: dict[str, str] = field(default_factory=dict)
    ansi: bool = False
    """Made of the terminal's own sixteen colours."""


def builtin() -> list[Palette]:
    """The themes that come with stitch, by name."""
    return [read(path) for path in sorted(Path(__file__).parent.glob("*.toml"))]


def of_user(folder: Path) -> Iterator[Palette | InvalidTheme]:
    """The themes of the user's folder; a file that is not one gives the reason instead."""
    for path in sorted(folder.glob("*.toml")):
        try:
            yield read(path)
        except InvalidTheme as fault:
            yield fault


def read(path: Path) -> Palette:
    """The theme in a file.

    Raises:
        InvalidTheme: it cannot be read, misses a colour, or names one that there is not.
    """
    if path.exists() and not path.is_file():
        raise InvalidTheme(f"{path.name}: not a regular file")
    try:
        data = tomllib.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidTheme(f"{path.name}: {error}") from error
    name = data.pop("name", path.stem)
    label, dark, ansi = data.pop("label", ""), data.pop("dark", True), data.pop("ansi", False)
    variables = data.pop("variables", {})
    _require(isinstance(variables, dict), path, "variables is a table")
    _require(isinstance(name, str) and _NAME.fullmatch(name) is not None, path, "name is a-z, 0-9, -")
    _require(isinstance(label, str) and {type(dark), type(ansi)} == {bool}, path, "label, dark, ansi")
    for known, given in ((COLORS, data), (VARIABLES, variables)):
        for key, value in given.items():
            _require(key in known, path, f"no colour {key!r}; there is {', '.join(known)}")
            is_color = isinstance(value, str) and _COLOR.fullmatch(value) is not None
            named = not is_color or not value.startswith("$") or value[1:] in COLORS
            _require(is_color and named, path, f"{key} = {value!r} is no colour")
    _require("primary" in data, path, "primary is missing")
    return Palette(name, label, dark, data, variables, ansi)


def _require(holds: bool, path: Path, text: str) -> None:
    if not holds:
        raise InvalidTheme(f"{path.name}: {text}")
