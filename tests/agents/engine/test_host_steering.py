"""A human steers while a host program is written, judged or waited for; the rest of the run is as it was."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from engine_here import Run
from engine_projects import Project, send
from host_sessions import attempts, host, host_is_asked, last_program, model, models
from openai_server import Reply
from scripted_model import ScriptedModel
from test_resume import assert_whole

from stitch_tui.agents import commands
from stitch_tui.agents.commands import Command
from stitch_tui.agents.events import Event
from stitch_tui.session import source_path
from stitch_tui.tools.iteration import Kind, Outcome

KEPT, SLOWER, REDIRECTED, CANCELLED = Outcome.KEPT, Outcome.SLOWER, Outcome.REDIRECTED, Outcome.CANCELLED
STALLED = Reply(host("half of it"), end="stalled")
FIRST, SECOND = 4, 5
"""Iterations of the first host programs, behind two at the kernel and the integration."""


def steered(
    run: Run,
    scripted: ScriptedModel,
    when: Callable[[Event], bool],
    act: Callable[[Project], Any],
    **script: Any,
) -> tuple[int, list[Event], Any]:
    """A run in which somebody acts once, beside it: exit code, events and what the act returned."""
    acts: list[Any] = []
    with scripted.served() as server, ThreadPoolExecutor(1) as beside:

        def listen(event: Event) -> None:
            if not acts and when(event):
                acts.append(beside.submit(act, run.project))

        script = {"timed": [1.5, 1.0]} | script
        code, printed = run.with_settings(models(server.url), listener=listen, **script)
    return code, printed, acts[0].result()


def sent(*made: Command) -> Callable[[Project], list[commands.Reply]]:
    return lambda project: send(project, *made)


def written(number: int) -> Callable[[Event], bool]:
    """Was the code of that iteration written?"""
    return lambda event: event.type == "code.written" and event.iteration == number


def redirected(text: str) -> Command:
    return commands.Redirect(subtask="host", text=text, now=True, generation=0)


def kinds(project: Project) -> list[Kind]:
    return [i.kind for i in project.session.iterations]


def test_redirected_while_it_is_written_the_stream_ends_and_what_came_is_kept(run: Run) -> None:
    scripted = model(STALLED, "second", "third")
    code, printed, (reply,) = steered(run, scripted, host_is_asked, sent(redirected("two streams")))
    assert (code, reply.text) == (0, "now")
    (cut,) = [e for e in printed if e.type == "exchange" and e.problem]
    assert (cut.stage, cut.problem) == ("program", "cancelled")
    assert cut.answer
    assert STALLED.text.startswith(cut.answer)
    assert "A person directs you: two streams" in scripted.prompts["host"][1]
    assert attempts(run.project) == [KEPT, SLOWER], "no answer, no iteration"
    assert "# second" in last_program(run.project)
    assert_whole(run.project)


def test_redirected_while_it_is_judged_it_is_an_iteration_and_the_program_before_stays(run: Run) -> None:
    scripted = model("first", "second", "third")
    act = sent(redirected("two streams"))
    code, _, (reply,) = steered(run, scripted, written(FIRST), act, hang=[FIRST])
    assert (code, reply.text) == (0, "now")
    assert attempts(run.project) == [REDIRECTED, KEPT, SLOWER]
    asked = scripted.prompts["host"][1]
    assert "A person directs you: two streams" in asked
    assert "# first" not in asked, "the next one starts from the program that was judged"
    assert run.project.commits[FIRST - 1].iteration.decision == "redirect host by human: two streams"
    assert_whole(run.project)


def test_redirected_while_the_kernels_are_stitched_it_hears_of_it_and_the_integration_goes_on(
    run: Run,
) -> None:
    def stitches(event: Event) -> bool:
        return event.type == "iteration.started" and event.kind is Kind.INTEGRATE

    scripted = model("first", "second")
    act = sent(redirected("two streams"))
    code, _, (reply,) = steered(run, scripted, stitches, act, patient=[3])
    assert (code, reply.text) == (0, "before its next attempt")
    assert run.project.session.iteration(3).outcome is KEPT
    assert "A person directs you: two streams" in scripted.prompts["host"][0]
    assert_whole(run.project)


def test_skipped_the_program_is_stitched_without_the_one_that_was_kept(run: Run) -> None:
    scripted = model("first", "second")
    act = sent(commands.Skip(subtask="host", generation=0))
    code, _, (reply,) = steered(run, scripted, written(SECOND), act, hang=[SECOND])
    assert (code, reply.ok) == (0, True)
    assert attempts(run.project) == [KEPT, CANCELLED]
    assert kinds(run.project)[SECOND:] == [Kind.INTEGRATE]
    assert run.project.session.subtask("host").best is None
    assert "# first" not in last_program(run.project)
    assert_whole(run.project)


@pytest.mark.parametrize("doing", ["written", "judged"])
def test_a_humans_wins_over_the_one_that_is_written_or_judged(run: Run, doing: str) -> None:
    def by_hand(project: Project) -> str:
        path = source_path(project.folder, project.session, "host")
        head = "    def forward(self, x):\n"
        mine = path.read_text().replace(head, f"{head}        # mine\n")
        path.write_text(mine)
        return mine

    if doing == "written":
        scripted, when, before = model(STALLED, "second", "third"), host_is_asked, []
        script: dict[str, Any] = {}
    else:
        scripted, when, before = model("first", "second", "third"), written(FIRST), [REDIRECTED]
        script = {"hang": [FIRST]}
    code, _, mine = steered(run, scripted, when, by_hand, **script)
    assert code == 0
    assert attempts(run.project) == [*before, KEPT, SLOWER]
    judged = run.project.session.iterations[FIRST - 1 + len(before)]
    assert judged.candidate is not None
    assert (judged.kind, judged.candidate.source) == (Kind.HUMAN, mine)
    assert "# mine" in scripted.prompts["host"][1], "the Coder goes on from it"
    assert "# mine" in last_program(run.project)
    assert_whole(run.project)


def test_a_kernel_that_is_restored_meanwhile_is_stitched_before_another_host_program(run: Run) -> None:
    scripted = model(STALLED, "second", "third")
    act = sent(
        commands.Restore(iteration=1, generation=0),
        commands.Redirect(subtask="host", text="go on", now=True, generation=0),
    )
    code, printed, replies = steered(run, scripted, host_is_asked, act)
    assert (code, [reply.ok for reply in replies]) == (0, [True, True])
    assert kinds(run.project)[3:6] == [Kind.RESTORE, Kind.INTEGRATE, Kind.PROGRAM]
    assert "integrate" in [e.next for e in printed if e.type == "route" and e.subtask == "host"]
    assert run.project.session.subtask("s01").best == 1
    assert_whole(run.project)
