"""What commands print: plain text made safe for a terminal, or JSON."""

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def printable(text: str) -> str:
    """`text` with control characters, save newline and tab, written out: it cannot steer a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def one_line(text: str) -> str:
    """`text` on one line, safe for a terminal."""
    return printable(" ".join(text.split("\n")).replace("\t", " "))


def say(text: str = "") -> None:
    typer.echo(printable(text))


def say_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False, default=str))


def table(rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their longest cell, two blanks between; no trailing blanks."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
