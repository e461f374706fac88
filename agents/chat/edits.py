"""Search-and-replace blocks in an answer, applied to a source: all of them, or none."""

import re
from collections.abc import Callable
from dataclasses import dataclass

_BLOCK = re.compile(
    r"^<{5,9} ?SEARCH[^\n]*\n(?P<search>.*?)^={5,9}[ \t]*\n(?P<replace>.*?)^>{5,9} ?REPLACE[^\n]*$",
    re.MULTILINE | re.DOTALL,
)
SHOWN = 200
"""Characters of a block that an error quotes."""


class EditFault(Exception):
    """A block that cannot be applied; the message says which and why."""


@dataclass(frozen=True)
class Edit:
    search: str
    replace: str


def edits(text: str) -> list[Edit]:
    """The blocks in an answer, in order."""
    return [Edit(match["search"], match["replace"]) for match in _BLOCK.finditer(text)]


def applied(source: str, blocks: list[Edit]) -> str:
    """`source` with every block applied, in order.

    A block must fit exactly one place: letter by letter, else apart from the white space of its lines.

    Raises:
        EditFault: one fits no place, or several; `source` is then left as it was.
    """
    for number, block in enumerate(blocks, 1):
        source = _applied(source, block, number)
    return source


def _applied(source: str, block: Edit, number: int) -> str:
    if not block.search.strip():
        raise EditFault(f"edit {number} searches for nothing")
    lines, wanted = source.split("\n"), block.search.rstrip("\n").split("\n")
    for same in (_exactly, _but_for_space):
        places = [at for at in range(len(lines)) if _fits(lines, at, wanted, same)]
        if len(places) > 1:
            at = ", ".join(str(place + 1) for place in places[:5])
            raise EditFault(f"edit {number} fits {len(places)} places (lines {at}): {_shown(block.search)}")
        if places:
            start = places[0]
            new = block.replace.rstrip("\n").split("\n") if block.replace.strip("\n") else []
            return "\n".join([*lines[:start], *new, *lines[start + len(wanted) :]])
    raise EditFault(f"edit {number} fits no place in the file: {_shown(block.search)}")


def _fits(lines: list[str], at: int, wanted: list[str], same: Callable[[str, str], bool]) -> bool:
    return at + len(wanted) <= len(lines) and all(
        same(have, want) for have, want in zip(lines[at : at + len(wanted)], wanted, strict=True)
    )


def _exactly(have: str, want: str) -> bool:
    return have == want


def _but_for_space(have: str, want: str) -> bool:
    return have.split() == want.split()


def _shown(text: str) -> str:
    text = text.strip()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
