"""The layers of settings as flat values, each with its place: a file, the environment, flags."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from stitch_tui.config_fields import Path as Key
from stitch_tui.config_fields import Setting, catalogue, nearest, owner, tables, value_from_text
from stitch_tui.toml_text import places, render
from stitch_tui.tools import foreign_toml
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.regular_file import read_regular

PREFIX = "STITCH_"
SIZE_LIMIT = 1_000_000
"""Bytes; a longer configuration file is a mistake."""


class Layer(StrEnum):
    DEFAULT = "default"
    USER = "user file"
    PROJECT = "project file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True)
class Value:
    """A value, the layer that set it, and where: ``file:line``, a variable or a flag."""

    value: Any
    layer: Layer
    where: str


Values = dict[Key, Value]


def read(path: Path) -> bytes:
    """The bytes of a configuration file; none when there is no such file.

    Raises:
        UsageError: it is there and cannot be read, is no regular file, or is far too long.
    """
    try:
        return read_regular(path, SIZE_LIMIT)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UsageError(
            "cannot read the configuration", where=str(path), why=error.strerror or str(error)
        ) from error


def file_values(path: Path, layer: Layer, content: bytes | None = None) -> Values:
    """What the file at `path` sets, by key, with file:line; `content` stands in for what it holds now.

    Raises:
        UsageError: it cannot be read, is not TOML, or names an unknown key.
    """
    text, data = parse(path, read(path) if content is None else content)
    lines = places(text)

    def where(key: Key) -> str:
        depth = next((n for n in range(len(key), 0, -1) if key[:n] in lines), 0)
        return f"{path}:{lines.get(key[:depth], 1)}"

    return {key: Value(value, layer, where(key)) for key, value in _leaves(data, (), where)}


def parse(path: Path, content: bytes) -> tuple[str, dict[str, Any]]:
    """Text and data of a TOML file.

    Raises:
        UsageError: with line and column where it stops being TOML.
    """
    try:
        text = content.decode("utf-8-sig")
        return text, foreign_toml.loads(text)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UsageError("not UTF-8", where=f"{path}:{line}") from error
    except tomllib.TOMLDecodeError as error:
        why, line, column = _decode_place(str(error), text)
        raise UsageError("not TOML", where=f"{path}:{line}:{column}", why=why) from error


def environment_values(environ: Mapping[str, str]) -> Values:
    """What ``STITCH_TABLE__KEY`` variables set.

    Raises:
        UsageError: a variable names no setting.
    """
    values: Values = {}
    for name in sorted(environ):
        if not name.startswith(PREFIX):
            continue
        key = tuple(name.removeprefix(PREFIX).lower().split("__"))
        if not (setting := catalogue().get(key)):
            name_of_it = nearest(key, settings_only=True) or "limits.minutes"
            close = PREFIX + name_of_it.replace(".", "__").upper()
            raise UsageError(
                f"unknown setting {'.'.join(key)}",
                where=name,
                advice=f"variables are {PREFIX}TABLE__KEY, such as {close}",
            )
        value = value_from_text(setting, environ[name])
        values |= {leaf: Value(v, Layer.ENVIRONMENT, name) for leaf, v in _spread(key, value)}
    return values


def flag_values(flags: Mapping[str, Any]) -> Values:
    """What flags set, by dotted name; text is read as `stitch config set` reads it.

    Raises:
        UsageError: a name is no setting.
    """
    values: Values = {}
    for name, value in flags.items():
        key = tuple(name.split("."))
        setting = known_setting(key, "command line")
        if isinstance(value, str):
            value = value_from_text(setting, value) if key in catalogue() else value
        values |= {leaf: Value(v, Layer.FLAG, "command line") for leaf, v in _spread(key, value)}
    return values


def known_setting(key: Key, where: str) -> Setting:
    """The setting that `key` belongs to.

    Raises:
        UsageError: there is none; names the nearest.
    """
    if setting := owner(key):
        return setting
    close = nearest(key, settings_only=key in tables())
    advice = f"did you mean {close}?" if close else "`stitch config show` lists every setting"
    raise UsageError(f"unknown setting {'.'.join(key)}", where=where, advice=advice)


def _leaves(data: Mapping[str, Any], path: Key, where: Callable[[Key], str]) -> Iterator[tuple[Key, Any]]:
    for name, value in data.items():
        key = (*path, name)
        if key in tables():
            if not isinstance(value, dict):
                raise UsageError(
                    f"{'.'.join(key)} = {shown(value)} is not allowed",
                    where=where(key),
                    why=f"it is a table, [{'.'.join(key)}]",
                )
            yield from _leaves(value, key, where)
        else:
            known_setting(key, where(key))
            yield from _spread(key, value)


def _spread(key: Key, value: Any) -> Iterator[tuple[Key, Any]]:
    """A setting's value as leaves: one, or each of its free keys."""
    setting = catalogue().get(key)
    if setting and setting.is_mapping and isinstance(value, dict):
        yield from (((*key, name), item) for name, item in value.items())
    else:
        yield key, value


def shown(value: Any) -> str:
    text = render(value) if isinstance(value, str | int | float | list | dict) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _decode_place(message: str, text: str) -> tuple[str, int, int]:
    """tomllib's message without its place, and the place as line and column."""
    if match := re.search(r" \(at line (\d+), column (\d+)\)$", message):
        return message[: match.start()], int(match[1]), int(match[2])
    lines = text.rstrip("\n").split("\n")
    return re.sub(r" \(at .*\)$", "", message), len(lines), len(lines[-1]) + 1
