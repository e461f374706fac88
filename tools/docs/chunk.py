"""One piece of documentation, and the rule that keeps it short."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

TOKENIZER = "stitch-pieces-4"
"""Up to four letters, up to three digits, or one mark are one token: near to what models count of code."""
LIMIT_TOKENS = 1000
OVERLAP_TOKENS = 100
LONGEST_BRIEF = 300
_SENTENCE_END = re.compile(r"(?<=\.)\s")
_PIECE = re.compile(r"[^\W\d_]{1,4}|\d{1,3}|[^\s]")


@dataclass(frozen=True)
class Chunk:
    """A documented declaration, or a section of a page."""

    name: str
    """The identifier that it documents, or its heading."""
    title: str
    """One line: the signature, or the headings that lead to it."""
    text: str
    line: int
    """In the file, from 1."""
    anchor: str = ""
    """Where in an HTML page."""
    aliases: str = ""
    """Further names that lead here, such as those of an enumeration's values."""

    @property
    def brief(self) -> str:
        """The first sentence below the signature or heading: what headers say in one line."""
        first = self.text.partition("\n\n")[2].partition("\n\n")[0]
        return _SENTENCE_END.split(first)[0][:LONGEST_BRIEF]


@dataclass(frozen=True)
class Cut:
    """How long a chunk may be."""

    limit: int = LIMIT_TOKENS
    overlap: int = OVERLAP_TOKENS


class Lines:
    """Which line of a text, from 1, a place in it is on; found without reading what is before it again."""

    def __init__(self, text: str) -> None:
        self._ends = [match.start() for match in re.finditer("\n", text)]

    def at(self, place: int) -> int:
        return bisect_left(self._ends, place) + 1


def tokens(text: str) -> int:
    """How many tokens `TOKENIZER` makes of a text."""
    return sum(1 for _ in _PIECE.finditer(text))


def within(chunk: Chunk, cut: Cut) -> Iterator[Chunk]:
    """The chunk, or pieces of at most `cut.limit` tokens, each with the last `cut.overlap` of the one before.

    Lines count on: a piece knows the line of the file that it begins on, as far as its text keeps lines.
    """
    starts = [match.start() for match in _PIECE.finditer(chunk.text)]
    if len(starts) <= cut.limit:
        yield chunk
        return
    lines, step = Lines(chunk.text), cut.limit - cut.overlap
    for first in range(0, len(starts) - cut.overlap, step):
        end = starts[first + cut.limit] if first + cut.limit < len(starts) else len(chunk.text)
        begin = starts[first] if first else 0
        line = chunk.line + lines.at(begin) - 1
        yield replace(chunk, text=chunk.text[begin:end].rstrip(), line=line)
