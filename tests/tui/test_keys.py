"""Each key makes the command it stands for, made for the session's generation."""

import asyncio
import re
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from on_screen import Shown, long_ago, shown
from pilots import finished
from shown_sessions import beginning, emulated
from textual import events

from stitch_tui.agents.commands import (
    Add,
    Decide,
    Edit,
    Pause,
    Redirect,
    Reorder,
    Restore,
    SetAutonomy,
    Skip,
    Stop,
)
from stitch_tui.agents.settings import Autonomy
from stitch_tui.widgets import planner
from stitch_tui.widgets.coder import CoderPane
from stitch_tui.widgets.composer import Field
from stitch_tui.widgets.iterations import COLUMNS, IterationTable

README = (Path(__file__).parents[2] / "README.md").read_text()
NAMED = {"/": "slash", "?": "question_mark", "]": "right_square_bracket", "[": "left_square_bracket"}
EVERYWHERE = {"f1", "f2", "f6", "ctrl+p", "ctrl+g", "ctrl+q", "tab", "shift+tab", "escape"}
"""Keys of the table that are no text: they do the same in the composer."""


def documented() -> set[str]:
    """The keys in README's table, as Textual calls them."""
    rows = README.partition("| key | what it does |")[2].partition("\n\n")[0].split("\n")[2:]
    cells = [cell for row in rows for cell in row.strip("| ").split(" | ")[::2]]
    names = {name for cell in cells for shown in re.findall("`([^`]+)`", cell) for name in shown.split()}
    names = {"escape" if name == "Esc" else name for name in names}
    return {NAMED.get(name) or (name if len(name) == 1 else name.lower()) for name in names}


def bound(screen: Shown) -> dict[str, str]:
    """Keys that work where the focus is, with their actions."""
    return {key: active.binding.action for key, active in screen.app.screen.active_bindings.items()}


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


async def told(screen: Shown, count: int) -> None:
    """Wait until the engine was told so many commands and no key is held back."""
    while len(screen.engine.told) < count or screen.app._held:
        await screen.pilot.pause()
    await screen.pilot.pause()


PRESSED: list[tuple[str, str, list[object]]] = [
    ("a", "s05", [Decide(subtask="s05", generation=0)]),
    ("A y", "s05", [Decide(generation=0)]),
    ("n", "s05", [Decide(subtask="s05", choice="reject", generation=0)]),
    ("s y", "s03", [Skip(subtask="s03", generation=0)]),
    ("s", "s04", [Skip(subtask="s04", undo=True, generation=0)]),
    ("J", "s03", [Reorder(subtask="s03", position=4, generation=0)]),
    ("K", "s03", [Reorder(subtask="s03", position=2, generation=0)]),
    ("shift+up", "s03", [Reorder(subtask="s03", position=2, generation=0)]),
    ("p", "s03", [Pause(generation=0)]),
    ("f6", "s03", [Pause(generation=0)]),
    ("tab f6", "s03", [Pause(generation=0)]),
    ("x k", "s03", [Stop(generation=0)]),
    ("b y", "s01", [Restore(iteration=5, generation=0)]),
    ("u y", "s01", [Restore(iteration=1, generation=0)]),
    ("shift+tab y", "s01", [SetAutonomy(mode=Autonomy.AUTO, generation=0)]),
    ("r g o enter", "s03", [Redirect(subtask="s03", text="go", generation=0)]),
    ("R g o enter", "s03", [Redirect(subtask="s03", text="go", now=True, generation=0)]),
    ("x b", "s01", [Restore(iteration=5, generation=0), Stop(generation=0)]),
    ("escape escape", "s01", [Redirect(subtask="s02", text="", now=True, generation=0)]),
    ("x escape", "s01", []),
    ("A q z escape", "s01", []),
    ("x a p n escape", "s05", []),
]


def test_each_key_makes_its_command() -> None:
    """On one screen, one after the other; nobody answers, so the state stays what it was."""

    async def press() -> None:
        async with shown() as screen:
            long_ago(screen.screen)
            for keys, on, commands in PRESSED:
                screen.screen.planner.focus()
                screen.screen.planner.choose(on)
                await screen.drawn()
                screen.engine.told.clear()
                await screen.press(*keys.split())
                assert screen.engine.told == commands, keys

    run(press())


def test_a_proposal_is_not_decided_on_before_it_could_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "SETTLED_S", 60.0)

    async def press() -> None:
        async with shown(beginning()) as screen:
            await screen.press("a", "A", "y", "n")
            assert screen.engine.told == []
            assert "look, then press again" in screen.notices

    run(press())


