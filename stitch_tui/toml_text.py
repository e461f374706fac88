"""The text of a TOML file: on which line each key stands, and edits that leave the rest as it is.

tomllib gives values without places, tomli-w writes whole files without comments.  Both are used here
on single statements: a statement ends at the first line where tomllib accepts what came so far.
"""

import copy
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tomli_w

from stitch_tui.tools.errors import UsageError

Path = tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """A table header (`keys` empty) or a key with its value, on lines `first` to before `end` (from 0)."""

    first: int
    end: int
    table: Path
    keys: Path = ()
    value: Any = None

    @property
    def path(self) -> Path:
        return self.table + self.keys


def statements(text: str) -> Iterator[Statement]:
    """The statements of a valid TOML document, in order."""
    lines, first = text.split("\n"), 0
    table: Path = ()
    while first < len(lines):
        end, parsed = _statement_at(lines, first)
        if parsed:
            if lines[first].lstrip().startswith("["):
                table = _chain(parsed, {})
                yield Statement(first, end, table)
            else:
                keys = _keys(lines[first])
                yield Statement(first, end, table, keys, _at(parsed, keys))
        first = end


def places(text: str) -> dict[Path, int]:
    """Line, from 1, of each table and key; a key in an inline table stands where the table begins."""
    found: dict[Path, int] = {}
    for statement in statements(text):
        for path in _with_children(statement.path, statement.value):
            found.setdefault(path, statement.first + 1)
    return found


def set_value(text: str, path: Path, value: Any) -> str:
    """`text` with the key at `path` set to `value`; comments, order and everything else stay.

    Raises:
        UsageError: the file is laid out in a way that this edit cannot keep.
    """
    known = list(statements(text))
    lines = text.split("\n")
    wanted = tomllib.loads(text)
    _set(wanted, path, value)
    edited = _edit(lines, known, path, value)
    try:
        kept = tomllib.loads(edited) == wanted
    except tomllib.TOMLDecodeError:
        kept = False
    if not kept:
        raise UsageError(f"cannot set {'.'.join(path)} in this file's layout", advice="edit the file by hand")
    return edited


def render(value: Any) -> str:
    """One TOML value on one line."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{render_key((key,))} = {render(item)}" for key, item in value.items())
        return "{ " + pairs + " }" if pairs else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(render(item) for item in value) + "]"
    return tomli_w.dumps({"v": value}).removeprefix("v = ").rstrip("\n")


def render_key(keys: Path) -> str:
    """A dotted key, quoted where TOML wants it."""
    return ".".join(tomli_w.dumps({key: 0}).removesuffix(" = 0\n") for key in keys)


def _edit(lines: list[str], known: list[Statement], path: Path, value: Any) -> str:
    holder = next((s for s in known if s.keys and s.path == path[: len(s.path)]), None)
    if holder:
        return _replaced(lines, holder, _inside(holder, path, value))
    siblings = [s for s in known if s.keys and s.path[:-1] == path[:-1]]
    headers = [s for s in known if not s.keys and s.table == path[:-1]]
    if after := siblings[-1:] or headers[-1:]:
        key = render_key(path[len(after[0].table) :])
        return _inserted(lines, after[0].end, [f"{key} = {render(value)}"])
    text = "\n".join(lines).rstrip(" \t\r\n")
    gap = "\n\n" if text else ""
    return f"{text}{gap}[{render_key(path[:-1])}]\n{render_key(path[-1:])} = {render(value)}\n"


def _inside(holder: Statement, path: Path, value: Any) -> Any:
    """The value of `holder` with `value` put where `path` points, in it or in its inline table."""
    rest = path[len(holder.path) :]
    if not rest:
        return value
    changed = copy.deepcopy(holder.value)
    _set(changed, rest, value)
    return changed


def _replaced(lines: list[str], holder: Statement, value: Any) -> str:
    old = "\n".join(lines[holder.first : holder.end])
    key_end = _key_end(old)
    begin = key_end + 1 + len(old[key_end + 1 :]) - len(old[key_end + 1 :].lstrip())
    new = old[:begin] + render(value) + _comment(old)
    return "\n".join([*lines[: holder.first], new, *lines[holder.end :]])


def _inserted(lines: list[str], at: int, new: list[str]) -> str:
    ending = "\r" if lines[at - 1].endswith("\r") else ""
    return "\n".join([*lines[:at], *(line + ending for line in new), *lines[at:]])


def _comment(statement: str) -> str:
    """What follows the value on its last line: blanks, a comment, a carriage return."""
    for index, character in enumerate(statement):
        if character == "#" and _parses(statement[:index]):
            bare = statement[:index].rstrip()
            return statement[len(bare) :]
    return statement[len(statement.rstrip()) :]


def _statement_at(lines: list[str], first: int) -> tuple[int, dict[str, Any]]:
    """Where the statement that begins on line `first` ends, and what it says alone ({} for none)."""
    for end in range(first + 1, len(lines) + 1):
        fragment = "\n".join(lines[first:end]) + "\n"
        if _parses(fragment):
            return end, tomllib.loads(fragment)
    return len(lines), {}


def _keys(line: str) -> Path:
    return _chain(tomllib.loads(line[: _key_end(line)] + "= 0"), 0)


def _key_end(line: str) -> int:
    """Index of the equals sign between key and value."""
    return next(i for i, c in enumerate(line) if c == "=" and _parses(line[:i] + "= 0"))


def _parses(fragment: str) -> bool:
    try:
        tomllib.loads(fragment)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _chain(parsed: Any, leaf: Any) -> Path:
    """The keys of dictionaries with one entry each, down to `leaf`."""
    keys: Path = ()
    while parsed != leaf:
        if isinstance(parsed, list):
            parsed = parsed[0]
            continue
        [(key, parsed)] = parsed.items()
        keys += (key,)
    return keys


def _with_children(path: Path, value: Any) -> Iterator[Path]:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _with_children((*path, key), item)


def _at(data: Any, path: Path) -> Any:
    for key in path:
        data = data[key]
    return data


def _set(data: dict[str, Any], path: Path, value: Any) -> None:
    for key in path[:-1]:
        data = data.setdefault(key, {})
        if not isinstance(data, dict):
            raise UsageError(f"{key} is not a table in this file", advice="edit the file by hand")
    data[path[-1]] = value
