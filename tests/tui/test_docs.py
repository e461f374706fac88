"""The documentation on the screen: search it, read a passage, and come to it from what a role was shown."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from on_screen import Shown, shown
from pilots import finished
from shown_sessions import in_progress
from textual.widgets import Input, OptionList

from stitch_tui.agents import events
from stitch_tui.screens.docs import DocsScreen
from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.index import Index
from stitch_tui.tools.paths import cache_dir
from stitch_tui.widgets.verifier import VerifierPane

HEADER = """\
#define CUDART_VERSION 13000
/** Allocates page-locked memory. [@click=app.bell]not markup[/] */
cudaError_t cudaMallocHost(void **p);
/** Frees page-locked memory. */
cudaError_t cudaFreeHost(void *p);
"""


@pytest.fixture(autouse=True)
def include(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An include folder of one header; cache, state and settings are the test's own."""
    monkeypatch.chdir(tmp_path)
    for name in ("CACHE", "CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "cuda.h").write_text(HEADER)
    return folder


def index(include: Path) -> None:
    Index(cache_dir("docs")).build(sources.installed([include]), lambda *_: None)


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


async def said(screen: Shown, text: str) -> DocsScreen:
    """The panel, once its text says this."""
    while True:
        await screen.pilot.pause()
        await finished(screen.app, "docs")
        docs = screen.app.screen
        if isinstance(docs, DocsScreen) and text in screen.text("#passage-text"):
            return docs


def test_the_first_use_is_told_what_to_do() -> None:
    async def look() -> None:
        async with shown() as screen:
            await screen.screen.act("docs", "")
            await said(screen, "run `stitch docs build`")
            await screen.pilot.press(*"wait", "enter")
            await said(screen, "nothing is indexed yet (run `stitch docs build`)")
            await screen.pilot.press("escape")
            assert screen.screen is screen.screen_below

    run(look())


def test_words_are_searched_and_the_text_of_a_passage_is_read(include: Path) -> None:
    index(include)

    async def look() -> None:
        async with shown() as screen:
            await screen.screen.submit("/docs reserve pinned")
            docs = await said(screen, "Allocates page-locked memory")
            assert "cudaMallocHost  driver 13.0" in screen.picture
            text = screen.text("#passage-text")
            assert f"{include / 'cuda.h'}:2" in text
            assert "[@click=app.bell]not markup[/]" in text
            assert docs.copied.startswith("cudaError_t cudaMallocHost(void **p)")
            await screen.pilot.press("down")
            await said(screen, "Frees page-locked memory")
            await screen.pilot.press("slash", *"x")
            assert docs.query_one("#query", Input).value == "x", "letters are text there"

    run(look())


def test_what_a_role_was_shown_leads_to_its_text(include: Path) -> None:
    index(include)
    place = f"{include / 'cuda.h'}:4"

    def citation(name: str, place: str, **flag: bool) -> events.Citation:
        return events.Citation(library="driver", version="13.0", name=name, place=place, **flag)

    cited = (
        citation("cudaFreeHost", place, is_other_version=True),
        citation("cudaGone", f"{include / 'cuda.h'}:99"),
    )
    looked_up = events.Retrieved(
        role="coder", subtask="s02", reason="build error", query="cudaFreHost", citations=cited
    )

    async def look() -> None:
        async with shown([*in_progress(), looked_up]) as screen:
            screen.screen.planner.focus()
            screen.screen.planner.choose("s02")
            await screen.drawn()
            pane = screen.screen.query_one(VerifierPane)
            pane.scroll_end(animate=False)
            await screen.pilot.pause()
            lines = screen.picture.split("\n")
            row = next(n for n, line in enumerate(lines) if "cudaFreeHost (driver" in line)
            await screen.pilot.click(offset=(lines[row].index("cudaFreeHost (driver") + 2, row))
            docs = await said(screen, "Frees page-locked memory")
            text = screen.text("#passage-text")
            assert place in text
            assert "not the compiler's version" in text
            assert "⚠" in screen.picture.split("\n")[3], "in the list too"
            await screen.pilot.press("down")
            await said(screen, "no longer has it")
            assert docs.query_one("#passages", OptionList).option_count == 2
            await screen.pilot.press("escape", "d")
            assert await said(screen, "Frees page-locked memory") is not docs, "the key leads there too"

    run(look())


def test_a_citation_in_the_log_leads_to_its_text(include: Path) -> None:
    index(include)
    places = {"cudaMallocHost": f"{include / 'cuda.h'}:2", "cudaFreeHost": f"{include / 'cuda.h'}:4"}
    cited = tuple(
        events.Citation(library="driver", version="13.0", name=name, place=place)
        for name, place in places.items()
    )
    looked_up = events.Retrieved(
        role="coder", subtask="s02", reason="asked", query="[b]free[/]", citations=cited
    )
    nothing = events.Retrieved(role="planner", reason="asked", query="none")

    async def look() -> None:
        async with shown([*in_progress(), looked_up, nothing]) as screen:
            await screen.screen.submit("/log")
            await screen.pilot.pause()
            assert "s02: looked up '[b]free[/]': cudaMallocHost" in screen.picture
            assert "planner: looked up 'none': nothing was found" in screen.picture
            lines = screen.picture.split("\n")
            row = next(n for n, line in enumerate(lines) if "cudaFreeHost" in line)
            log = screen.app.screen
            await screen.pilot.click(offset=(2, row))
            assert screen.app.screen is log, "a click beside it leads nowhere"
            await screen.pilot.click(offset=(lines[row].index("cudaFreeHost") + 2, row))
            await said(screen, "Frees page-locked memory")
            await screen.pilot.press("escape")
            assert screen.app.screen is log

    run(look())
