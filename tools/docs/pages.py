"""Markdown, HTML and plain text as chunks: one a section."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from stitch_tui.tools.docs.chunk import Chunk

_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*$")
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_HIDDEN = {"script", "style", "nav", "head", "noscript", "svg"}
_BLOCKS = {
    "p",
    "div",
    "li",
    "tr",
    "pre",
    "table",
    "ul",
    "ol",
    "dl",
    "dt",
    "dd",
    "section",
    "br",
    "blockquote",
}


def markdown(text: str, page: str) -> Iterator[Chunk]:
    """Sections under their headings; `page` names what stands before the first."""
    trail: list[tuple[int, str]] = []
    name, begin, body, fence = page, 1, list[str](), ""
    for number, line in enumerate(text.splitlines(), 1):
        if marks := _FENCE.match(line):
            fence = "" if fence and marks[1].startswith(fence) else fence or marks[1]
        heading = None if fence else _HEADING.match(line)
        if heading is None:
            body.append(line)
            continue
        yield from _section(name, trail, begin, body)
        level = len(heading[1])
        trail = [*(one for one in trail if one[0] < level), (level, heading[2])]
        name, begin, body = heading[2], number, []
    yield from _section(name, trail, begin, body)


def plain(text: str, page: str) -> Iterator[Chunk]:
    """A text without structure is one section; the limit on a chunk cuts it."""
    if text.strip():
        yield Chunk(page, page, text.strip("\n"), 1)


def html(text: str, page: str) -> Iterator[Chunk]:
    """Sections of an HTML page under h1 to h6, with the anchor nearest above each."""
    reader = _Reader(page)
    reader.feed(text)
    reader.close()
    reader.finish()
    yield from reader.sections


def _section(name: str, trail: list[tuple[int, str]], line: int, body: list[str]) -> Iterator[Chunk]:
    text = "\n".join(body).strip("\n")
    if text.strip():
        yield Chunk(name, " > ".join(title for _, title in trail) or name, f"{name}\n\n{text}", line)


class _Reader(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.sections: list[Chunk] = []
        self._trail: list[tuple[int, str]] = []
        self._name, self._line, self._anchor = page, 1, ""
        self._latest = ""
        self._body: list[str] = []
        self._heading: list[str] | None = None
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self._latest = attributes.get("id") or (attributes.get("name") if tag == "a" else "") or self._latest
        if tag in _HIDDEN:
            self._hidden += 1
        elif re.fullmatch(r"h[1-6]", tag):
            self.finish()
            self._heading, self._line, self._anchor = [], self.getpos()[0], self._latest
        elif tag in _BLOCKS:
            self._body.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN:
            self._hidden = max(self._hidden - 1, 0)
        elif re.fullmatch(r"h[1-6]", tag) and self._heading is not None:
            title = " ".join("".join(self._heading).replace("\u00b6", "").split())
            level = int(tag[1])
            self._trail = [*(one for one in self._trail if one[0] < level), (level, title)]
            self._name, self._heading, self._body = title or self._name, None, []
        elif tag in _BLOCKS:
            self._body.append("\n")

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        (self._body if self._heading is None else self._heading).append(data)

    def finish(self) -> None:
        """Close the section that is open."""
        lines = [line.rstrip() for line in "".join(self._body).splitlines()]
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
        if text:
            title = " > ".join(one for _, one in self._trail) or self._name
            self.sections.append(
                Chunk(self._name, title, f"{self._name}\n\n{text}", self._line, self._anchor)
            )
        self._body = []
