"""What a model's answer holds between code fences, thinking left out.  Tolerant, and never ambiguous.

The rules, in order: thinking blocks go first; a fence is three or more backticks or tildes at the start of
a line, closed by a line of at least as many and nothing else; what stands inside a longer fence is its
text.  A fence that is never closed counts only when nothing of its kind is complete.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_THINKING = re.compile(r"<(think|thinking|reasoning|thought)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPENED = re.compile(r"<(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_CLOSED = re.compile(r"</(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_FENCE = re.compile(r"^( {0,3}|\t)(`{3,}|~{3,})[ \t]*([^\n]*)$")


@dataclass(frozen=True)
class Fence:
    """A fenced block; `kind` is the first word behind the opening ticks, lower case."""

    kind: str
    text: str
    is_closed: bool


def normal(text: str) -> str:
    """`text` with Unix line ends and without a byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def without_thinking(text: str) -> str:
    """`text` without what a model thought aloud.

    A closing tag without an opening one ends a thought whose beginning the chat template holds; an opening
    one without an end means that all the rest is thought.
    """
    text = _THINKING.sub("", text)
    opened, closed = _OPENED.search(text), _CLOSED.search(text)
    if closed and not (opened and opened.start() < closed.start()):
        text = text[closed.end() :]
        opened = _OPENED.search(text)
    return text[: opened.start()] if opened and _outside_fences(text, opened.start()) else text


def fences(text: str) -> list[Fence]:
    """The fenced blocks of an answer, in order."""
    return list(_fences(without_thinking(normal(text)).split("\n")))


def prose(text: str) -> str:
    """What stands outside the fences."""
    lines, ticks = list[str](), ""
    for line in without_thinking(normal(text)).split("\n"):
        match = _FENCE.match(line)
        if not ticks and match and _opens(match):
            ticks = match[2]
        elif ticks:
            ticks = "" if match and _closes(match, ticks) else ticks
        else:
            lines.append(line)
    return "\n".join(lines)


def _fences(lines: list[str]) -> Iterator[Fence]:
    ticks, kind, body = "", "", list[str]()
    for line in lines:
        match = _FENCE.match(line)
        if ticks and match and _closes(match, ticks):
            yield Fence(kind, "\n".join(body), is_closed=True)
            ticks = ""
        elif ticks:
            body.append(line)
        elif match and _opens(match):
            words = match[3].split()
            ticks, kind, body = match[2], words[0].lower() if words else "", []
    if ticks:
        yield Fence(kind, "\n".join(body), is_closed=False)


def _opens(match: re.Match[str]) -> bool:
    """Inline code such as ```` ```x``` ```` opens nothing."""
    return not (match[2].startswith("`") and "`" in match[3])


def _closes(match: re.Match[str], ticks: str) -> bool:
    return match[2][0] == ticks[0] and len(match[2]) >= len(ticks) and not match[3].strip()


def _outside_fences(text: str, at: int) -> bool:
    before = list(_fences(text[:at].split("\n")))
    return not before or before[-1].is_closed
