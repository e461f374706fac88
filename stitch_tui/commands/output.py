"""What commands print: plain text made safe for a terminal, or JSON."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stitch_tui.plain_text import columns, one_line, printable

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Json", "Markdown", "Why", "fields", "one_form", "one_line", "say", "say_json", "table"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown instead of text.")]
Why = Annotated[bool, typer.Option("--why", help="And the rules, thresholds and tools behind the answer.")]


def one_form(*, json: bool, markdown: bool) -> None:
    """Refuse two forms of output at once.

    Raises:
        UsageError: both were asked for.
    """
    from stitch_tui.tools.errors import UsageError

    if json and markdown:
        raise UsageError("--json and --markdown are two forms of one output", advice="name one")


def say(text: str = "") -> None:
    typer.echo(printable(text))


def say_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False, default=str))


def fields(model: "BaseModel") -> Any:
    """A model as JSON data; what is no number (``nan``, ``inf``) is null."""
    return json.loads(model.model_dump_json())


def table(rows: Iterable[Sequence[str]]) -> None:
    for line in columns(rows):
        typer.echo(line)
