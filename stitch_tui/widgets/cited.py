"""What roles were shown of the documentation, as text that leads to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content, Span
from textual.events import Click
from textual.message import Message
from textual.style import Style

from stitch_tui.agents.events import Citation
from stitch_tui.plain_text import one_line


@dataclass
class Cited(Message):
    """A click on what the documentation said."""

    citation: Citation


def linked(citation: Citation, number: int, indent: int = 0) -> Content:
    """A citation that a click leads from; `clicked` finds it by its number."""
    text = f"{'':{indent}}{one_line(citation.sentence)}"
    colour = "$waiting" if citation.is_other_version else "$accent"
    link = Style.from_meta({"citation": number})
    return Content(text, [Span(0, len(text), colour), Span(0, len(text), link)])


def clicked(event: Click, cited: Sequence[Citation]) -> Cited | None:
    """What a click on one of these means; None when it was elsewhere."""
    number = event.style.meta.get("citation")
    return None if number is None else Cited(cited[number])
