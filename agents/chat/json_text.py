"""JSON as models write it: comments, trailing commas, prose around it, several objects."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from stitch_tui.tools.encodable import encodable_data

MOST_STARTS = 200
"""Braces that are tried as the beginning of an object; an answer with more is no honest attempt."""
MOST_DEPTH = 100


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Every whole JSON object at the outermost level of `text`, in order."""
    at = starts = 0
    while (start := text.find("{", at)) >= 0 and starts < MOST_STARTS:
        starts += 1
        end = _end(text, start)
        value = parsed(text[start:end]) if end else None
        if isinstance(value, dict):
            yield value
            at = end
        else:
            at = start + 1


def is_unfinished(text: str) -> bool:
    """Does the first object of `text` not end?  Then objects found in it are parts of that one."""
    start = text.find("{")
    return start >= 0 and _end(text, start) == 0


def parsed(text: str) -> Any:
    """The value of JSON that may hold comments and trailing commas; None when it is none."""
    for form in (str, _plain):
        with suppress(ValueError, RecursionError):
            return encodable_data(json.loads(form(text)))
    return None


def _end(text: str, start: int) -> int:
    """Where the object that begins at `start` ends; 0 when it does not."""
    depth = 0
    for at, character in _structure(text, start):
        if character in "{[":
            depth += 1
            if depth > MOST_DEPTH:
                return 0
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return at + 1
    return 0


def _structure(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Characters outside strings and comments, with their places."""
    at, end = start, len(text)
    while at < end:
        character = text[at]
        if character == '"':
            at = _after_string(text, at)
        elif text.startswith("//", at):
            newline = text.find("\n", at)
            at = newline if newline >= 0 else end
        elif text.startswith("/*", at):
            close = text.find("*/", at)
            at = close + 2 if close >= 0 else end
        else:
            yield at, character
            at += 1


def _after_string(text: str, at: int) -> int:
    """The place behind the string that begins at `at`."""
    at += 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _plain(text: str) -> str:
    """`text` without comments and trailing commas; raw newlines in strings become escapes."""
    out, last = list[str](), 0
    for at, character in _structure(text, 0):
        if at > last:
            out.append(_string_or_nothing(text[last:at]))
        if character in "}]":
            _drop_comma(out)
        out.append(character)
        last = at + 1
    out.append(_string_or_nothing(text[last:]))
    return "".join(out)


def _string_or_nothing(skipped: str) -> str:
    """What lay between two structural characters: strings stay, comments go."""
    kept, at = list[str](), 0
    while (start := skipped.find('"', at)) >= 0:
        comment = min((c for c in (skipped.find("//", at), skipped.find("/*", at)) if c >= 0), default=-1)
        if 0 <= comment < start:
            close = "\n" if skipped.startswith("//", comment) else "*/"
            found = skipped.find(close, comment + 2)
            if found < 0:
                break
            at = found + len(close)
            continue
        end = _after_string(skipped, start)
        kept.append(skipped[start:end].replace("\n", "\\n").replace("\t", "\\t"))
        at = end
    return "".join(kept)


def _drop_comma(out: list[str]) -> None:
    for index in range(len(out) - 1, -1, -1):
        if out[index] == ",":
            del out[index]
            return
        if out[index].strip():
            return
