"""The small screen shows a running session, and leaving it leaves the run alone."""

import asyncio
import subprocess
import sys
from pathlib import Path

from engine_projects import Project, of_type, send, until
from textual.widgets import Log, Static

from stitch_tui.agents import commands, events
from stitch_tui.agents.presence import Engine
from stitch_tui.agents.state import Candidate, Plan, Subtask
from stitch_tui.app import SessionApp
from stitch_tui.session import found
from stitch_tui.tools.graph import Region
from stitch_tui.tools.iteration import Kind

HOSTILE = "x[/] tile[threadIdx.x][k] [@click=app.quit]go[/]"


def test_three_panes_show_the_live_session_and_q_detaches(project: Project) -> None:
    engine = project.start(hang=[1])
    until(engine, of_type("code.written"))

    async def look() -> tuple[str, str]:
        app = SessionApp(found(project.folder))
        async with app.run_test() as pilot:
            code = app.query_one("#code", Log)
            while "__global__" not in "".join(code.lines):
                await pilot.pause()
            plan = str(app.query_one("#plan", Static).content)
            await pilot.press("q")
        return plan, app.title

    plan, title = asyncio.run(look())
    assert "s01" in plan
    assert project.session.id in title
    assert engine.poll() is None, "the run goes on"
    send(project, commands.Stop(generation=0))
    engine.communicate(timeout=60)


def test_foreign_text_is_never_markup() -> None:
    nowhere = Engine(pid=0, session="x", socket=Path("/nowhere/at/all"))
    region = Region(nodes=("relu",), inputs=("x",), outputs=("relu",))
    plan_of_it = Plan(subtasks=(Subtask(id="s01", title=HOSTILE, region=region),))
    start = events.IterationStarted(iteration=1, subtask="s01", attempt=1, kind=Kind.DRAFT)
    candidate = Candidate(source=HOSTILE, strategy="x")
    code_written = events.CodeWritten(iteration=1, subtask="s01", candidate=candidate, path="s01.cu")

    async def look() -> list[str]:
        app = SessionApp(nowhere)
        async with app.run_test() as pilot:
            for event in (events.PlanProposed(plan=plan_of_it), start, code_written):
                app._show(event)
            await pilot.pause()
            return [str(app.query_one("#plan", Static).content), *app.query_one("#code", Log).lines]

    plan, *code = asyncio.run(look())
    assert HOSTILE in plan
    assert HOSTILE in code


def test_the_screen_imports_neither_torch_nor_git() -> None:
    heavy = "{'torch', 'git', 'openai', 'lancedb'}"
    program = f"import sys, stitch_tui.app; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
