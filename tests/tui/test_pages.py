"""Pages of text fit the terminal: their tables fold the last column, and leave out what they can spare."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from on_screen import shown

from stitch_tui.screens.pages import GAP, WRAPPED, laid_out, table

CELLS = st.text("ab", max_size=8)
TITLES = st.lists(st.text("ab", min_size=1, max_size=9), max_size=12).map(" ".join)
TABLES = st.lists(st.tuples(CELLS, CELLS, TITLES), min_size=1, max_size=5)


@given(rows=TABLES, width=st.integers(2 * (8 + GAP) + WRAPPED, 90))
def test_no_line_of_a_table_is_longer_than_the_room(rows: list[tuple[str, ...]], width: int) -> None:
    lines = table(rows, width).plain.split("\n")
    assert max(map(len, lines)) <= width
    folded = [" ".join(content.plain.split()) for content in laid_out(rows, width)]
    assert folded == [" ".join(" ".join(row).split()) for row in rows], "nothing is lost"


def test_columns_are_left_out_in_the_order_in_which_they_can_be_spared() -> None:
    rows = [("id", "share", "error", "what"), ("s01", "41%", "3.1e-06 of 1.2e-05", "x" * WRAPPED)]
    heads = [table(rows, width, spare=(2, 1)).plain.split("\n")[0].split() for width in (90, 48, 24)]
    assert heads == [["id", "share", "error", "what"], ["id", "share", "what"], ["id", "what"]]


@pytest.mark.parametrize("way", ["question_mark", "slash r e p o r t enter", "slash p r o f i l e enter"])
@pytest.mark.parametrize("size", [(60, 20), (80, 24)])
def test_a_page_has_no_line_that_is_too_long(size: tuple[int, int], way: str) -> None:
    async def look() -> None:
        async with shown(size=size) as screen:
            await screen.press(*way.split())
            page = screen.app.screen
            text, _, _ = screen.text("#text").partition("\nStates")
            tables = [line for line in text.split("\n") if "  " in line.strip()]
            assert tables
            assert max(map(len, tables)) <= page.width  # type: ignore[attr-defined]

    asyncio.run(look())


def test_help_names_the_ids_for_the_keymap_once_there_is_room() -> None:
    async def look() -> None:
        async with shown(size=(80, 24)) as screen:
            await screen.press("question_mark")
            assert "steer.redirect" not in screen.text("#text")
            await screen.pilot.resize_terminal(120, 40)
            await screen.pilot.pause()
            assert "steer.redirect" in screen.text("#text")

    asyncio.run(look())