def test_letters_in_the_composer_are_text() -> None:
    async def write() -> None:
        async with shown() as screen:
            long_ago(screen.screen)
            await screen.press("tab", *"apex", "1", "question_mark")
            assert screen.screen.composer.field.text == "apex1?"
            assert screen.engine.told == []
            await screen.press("escape")
            assert not screen.screen.composer.field.has_focus
            assert screen.screen.composer.field.text == "apex1?", "the draft stays"

    run(write())


def test_keys_in_a_burst_behind_a_redirect_are_its_text() -> None:
    async def burst() -> None:
        async with shown() as screen:
            long_ago(screen.screen)
            screen.screen.planner.choose("s03")
            await screen.drawn()
            for key in ("R", *"oasxp", "enter"):
                screen.app.post_message(events.Key(key, key if len(key) == 1 else "\r"))
            await told(screen, 1)
            assert screen.engine.told == [Redirect(subtask="s03", text="oasxp", now=True, generation=0)]
            assert not screen.screen.form.is_open
            assert not screen.screen.asks.asking

    run(burst())


def test_enter_does_not_overtake_the_letters_before_it() -> None:
    async def flood() -> None:
        async with shown() as screen:
            long_ago(screen.screen)
            screen.screen.planner.choose("s03")
            await screen.drawn()
            typed = "one warp a row, no shared memory"
            for count in range(1, 4):
                for key in ("R", *typed, "enter", "escape"):
                    character = {"enter": "\r", "escape": None}.get(key, key)
                    screen.app.post_message(events.Key(key, character))
                    await asyncio.sleep(0)  # the next one arrives while this one climbs
                await told(screen, count)
            assert [command.text for command in screen.engine.told] == [typed] * 3  # type: ignore[union-attr]

    run(flood())


def test_editing_in_place_sends_what_changed() -> None:
    async def edit() -> None:
        async with shown() as screen:
            screen.screen.planner.choose("s03")
            await screen.drawn()
            await screen.press("e")
            assert screen.screen.form.is_open
            await screen.press("end", *" x", "escape", "e")
            await screen.press("enter")
            wanted = Edit(subtask="s03", title="attention scores+softmax x", generation=0)
            assert screen.engine.told == [wanted], "what was typed outlived Esc"
            assert not screen.screen.form.is_open

    run(edit())


def test_a_title_is_edited_and_not_replaced() -> None:
    async def edit() -> None:
        async with shown() as screen:
            screen.screen.planner.choose("s05")
            await screen.drawn()
            before = screen.screen.chosen
            await screen.press("e", *"!", "enter")
            [command] = screen.engine.told
            assert isinstance(command, Edit)
            assert before
            assert command.title == f"{before.title}!"

    run(edit())


def test_adding_needs_nodes() -> None:
    async def add() -> None:
        async with shown() as screen:
            await screen.press("o", *"sum", "enter")
            assert screen.engine.told == []
            assert screen.screen.form.is_open
            await screen.press("tab", "tab", *"add_1", "enter")
            assert screen.engine.told == [Add(title="sum", nodes=("add_1",), generation=0)]

    run(add())


def test_the_work_that_runs_is_redirected_and_not_edited() -> None:
    async def edit() -> None:
        async with shown() as screen:
            await screen.press("e")
            assert not screen.screen.form.is_open

    run(edit())


def test_keys_of_the_panes() -> None:
    async def walk() -> None:
        async with shown(size=(80, 24)) as screen:
            await screen.press("2")
            assert screen.screen.query_one("#code").has_focus
            assert not screen.screen.query_one("#planner").display
            await screen.press("3", "tab")
            assert isinstance(screen.app.focused, Field)
            await screen.press("tab", "f")
            assert screen.screen.has_class("-full")

    run(walk())


def test_diff_keys_change_base_and_style() -> None:
    async def walk() -> None:
        async with shown(size=(200, 50)) as screen:
            screen.screen.planner.choose("s01")
            await screen.press("2")
            status = screen.text("#code-status")
            assert "#5 s01 attempt 5 against #1" in status
            await screen.press("d")
            assert "against #4" in screen.text("#code-status")
            await screen.press("d")
            assert "against" not in screen.text("#code-status")
            await screen.press("d", "z", "t", "]", "[", "f")
            assert screen.screen.query_one(CoderPane).code.marked_line

    run(walk())


def test_other_keys_from_the_settings() -> None:
    async def press() -> None:
        async with shown(keymap={"run.pause": "P"}) as screen:
            await screen.press("p")
            assert screen.engine.told == []
            await screen.press("P")
            assert screen.engine.told == [Pause(generation=0)]

    run(press())


def test_the_footer_offers_what_works_now() -> None:
    def offered(screen: Shown) -> set[str]:
        return {active.binding.action for active in screen.screen.active_bindings.values() if active.enabled}

    async def look() -> None:
        async with shown() as screen:
            screen.screen.planner.choose("s03")
            await screen.drawn()
            assert "approve" not in offered(screen)
            screen.screen.planner.choose("s05")
            await screen.drawn()
            assert "approve" in offered(screen)
        async with shown(emulated()) as screen:
            assert "approve_all" not in offered(screen)

    run(look())


