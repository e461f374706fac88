"""The session screen on a real engine: keys change the run, and leaving it leaves the run alone."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from engine_projects import Project, of_type, send, until
from pilots import pressed
from textual.pilot import Pilot
from textual.widgets import Static

from stitch_tui.agents import commands, journal
from stitch_tui.agents.events import Decision
from stitch_tui.agents.settings import Autonomy, Settings
from stitch_tui.agents.state import Session, Status, SubtaskState
from stitch_tui.app import StitchApp
from stitch_tui.link import EngineFeed
from stitch_tui.screens.session import SessionScreen
from stitch_tui.session import found
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.view.board import Board
from stitch_tui.view.drafts import Drafts
from stitch_tui.widgets.code_view import CodeView
from stitch_tui.widgets.coder import CoderPane

WAIT_S = 120.0


def app_on(project: Project, drafts: Path | None = None) -> StitchApp:
    feed = EngineFeed(found(project.folder), project.folder)
    return StitchApp(SessionScreen(Board(), feed, project.folder, Drafts(drafts)), project.folder, Settings())


async def seen(pilot: Pilot[None], wanted: object) -> None:
    """Wait until `wanted`, a function, is true on the screen."""
    assert callable(wanted)
    async with asyncio.timeout(WAIT_S):
        while not wanted():
            await pilot.pause(0.02)


def test_live_code_is_shown_and_leaving_it_leaves_the_run(project: Project) -> None:
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))

    async def look() -> None:
        app = app_on(project)
        async with app.run_test(size=(150, 44)) as pilot:
            code = app.screen.query_one(CodeView)
            await seen(pilot, lambda: "__global__" in app.screen.query_one(CoderPane).text)
            assert "//" in shown(code)
            banner = str(app.screen.query_one("#banner", Static).content)
            assert project.session.id in banner
            await pilot.press("ctrl+q")
            await pilot.press("d")
        assert app.return_code == 0

    asyncio.run(look())
    assert engine.poll() is None, "the run goes on"
    send(project, commands.Stop(generation=0))
    engine.communicate(timeout=60)


def shown(code: CodeView) -> str:
    """What of the code is on the screen."""
    return "\n".join(code.render_line(y).text for y in range(code.size.height))


def test_a_redirect_from_the_composer_reaches_the_run(project: Project) -> None:
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))

    async def redirect() -> None:
        app = app_on(project)
        async with app.run_test(size=(120, 40)) as pilot:
            screen = app.screen
            assert isinstance(screen, SessionScreen)
            await seen(pilot, lambda: screen.chosen is not None)
            await pilot.press("R", *"use", "space", *"shared", "enter")
            await seen(pilot, lambda: screen.board.session.generation == 1)
            assert screen.composer.field.text == ""

    asyncio.run(redirect())
    engine.communicate(timeout=200)  # what hung was cancelled, the rest goes through
    assert project.session.subtasks[0].direction == "use shared"
    assert project.session.iteration(1).outcome is Outcome.REDIRECTED


def test_a_plan_is_approved_by_key_and_a_subtask_skipped(project: Project) -> None:
    engine = project.start(settings={"autonomy": {"mode": "ask-plan"}}, hang=[1])
    until(engine, of_type("plan.proposed"))

    async def decide() -> None:
        app = app_on(project)
        async with app.run_test(size=(120, 40)) as pilot:
            screen = app.screen
            assert isinstance(screen, SessionScreen)
            await seen(pilot, lambda: len(screen.board.proposed) >= 2)
            last = screen.board.session.subtasks[-1].id
            await seen(pilot, lambda: screen.planner.settled([last]))
            screen.planner.choose(last)
            await pilot.press("s", "y")
            await seen(pilot, lambda: screen.board.subtask(last).state is SubtaskState.SKIPPED)  # type: ignore[union-attr]
            await pilot.press("A", "y")
            await seen(pilot, lambda: screen.board.active is not None)

    asyncio.run(decide())
    assert project.session.subtasks[-1].state is SubtaskState.SKIPPED
    assert not any(s.state is SubtaskState.PROPOSED for s in project.session.subtasks)
    send(project, commands.Stop(generation=0))
    engine.communicate(timeout=60)


Holds = Callable[[Session], bool]
ON_THE_PLAN: list[tuple[str, str, Holds]] = [
    ("o s u m tab tab {left} enter", "s01", lambda s: titles(s)[2:] == ["sum"]),
    ("e ! enter", "s02", lambda s: titles(s)[1].endswith("!")),
    ("J", "s01", lambda s: ids(s) == ["s02", "s01", "s03"]),
    ("K", "s01", lambda s: ids(s) == ["s01", "s02", "s03"]),
    ("shift+down", "s01", lambda s: ids(s) == ["s02", "s01", "s03"]),
    ("shift+up", "s01", lambda s: ids(s) == ["s01", "s02", "s03"]),
    ("n", "s02", lambda s: s.subtask("s02").state is SubtaskState.SKIPPED),
    ("s", "s02", lambda s: s.subtask("s02").state is not SubtaskState.SKIPPED),
    ("a", "s01", lambda s: s.subtask("s01").state is not SubtaskState.PROPOSED),
    ("f6", "s02", lambda s: s.paused),
    ("p", "s02", lambda s: not s.paused),
    ("shift+tab y", "s02", lambda s: s.autonomy == Autonomy.AUTO),
    ("x k", "s02", lambda s: s.status is Status.STOPPED),
]
"""Keys, the subtask that is selected, and what then holds of the engine's session."""


