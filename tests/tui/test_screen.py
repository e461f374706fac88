"""The session screen in every size and theme; foreign text is text; floods, resizing and wide characters."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from on_screen import shown
from rich.style import Style
from shown_sessions import attempt, beginning, build_error, correct, in_progress, plan, subtask, wrong

from stitch_tui.agents import events
from stitch_tui.agents.events import Event
from stitch_tui.agents.host import route as host_route
from stitch_tui.agents.state import Candidate, Plan, SubtaskState
from stitch_tui.tools.iteration import Outcome
from stitch_tui.tools.race import Race
from stitch_tui.tools.verdict import Beside, Finding, Ratio, Samples
from stitch_tui.widgets import roofline
from stitch_tui.widgets.code_view import CodeView
from stitch_tui.widgets.coder import CoderPane

HOSTILE = "x[/] tile[threadIdx.x][k] [@click=app.quit]go[/] [bold red]\x1b]0;owned\x07 宽 \u202e"
PICTURES = Path(__file__).parent / "pictures"


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


NARROW, SHORT, USUAL, WIDE = (60, 20), (80, 24), (120, 40), (150, 44)
LOOKS = [
    *((size, "", ("up", "2") if size[0] >= 100 else ("up",)) for size in (NARROW, SHORT, USUAL, WIDE)),
    *((size, "coder", ("2",)) for size in (NARROW, SHORT)),
    *((size, "verifier", ("3",)) for size in (NARROW, SHORT, USUAL)),
    *((size, "form", ("up", "e")) for size in (SHORT, USUAL)),
    *((size, "stop", ("x",)) for size in (NARROW, USUAL)),
    *((size, "help", ("question_mark",)) for size in (SHORT, USUAL)),
    (SHORT, "table", ("i",)),
    (USUAL, "full", ("2", "f")),
    (SHORT, "composer", ("tab", *"3: use")),
]


QUICK = ((USUAL, ""), (NARROW, ""), (SHORT, "coder"), (USUAL, "verifier"), (SHORT, "form"), (SHORT, "table"))
"""Each pane, the widest and the narrowest arrangement; the same at other sizes is slow."""


@pytest.mark.parametrize(
    ("size", "name", "keys"),
    [look if look[:2] in QUICK else pytest.param(*look, marks=pytest.mark.slow) for look in LOOKS],
    ids=["x".join(map(str, size)) + name for size, name, _ in LOOKS],
)
def test_the_screen_looks_as_it_did(size: tuple[int, int], name: str, keys: tuple[str, ...]) -> None:
    async def look() -> str:
        async with shown(size=size) as screen:
            await screen.press(*keys)
            return "\n".join(line.rstrip() for line in screen.picture.split("\n")) + "\n"

    compare("-".join(filter(None, ("x".join(map(str, size)), name))), asyncio.run(look()))


@pytest.mark.parametrize("theme", ["stitch-night", "stitch-day", "stitch-contrast", "stitch-ansi"])
def test_a_theme_colours_the_screen_as_it_did(theme: str) -> None:
    """Each style that is used, at the first text that wears it."""

    async def look() -> str:
        async with shown(size=USUAL, theme=theme) as screen:
            await screen.press("up", "2")
            worn: dict[str, str] = {}
            for strip in screen.app.screen._compositor.render_strips():
                for segment in strip:
                    if segment.text.strip() and segment.style:
                        worn.setdefault(
                            str(segment.style.without_color + colours(segment.style)), segment.text
                        )
            return "".join(f"{style:<40} {text.strip()[:40]}\n" for style, text in sorted(worn.items()))

    compare(f"colours-{theme}", asyncio.run(look()))


def colours(style: Style) -> Style:
    return Style(color=style.color, bgcolor=style.bgcolor)


def compare(name: str, picture: str) -> None:
    """Pictures are text; ``REDRAW=1`` writes them anew, to be looked at before they are committed."""
    path = PICTURES / f"{name}.txt"
    if os.environ.get("REDRAW"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(picture)
    assert picture == path.read_text()


def hostile() -> list[Event]:
    """Every text that comes from elsewhere is hostile."""
    plan = beginning()[-1]
    assert isinstance(plan, events.PlanProposed)
    marked = tuple(
        s.model_copy(update={"title": HOSTILE, "strategy": HOSTILE, "reason": HOSTILE, "direction": HOSTILE})
        for s in plan.plan.subtasks
    )
    fault = wrong().findings[0].model_copy(update={"message": HOSTILE, "where": HOSTILE, "file": HOSTILE})
    verdict = wrong().model_copy(update={"summary": HOSTILE, "findings": (fault, located(fault))})
    strange = events.CodeWritten(
        iteration=1, subtask="s01", candidate=Candidate(source=f"{HOSTILE}\n" * 9, strategy=HOSTILE), path="x"
    )
    start, _, *rest = attempt(1, "s01", 1, HOSTILE, verdict, Outcome.WRONG)
    return [
        *beginning(device=HOSTILE)[:2],
        events.PlanProposed(plan=Plan(subtasks=marked)),
        start,
        strange,
        *rest,
        events.Warned(text=HOSTILE),
        events.Failed(kind=HOSTILE, text=HOSTILE, exit_code=1),
        events.Routed(subtask="s01", next=HOSTILE, reason=HOSTILE),
    ]


def located(finding: Finding) -> Finding:
    return finding.model_copy(update={"line": 3})


def test_foreign_text_is_never_markup_and_never_steers_the_terminal() -> None:
    async def look() -> None:
        async with shown(hostile(), size=(200, 50)) as screen:
            assert "tile[threadIdx.x][k] [@click=app.quit]go[/] [bold red]" in screen.picture
            assert "\x1b" not in screen.picture
            assert "\u202e" not in screen.picture
            for command in ("report", "profile", "log", "help"):
                await screen.press("slash", *command, "enter")
                assert "\x1b" not in screen.picture
                await screen.press("escape")
            await screen.press("e")
            assert "\x1b" not in screen.picture
            await screen.press("escape", "s")
            assert "\x1b" not in screen.picture

    run(look())


def test_a_fault_is_shown_at_its_line_and_a_kernels_facts_at_its_definition() -> None:
    async def look() -> None:
        async with shown(size=(150, 44)) as screen:
            screen.screen.planner.choose("s01")
            await screen.drawn()
            for number, said in (
                (2, 'expected a ";"'),
                (3, "rows 3, 7, 11 differ"),
                (5, "ptxas: 38 registers"),
            ):
                screen.screen._pinned = screen.screen_below.board.session.iteration(number)
                screen.screen.draw()
                await screen.pilot.pause()
                assert said in screen.picture
            assert screen.screen.query_one(CodeView).marked_line

    run(look())


def test_code_streams_as_a_diff_and_survives_resizing() -> None:
    async def look() -> None:
        made = [*in_progress()[:-7], events.SubtaskStarted(subtask="s01", title="again")]
        async with shown(made, size=(120, 40)) as screen:
            pane = screen.screen.query_one(CoderPane)
            best = screen.screen_below.board.best("s01")
            assert best
            assert best.candidate
            for n, line in enumerate(best.candidate.source.split("\n")):
                text = line.replace("sum", "total") + "\n"
                screen.screen_below.board.add(events.CoderDelta(subtask="s01", text=text))
                if n % 10 == 0:
                    screen.screen.draw()
                    await screen.pilot.resize_terminal(60 + n * 4, 20 + n)
            screen.screen.draw()
            await screen.pilot.pause()
            assert pane.text.count("total") == best.candidate.source.count("sum")
            signs = {row.sign for row in pane.code._items if hasattr(row, "sign")}
            assert signs == {" ", "+", "-"}

    run(look())


def test_a_flood_is_drawn_at_its_end_and_leaves_the_past() -> None:
    async def look() -> None:
        async with shown(beginning(), size=(100, 30)) as screen:
            text = "".join(f"int v{n}; // 宽\n" for n in range(10_000))
            screen.screen_below.board.add(events.CoderDelta(subtask="s01", text=text))
            code = screen.screen.query_one(CodeView)
            for _ in range(4):
                screen.screen.draw()
            await screen.pilot.pause()
            assert code.virtual_size.height == 10_000
            assert "v9999" in code.render_line(code.size.height - 1).text
            code.scroll_to(y=0, animate=False, immediate=True)
            screen.screen_below.board.add(events.CoderDelta(subtask="s01", text="int last;\n"))
            screen.screen.draw()
            await screen.pilot.pause()
            assert code.scroll_offset.y == 0, "whoever reads is not moved"

    run(look())


@pytest.mark.parametrize("follows", [True, False])
def test_a_stream_without_end_keeps_its_latest_lines_and_their_numbers(follows: bool) -> None:
    async def look() -> None:
        async with shown(beginning(), size=(100, 30)) as screen:
            board, code = screen.screen_below.board, screen.screen.query_one(CodeView)
            for begin in range(0, 30_000, 3_000):
                text = "".join(f"int v{n};\n" for n in range(begin, begin + 3_000))
                board.add(events.CoderDelta(subtask="s01", text=text))
                if begin == 18_000 and not follows:
                    code.scroll_to(y=14_000, animate=False, immediate=True, force=True)
                    read = code.render_line(0).text
                screen.screen.draw()
            await screen.pilot.pause()
            assert 0 < board.stream.dropped == 30_000 - code.virtual_size.height
            shown_line = code.render_line(0 if not follows else code.size.height - 1).text
            assert (shown_line == read) if not follows else ("30000 + int v29999;" in shown_line), shown_line
            assert "v29999" in screen.screen.query_one(CoderPane).text

    run(look())


@pytest.mark.parametrize("size", [(100, 30), (300, 60)])
def test_a_stream_that_outran_the_screen_goes_on_where_it_is(size: tuple[int, int]) -> None:
    async def look() -> None:
        async with shown(beginning(), size=size) as screen:
            board, code = screen.screen_below.board, screen.screen.query_one(CodeView)
            for begin in (0, 100_000):
                text = "".join(f"int v{n};\n" for n in range(begin, begin + 100_000))
                board.add(events.CoderDelta(subtask="s01", text=text))
                for _ in range(5):
                    screen.screen.draw()
            await screen.pilot.pause()
            assert code.virtual_size.height == len(board.stream.lines)
            assert "200000 + int v199999;" in code.render_line(code.size.height - 1).text

    run(look())


def test_a_proposal_that_appears_while_typing_eats_no_key() -> None:
    async def write() -> None:
        async with shown(beginning()[:2]) as screen:
            await screen.press("tab", *"half a ".replace(" ", "_"))
            for event in beginning()[2:]:
                screen.screen_below.board.add(event)
            await screen.press(*"sentence")
            assert screen.screen.composer.field.text == "half_a_sentence"
            assert screen.screen.composer.field.has_focus
            assert screen.engine.told == []

    run(write())


def test_history_and_draft_of_the_composer(tmp_path: Path) -> None:
    path = tmp_path / "composer.json"

    async def write() -> None:
        async with shown(drafts=path) as screen:
            await screen.press("tab", *"one", "enter", *"two", "enter", *"three")
            assert len(screen.engine.told) == 2
            await screen.press("up", "up")
            assert screen.screen.composer.field.text == "one"
            await screen.press("down", "down")
            assert screen.screen.composer.field.text == "three", "the draft comes back"
            await screen.press("ctrl+j", *"four")
            assert screen.screen.composer.field.text == "three\nfour"

    async def again() -> None:
        async with shown(drafts=path) as screen:
            assert screen.screen.composer.field.text == "three\nfour"
            assert screen.screen.composer.field.has_focus

    run(write())
    run(again())


def test_a_refused_line_stays_to_be_mended() -> None:
    async def write() -> None:
        async with shown() as screen:
            await screen.press("slash", *"aprove", "enter")
            assert screen.screen.composer.field.text == "/aprove"

    run(write())


def test_tiny_terminals_and_no_session_do_not_crash() -> None:
    async def look() -> None:
        for size in ((1, 1), (10, 3), (24, 6)):
            async with shown([], size=size) as screen:
                await screen.press("2", "3", "1")

    run(look())


def test_every_theme_is_worn_and_an_unknown_one_replaced() -> None:
    async def look() -> None:
        async with shown(theme="nobody") as screen:
            assert screen.app.theme == "stitch-night"
            for name in [t for t in screen.app.available_themes if t.startswith("stitch-")] + ["nord"]:
                screen.app.theme = name
                await screen.pilot.pause()
                assert "rms_norm" in screen.picture

    run(look())


def test_the_screen_begins_without_what_only_an_engine_needs() -> None:
    libraries = {"torch", "git", "openai", "lancedb", "watchfiles"}
    ours = {
        f"stitch_tui.{name}" for name in ("agents.engine", "tools.bench", "tools.bundle", "tools.emulator")
    }
    program = (
        f"import sys, stitch_tui.app, stitch_tui.screens.start; print({libraries | ours} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_verdicts_say_what_they_stand_on() -> None:
    async def look() -> None:
        made = [*beginning("emulator"), *attempt(1, "s01", 1, "int x;", correct(None), Outcome.KEPT)]
        async with shown(made) as screen:
            assert "functional, not timed" in screen.text("#verdict-text")
        made = [*beginning(), *attempt(1, "s01", 1, "int x;", build_error(), Outcome.ERROR)]
        async with shown(made) as screen:
            assert "build error" in screen.text("#verdict-text")
            assert "s01.cu:11" in screen.text("#verdict-text")

    run(look())


def test_the_host_program_is_a_row_with_its_text_and_what_it_is_held_against() -> None:
    text = "class ModelNew(StitchModule):\n    def forward(self, x):\n        return x\n"
    judged = correct(1.3)
    assert judged.timing
    beside = Beside(samples=judged.timing.candidate, speedup=Ratio(value=1.25, low=1.2, high=1.3))
    judged = judged.model_copy(update={"timing": judged.timing.model_copy(update={"replaced": beside})})
    proposed = plan().model_copy(update={"subtasks": (*plan().subtasks, host_route.subtask())})
    made = [
        *beginning(),
        events.PlanUpdated(plan=proposed),
        *attempt(1, "host", 1, text, judged, Outcome.KEPT),
    ]

    async def look() -> None:
        async with shown(made) as screen:
            screen.screen.planner.choose("host")
            await screen.drawn()
            assert "host host program" in screen.picture
            assert "ModelNew(StitchModule)" in screen.picture
            assert "program before" in screen.text("#verdict-text")
            assert "1.25x" in screen.text("#verdict-text")

    run(look())


def test_the_roofline_shows_where_a_kernel_stands_or_why_it_cannot() -> None:
    work = subtask("s01", "x", SubtaskState.DONE, 0.4).work
    assert work
    ridge = work.peak_flops / work.bandwidth
    for flops, word in ((work.bytes_moved * ridge * 9, "compute-bound"), (work.bytes_moved, "memory-bound")):
        case = work.model_copy(update={"flops": flops})
        bound_us = max(flops / work.peak_flops, work.bytes_moved / work.bandwidth) * 1e6
        *plot, said = [line.plain for line in roofline.drawn(case, bound_us, 50)]
        assert word in said
        assert sum("●" in line for line in plot) == 1
        assert "┆" not in "".join(plot), "at its bound it stands on the roof"
        far = "\n".join(line.plain for line in roofline.drawn(case, bound_us * 99, 50))
        assert "┆" in far
    assert not list(roofline.drawn(work, 1.0, 20)), "no room"
    assert not list(roofline.drawn(work.model_copy(update={"flops": 0.0}), 1.0, 50))


def test_the_details_of_a_subtask_name_the_winner_of_its_race() -> None:
    time = Samples(median_us=3.0, low_us=2.9, high_us=3.1, count=90)
    race = Race(times={"tile-64x64x16": time, "tile-32x32x8": time}, failed={"tile-8x8x8": "crashes"})

    async def look() -> None:
        async with shown([*in_progress(), events.Raced(subtask="s03", race=race)]) as screen:
            screen.screen.planner.choose("s03")
            await screen.drawn()
            assert "raced    tile-64x64x16, fastest of 2 variants" in screen.text("#details")

    run(look())
