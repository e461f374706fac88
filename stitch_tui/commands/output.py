"""What commands print: plain text made safe for a terminal, or JSON."""

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from stitch_tui.plain_text import columns, one_line, printable

__all__ = ["Json", "one_line", "say", "say_json", "table"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def say(text: str = "") -> None:
    typer.echo(printable(text))


def say_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False, default=str))


def table(rows: Iterable[Sequence[str]]) -> None:
    for line in columns(rows):
        typer.echo(line)
