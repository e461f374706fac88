"""PDF as chunks: one a page, under the outline's heading that leads to it."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stitch_tui.tools.docs.chunk import Chunk
from stitch_tui.tools.encodable import encodable
from stitch_tui.tools.errors import EnvironmentFault

if TYPE_CHECKING:
    from pypdf import PdfReader


def chunks(path: Path) -> Iterator[Chunk]:
    """The pages that hold text, each with the anchor ``page=N`` that viewers understand.

    Raises:
        EnvironmentFault: pypdf is not installed, or it is no PDF that can be read.
        OSError: the file cannot be read.
    """
    require()
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(path)
        headings = dict(_headings(reader, reader.outline))
        name = path.stem
        for number, page in enumerate(reader.pages, 1):
            name = headings.get(number - 1, name)
            if text := encodable(page.extract_text()).strip():
                title = f"{path.stem} > {name}, page {number}"
                yield Chunk(name, title, f"{name}\n\n{text}", 1, f"page={number}")
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"
        raise EnvironmentFault("it is no PDF that can be read", where=str(path), why=why) from error


def require() -> None:
    """See that PDF can be read at all.

    Raises:
        EnvironmentFault: pypdf is not installed.
    """
    if importlib.util.find_spec("pypdf") is None:
        raise EnvironmentFault("PDF needs pypdf", advice="pip install 'stitch-tui[docs]'")


def _headings(reader: "PdfReader", outline: list[Any]) -> Iterator[tuple[int, str]]:
    """Number of a page from 0, and the outline's last heading on it."""
    for entry in outline:
        if isinstance(entry, list):
            yield from _headings(reader, entry)
        elif (number := reader.get_destination_page_number(entry)) is not None and number >= 0:
            yield number, encodable(str(entry.title))
