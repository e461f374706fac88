"""What ``stitch --auto`` prints."""

import io
import json
import os
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "agents"))

import sessions

from stitch_tui.agents import events, journal
from stitch_tui.agents.journal import Journal
from stitch_tui.agents.record import Record
from stitch_tui.agents.state import Status, SubtaskState
from stitch_tui.headless import NdjsonPrinter, PlainPrinter
from stitch_tui.plain_text import columns, printable
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.race import Race
from stitch_tui.tools.verdict import Category, Samples

HOSTILE = "x[/] tile[threadIdx.x][k] [@click=app.quit]go[/] \x1b[2J\x07"


def whole_session(title: str = "linear+gelu") -> list[events.Event]:
    subtask = sessions.subtask().model_copy(update={"title": title})
    return [
        *sessions.started(subtask),
        *sessions.attempt(1, Outcome.WRONG, sessions.verdict(Category.NUMERICS)),
        *sessions.attempt(2, Outcome.KEPT, sessions.verdict()),
        events.SubtaskFinished(subtask="s01", state=SubtaskState.DONE, best=2),
        events.SessionFinished(status=Status.GOAL_MET, exit_code=0, reason="all correct", best="a" * 40),
    ]


def printed(history: list[events.Event]) -> tuple[str, str]:
    progress, answer = io.StringIO(), io.StringIO()
    printer = PlainPrinter(progress, answer)
    for event in history:
        printer(event)
    return progress.getvalue(), answer.getvalue()


def test_the_table_shows_the_best_attempt_and_says_functional() -> None:
    progress, answer = printed(whole_session())
    assert "functional, not timed" in answer
    assert "correct" in answer
    assert "numerics" not in answer
    assert "numerics" in progress
    assert "goal met: all correct" in answer.splitlines()


def test_the_row_of_the_program_is_its_last_judged_version_and_counts_them() -> None:
    *history, finished, ended = whole_session()
    for number, judged in ((3, sessions.verdict(Category.NUMERICS)), (4, sessions.verdict())):
        _, _, *rest = sessions.attempt(number, Outcome.KEPT, judged, subtask="")
        begun = events.IterationStarted(iteration=number, subtask="", attempt=1, kind=Kind.INTEGRATE)
        history += [begun, *rest]
    sealed = [
        events.IterationStarted(iteration=5, subtask="", attempt=1, kind=Kind.SEAL),
        events.IterationEnded(iteration=5, outcome=Outcome.KEPT, reason="the best"),
        events.IterationCommitted(iteration=5, sha="f" * 40, subject="the best"),
    ]
    _, answer = printed([*history, finished, *sealed, ended])
    (row,) = [line.split() for line in answer.splitlines() if line.startswith("program")]
    assert row == ["program", "done", "correct", "2", f"{4:040x}"[:10], "all", "of", "it"]


def test_the_end_says_what_to_do_next() -> None:
    _, answer = printed(whole_session())
    assert "next  stitch log" in answer
    assert "stitch apply" not in answer, "the program was not judged"


def test_a_race_is_one_line_with_each_time_and_who_was_left_out() -> None:
    times = {
        "tile-a": Samples(median_us=9.0, low_us=8.9, high_us=9.1, count=90),
        "tile-b": Samples(median_us=12.0, low_us=11.5, high_us=12.5, count=30),
    }
    race = Race(times=times, failed={"tile-c": "illegal_access: \x1b[2J"}, seconds=8.0)
    started = sessions.started(sessions.subtask())
    progress, _ = printed([*started, events.Raced(subtask="s01", race=race)])
    (line,) = [line for line in progress.splitlines() if "race:" in line]
    assert line.split(maxsplit=1)[0] == "s01"
    assert "tile-a won in 8.0 s, tile-a 9.0 us (8.9 to 9.1), tile-b 12.0 us (11.5 to 12.5)" in line
    assert line.endswith("without tile-c (illegal_access: \\x1b[2J)")


def test_a_session_that_is_taken_up_is_told_from_its_journal(tmp_path: Path) -> None:
    record = Record(Journal(journal.path_of(tmp_path, "x"), "x"))
    *before, verdict, committed, finished, end = whole_session()
    for event in before:
        record.emit(event)
    progress, answer = io.StringIO(), io.StringIO()
    resumed = Record(
        Journal(journal.path_of(tmp_path, "x"), "x"),
        PlainPrinter(progress, answer, project=tmp_path),
        session=record.session,
    )
    for event in (events.SessionResumed(device="emulator"), verdict, committed, finished, end):
        resumed.emit(event)
    assert resumed.faults == []
    assert progress.getvalue().startswith("goes on    session x on emulator\n   2  s01      correct")
    assert "branch stitch/test, its tip aaaaaaaaaa" in answer.getvalue()


def test_the_answer_is_printed_where_nobody_reads_the_progress() -> None:
    answer = io.StringIO()
    with Path("/dev/full").open("w") as full:
        printer = PlainPrinter(full, answer)
        with printer.ending():
            for event in whole_session():
                printer(event)
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())  # what it still holds goes nowhere
    assert "goal met: all correct" in answer.getvalue()


def test_an_error_is_told_once() -> None:
    end = events.SessionFinished(status=Status.FAILED, exit_code=3, reason="no compiler")
    failed = events.Failed(kind="EnvironmentFault", text="no compiler", exit_code=3)
    progress, answer = printed([*sessions.started(sessions.subtask())[:1], failed, end])
    assert (progress + answer).count("no compiler") == 1
    assert answer.splitlines()[0] == "failed"


def test_columns_stand_in_line() -> None:
    lines = list(columns([("a", "", "long title"), ("wider", "", "x")]))
    assert lines == ["a      long title", "wider  x"]


def test_hostile_text_is_shown_and_never_obeyed() -> None:
    progress, answer = printed(whole_session(HOSTILE))
    assert "\x1b" not in progress + answer
    assert "\x07" not in progress + answer
    assert "[@click=app.quit]go[/]" in progress
    assert "tile[threadIdx.x]" in answer.replace("\n", "")


@given(st.text())
def test_printed_text_has_no_control_characters(text: str) -> None:
    shown = printable(text)
    assert all(char in "\n\t" or char.isprintable() for char in shown)


def test_ndjson_is_one_parsable_event_a_line() -> None:
    out = io.StringIO()
    printer = NdjsonPrinter(out)
    history = whole_session(HOSTILE)
    for event in history:
        printer(event)
    lines = out.getvalue().splitlines()
    assert [events.parse(line) for line in lines] == history
    assert json.loads(lines[-1])["type"] == "session.finished"
