"""Lines of code against an earlier version: row by row while they stream, exactly once they are complete.

A stream is aligned greedily, a line at a time at constant cost: the earlier version's next lines are
matched in order, what is jumped over counts as removed.  A finished text gets a proper diff.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

EXACT_CELLS = 4_000_000
"""Largest product of both lengths that gets a proper diff; above it the greedy one stands."""
_JUMP_CHARS = 4
"""Shorter lines, such as ``}``, match in place only: they say too little to jump for."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a diff."""

    sign: str
    """``+`` new, ``-`` removed, blank: in both."""
    old: int
    """Line number in the earlier version, from 1; 0: not there."""
    new: int
    """Line number in the new version, from 1; 0: not there."""
    text: str
    shift: tuple[int, int] = (0, 0)
    """Where its file begins among the lines of several files, in the earlier and the new version."""


class Alignment:
    """Aligns lines as they come with those of `base`.

    Args:
        skipped: lines of the new version that will not come; the next one is the one after them.
    """

    def __init__(self, base: Sequence[str], skipped: int = 0) -> None:
        self._base, self._at, self._new = base, 0, skipped
        self._places: dict[str, list[int]] = {}
        for number, line in enumerate(base):
            self._places.setdefault(line, []).append(number)

    def add(self, line: str) -> Iterator[Row]:
        """The rows that the next new line adds."""
        self._new += 1
        found = self._found(line)
        if found is None:
            yield Row("+", 0, self._new, line)
            return
        yield from self._removed(found)
        self._at = found + 1
        yield Row(" ", found + 1, self._new, line)

    def rest(self) -> Iterator[Row]:
        """What is left of the earlier version once the new one has ended."""
        yield from self._removed(len(self._base))
        self._at = len(self._base)

    def _found(self, line: str) -> int | None:
        places = self._places.get(line)
        if places is None:
            return None
        index = bisect_left(places, self._at)
        if index == len(places):
            return None
        near = len(line.strip()) >= _JUMP_CHARS or places[index] == self._at
        return places[index] if near else None

    def _removed(self, end: int) -> Iterator[Row]:
        for number in range(self._at, end):
            yield Row("-", number + 1, 0, self._base[number])


def diff(base: Sequence[str], lines: Sequence[str]) -> list[Row]:
    """All rows of the diff of two finished texts."""
    if len(base) * len(lines) > EXACT_CELLS:
        alignment = Alignment(base)
        rows = [row for line in lines for row in alignment.add(line)]
        return [*rows, *alignment.rest()]
    rows = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, base, lines, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [Row(" ", i1 + k + 1, j1 + k + 1, lines[j1 + k]) for k in range(i2 - i1)]
            continue
        rows += [Row("-", i + 1, 0, base[i]) for i in range(i1, i2)]
        rows += [Row("+", 0, j + 1, lines[j]) for j in range(j1, j2)]
    return rows


def plain(lines: Sequence[str]) -> list[Row]:
    """The rows of a text that has no earlier version: nothing is marked as new."""
    return [Row(" ", 0, number, line) for number, line in enumerate(lines, 1)]


def pairs(rows: Sequence[Row]) -> list[tuple[Row | None, Row | None]]:
    """Rows side by side: the earlier version left, the new one right; None where one has no line."""
    paired: list[tuple[Row | None, Row | None]] = []
    at = 0
    while at < len(rows):
        if rows[at].sign == " ":
            paired.append((rows[at], rows[at]))
            at += 1
            continue
        end = at
        while end < len(rows) and rows[end].sign != " ":
            end += 1
        left = [row for row in rows[at:end] if row.sign == "-"]
        right = [row for row in rows[at:end] if row.sign == "+"]
        paired += zip_longest(left, right)
        at = end
    return paired


def changed(rows: Sequence[Row]) -> tuple[int, int]:
    """How many lines are new and how many removed."""
    return sum(row.sign == "+" for row in rows), sum(row.sign == "-" for row in rows)
