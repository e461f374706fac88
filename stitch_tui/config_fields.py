"""The settings by dotted name: which there are, what each says, and the nearest to a wrong one."""

import difflib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from stitch_tui.agents.settings import Settings
from stitch_tui.tools import foreign_toml
from stitch_tui.tools.field_docs import sentences

Path = tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """One setting: its path, built-in value and the sentence that documents it, `text`."""

    path: Path
    default: Any
    table: type[BaseModel]
    """The class that it is a field of."""

    @property
    def text(self) -> str:
        return sentences(self.table).get(self.path[-1], "")

    @property
    def is_mapping(self) -> bool:
        """Whether its own keys are free, as those of request headers are."""
        return isinstance(self.default, dict)


@cache
def catalogue() -> dict[Path, Setting]:
    """Every setting, in the order of the settings' classes."""
    return {setting.path: setting for setting in _settings(Settings(), ())}


@cache
def tables() -> frozenset[Path]:
    """Every table, the top level included."""
    return frozenset(path[:depth] for path in catalogue() for depth in range(len(path)))


def owner(path: Path) -> Setting | None:
    """The setting that `path` names, or whose free keys it is one of."""
    known = catalogue()
    if path in known:
        return known[path]
    outer = known.get(path[:-1])
    return outer if outer and outer.is_mapping else None


def nearest(path: Path, *, settings_only: bool = False) -> str:
    """The known setting or table closest to a wrong `path`, dotted; empty when none is close.

    With `settings_only` a table stands for its first setting.
    """
    names = [".".join(known) for known in [*catalogue(), *tables()] if known]
    close = difflib.get_close_matches(".".join(path), names, n=1, cutoff=0.6)
    if not close:
        last = [name for name in names if name.rsplit(".", 1)[-1] == path[-1]]
        close = difflib.get_close_matches(".".join(path), last, n=1, cutoff=0.0)
    found = close[0] if close else ""
    if settings_only and tuple(found.split(".")) in tables():
        return next(name for name in names if name.startswith(f"{found}."))
    return found


def value_from_text(setting: Setting, text: str) -> Any:
    """The value that `text` (environment, command line) stands for: TOML, or the text itself.

    Settings that are words take the text as it is; a list may be written ``a,b``.
    """
    if isinstance(setting.default, str):
        return text
    try:
        return foreign_toml.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        pass
    if isinstance(setting.default, tuple):
        return [word.strip() for word in text.split(",") if word.strip()]
    return text


def _settings(table: BaseModel, path: Path) -> Iterator[Setting]:
    for name in type(table).model_fields:
        value = getattr(table, name)
        if isinstance(value, BaseModel):
            yield from _settings(value, (*path, name))
        else:
            yield Setting((*path, name), value, type(table))