def ids(session: Session) -> list[str]:
    return [subtask.id for subtask in session.subtasks]


def titles(session: Session) -> list[str]:
    return [subtask.title for subtask in session.subtasks]


async def press_on(pilot: Pilot[None], subtask: str, keys: str) -> None:
    """Press keys for a subtask whose row has been on screen for long enough."""
    screen = pilot.app.screen
    assert isinstance(screen, SessionScreen)
    await seen(pilot, lambda: not screen.form.is_open)
    screen.planner.choose(subtask)
    screen.planner.focus()
    waiting = [s.id for s in screen.board.proposed]
    await seen(pilot, lambda: screen.planner.settled(waiting))
    screen.draw()
    await pressed(pilot, *keys.split())


def test_each_key_on_the_plan_changes_the_engines_session(project: Project) -> None:
    engine = project.start(settings={"autonomy": {"mode": "ask-plan"}}, hang=[1])
    until(engine, of_type("plan.proposed"))
    left = project.session.plan.uncovered[0].nodes[0]

    async def decide() -> None:
        async with app_on(project).run_test(size=(120, 40)) as pilot:
            screen = pilot.app.screen
            assert isinstance(screen, SessionScreen)
            await seen(pilot, lambda: len(screen.board.proposed) >= 2)
            for keys, subtask, holds in ON_THE_PLAN:
                await press_on(pilot, subtask, keys.format(left=" ".join(left.replace("_", " underscore "))))
                await seen(pilot, lambda holds=holds: holds(screen.board.session))
                assert holds(project.session), "the journal has it too"

    asyncio.run(decide())
    engine.communicate(timeout=60)


def test_keys_on_a_step_that_runs_turn_it_and_bring_an_earlier_version_back(project: Project) -> None:
    engine = project.start(hang=[2])
    until(engine, of_type("code.written", 2))

    async def steer() -> None:
        async with app_on(project).run_test(size=(120, 40)) as pilot:
            screen = pilot.app.screen
            assert isinstance(screen, SessionScreen)
            await seen(pilot, lambda: screen.board.active is not None)
            await press_on(pilot, "s01", "b y")
            await seen(pilot, lambda: "restore" in [d.action for d in decisions(project)])
            await press_on(pilot, "s02", "r t i l e s enter")
            await seen(pilot, lambda: project.session.subtask("s02").direction == "tiles")
            await press_on(pilot, "s02", "escape escape")
            await seen(pilot, lambda: project.session.iteration(2).outcome is not None)

    asyncio.run(steer())
    engine.communicate(timeout=200)
    assert project.session.iteration(2).outcome in (Outcome.REDIRECTED, Outcome.CANCELLED)
    assert Kind.RESTORE in [iteration.kind for iteration in project.session.iterations]
    assert project.session.subtask("s02").direction == "tiles", "cancelling a step keeps what was said"


def decisions(project: Project) -> list[Decision]:
    return [event for event in journal.read(project.journal) if isinstance(event, Decision)]


def test_the_screen_finds_the_engine_again_and_says_when_it_is_gone(project: Project) -> None:
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))

    async def watch() -> None:
        app = app_on(project)
        async with app.run_test(size=(120, 40)) as pilot:
            screen = app.screen
            assert isinstance(screen, SessionScreen)

            def banner() -> str:
                return str(app.screen.query_one("#banner", Static).content)

            await seen(pilot, lambda: screen.board.active is not None)
            engine.kill()
            await seen(pilot, lambda: "killed" in screen.feed.trouble)
            await seen(pilot, lambda: "stitch --auto --resume" in banner())

    asyncio.run(watch())
