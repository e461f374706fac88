"""Whoever listens to a run may fail or leave: the run goes on to its end, and is told whole when taken up."""

import io

import pytest
from engine_here import Run

from stitch_tui.agents import events, journal
from stitch_tui.agents.events import Event
from stitch_tui.headless import PlainPrinter


def test_a_run_outlives_whoever_listens_and_a_finished_one_is_summed_up_again(run: Run) -> None:
    heard: list[Event] = []

    def leaves(event: Event) -> None:
        heard.append(event)
        if event.type == "plan.proposed":
            raise BrokenPipeError("Broken pipe")

    code, _ = run.with_settings({}, listener=leaves)
    assert code == 0
    written = list(journal.read(run.project.journal))
    assert heard[-1].type == "plan.proposed"
    assert written[-1].type == "session.finished"
    said = [event.text for event in written if isinstance(event, events.Warned)]
    assert said == ["the run goes on unheard: BrokenPipeError: Broken pipe"]
    assert [i.commit for i in run.project.session.iterations] == [c.sha for c in run.project.commits]

    answer = io.StringIO()
    printer = PlainPrinter(io.StringIO(), answer, project=run.project.folder)
    assert run.with_settings({}, resume="", listener=printer)[0] == 0
    assert f"branch {run.project.session.branch}, its tip" in answer.getvalue()
    assert "--reference model.py" in answer.getvalue()
    assert "stitch doctor" not in answer.getvalue()

    def fails(event: Event) -> None:
        raise KeyError(event.type)

    with pytest.raises(KeyError):  # reported, once the run has ended as it would have
        run.with_settings({}, resume="", listener=fails)
    last = list(journal.read(run.project.journal))[-1]
    assert isinstance(last, events.SessionFinished)
    assert last.exit_code == 0
