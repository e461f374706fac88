"""Text for a terminal or a pipe: foreign characters made harmless, columns that stand in line."""

from collections.abc import Iterable, Iterator, Sequence


def printable(text: str) -> str:
    """`text` with control characters, save newline and tab, written out: it cannot steer a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def one_line(text: str) -> str:
    """`text` on one line, safe for a terminal."""
    return printable(" ".join(text.split("\n")).replace("\t", " "))


def count(number: int, thing: str) -> str:
    """``1 try``, ``2 tries``."""
    plural = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"
    return f"{number} {thing if number == 1 else plural}"


def columns(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines whose columns are as wide as their longest cell, two blanks between; no trailing blanks.

    Empty columns are left out.  Put the column whose length nobody knows last.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        shown = (cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width)
        yield "  ".join(shown).rstrip()