def test_screens_open_once_and_close() -> None:
    async def walk() -> None:
        async with shown() as screen:
            for key in ("question_mark", "f1"):
                await screen.press(key, key)
                assert len(screen.app.screen_stack) == 2
                await screen.press("escape")
                assert len(screen.app.screen_stack) == 1
            for command, words in (("report", "rms_norm+silu"), ("profile", "aten.linear"), ("log", "done")):
                await screen.press("slash", *command, "enter")
                assert words in screen.text("#text")
                await screen.press("escape")

    run(walk())


def test_leaving_can_pause_or_stop_the_run() -> None:
    async def leave(key: str, command: object) -> None:
        async with shown() as screen:
            await screen.pilot.press("ctrl+q", key)
            await screen.pilot.pause()
            assert screen.engine.told == [command]

    run(leave("p", Pause(generation=0)))
    run(leave("s", Stop(generation=0)))


@pytest.mark.parametrize("key", ["f2", "ctrl+p"])
def test_the_palette_shows_each_command_whole_and_its_key(key: str) -> None:
    async def look() -> None:
        async with shown(size=(120, 60)) as screen:
            await screen.pilot.press(key)
            await screen.until(lambda: "/skip [ID] [WHY]  key s" in screen.picture)
            assert "/now [ID] TEXT  key R" in screen.picture

    run(look())


def test_ctrl_c_backs_out_and_never_quits() -> None:
    async def press() -> None:
        async with shown() as screen:
            await screen.press("tab", *"draft", "ctrl+c")
            assert not isinstance(screen.app.focused, Field)
            await screen.press("ctrl+c", "ctrl+c")
            await finished(screen.app, "orders")
            assert screen.engine.told == [Redirect(subtask="s02", text="", now=True, generation=0)]
            assert screen.app.is_running
            assert screen.screen.composer.field.text == "draft"

    run(press())


def test_the_table_stands_on_what_the_panes_show() -> None:
    async def look() -> None:
        async with shown() as screen:
            table = screen.screen.query_one(IterationTable)
            for id, number in (("s01", "5"), ("s02", "6")):
                screen.screen.planner.choose(id)
                await screen.drawn()
                async with asyncio.timeout(30):
                    while table._chosen != number:
                        await screen.drawn()

    run(look())


@pytest.mark.parametrize("way_in", ["question_mark", "h", "d", "slash t h e m e enter", "slash l o g enter"])
def test_ctrl_c_leaves_a_screen_as_esc_does(way_in: str) -> None:
    async def press() -> None:
        async with shown() as screen:
            await screen.press(*way_in.split())
            assert len(screen.app.screen_stack) == 2
            await screen.press("ctrl+c")
            assert len(screen.app.screen_stack) == 1

    run(press())


def test_ctrl_c_is_no_to_a_question_and_lets_a_form_go() -> None:
    async def press() -> None:
        async with shown() as screen:
            screen.screen.planner.choose("s03")
            await screen.drawn()
            await screen.press("x", "ctrl+c")
            assert not screen.screen.asks.asking
            await screen.press("e", "ctrl+c")
            assert not screen.screen.form.is_open
            assert screen.engine.told == []

    run(press())


def test_what_is_not_known_is_sorted_last_both_ways() -> None:
    async def look() -> None:
        async with shown() as screen:
            table = screen.screen.query_one(IterationTable)
            place = table._shown.index("speedup")
            for reverse in (True, False):
                table._order, table._reverse = COLUMNS.index("speedup"), reverse
                table._sorted()
                cells = [str(table.get_row_at(row)[place]) for row in range(table.row_count)]
                timed = [float(cell.removesuffix("x")) for cell in cells if cell]
                assert "" in cells
                assert cells[len(timed) :] == [""] * (len(cells) - len(timed))
                assert timed == sorted(timed, reverse=reverse)

    run(look())


def test_every_documented_key_works_in_some_pane_and_those_that_are_no_text_in_the_composer() -> None:
    async def look() -> None:
        async with shown() as screen:
            screen.screen.planner.choose("s05")
            await screen.drawn()
            planner = bound(screen)
            await screen.press("2")
            works = planner.keys() | bound(screen).keys()
            assert documented() >= EVERYWHERE | {"a", "J", "enter", "question_mark"}
            assert documented() - works == set()
            await screen.press("tab")
            assert isinstance(screen.app.focused, Field)
            composer = bound(screen)
            same = {key for key in EVERYWHERE if composer.get(key) == planner[key]}
            assert same == EVERYWHERE

    run(look())
