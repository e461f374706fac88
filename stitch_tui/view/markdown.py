"""Markdown of words and rows that come from elsewhere: nothing in them is markup."""

import re
from collections.abc import Iterator, Sequence

from stitch_tui.plain_text import one_line

_MARKUP = re.compile(r"([\\`*_\[\]<>|#~!])")


def escaped(text: str) -> str:
    """`text` on one line, with a backslash before whatever Markdown would take for its own."""
    return _MARKUP.sub(r"\\\1", one_line(text))


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table; the first row is its head."""
    head, *body = rows
    yield _row(head)
    yield _row(["---"] * len(head), escape=False)
    yield from map(_row, body)


def bullets(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"* {escaped(line.strip())}" for line in lines)


def _row(cells: Sequence[str], *, escape: bool = True) -> str:
    return f"| {' | '.join(escaped(cell) if escape else cell for cell in cells)} |"
