"""An event is on disk before anyone sees it, whole or not at all."""

import subprocess
import sys
from pathlib import Path

import pytest
import sessions
from hypothesis import given
from hypothesis import strategies as st

from stitch_tui.agents import events, journal
from stitch_tui.agents.journal import Journal
from stitch_tui.agents.record import Record
from stitch_tui.tools.errors import EnvironmentFault, UsageError
from stitch_tui.tools.iteration import Outcome


def test_events_are_numbered_from_one_and_carry_the_session(tmp_path: Path) -> None:
    path = tmp_path / "sessions" / "x" / "events.jsonl"
    log = Journal(path, "x")
    written = [log.append(event) for event in sessions.started()]
    log.close()
    assert [event.seq for event in written] == [1, 2, 3]
    assert {event.session for event in written} == {"x"}
    assert list(journal.read(path)) == written


def test_streamed_text_passes_unjournalled_and_unnumbered(tmp_path: Path) -> None:
    log = Journal(tmp_path / "events.jsonl", "x")
    assert log.append(events.CoderDelta(subtask="s01", text="__global__")).seq == 0
    assert log.append(events.Warned(text="later")).seq == 1
    log.close()


@given(st.binary(max_size=40).filter(lambda torn: b"\n" not in torn))
def test_a_torn_last_line_is_cut_off_and_numbering_goes_on(tmp_path_factory, torn: bytes) -> None:
    path = tmp_path_factory.mktemp("torn") / "events.jsonl"
    log = Journal(path, "x")
    log.append(events.Warned(text="first"))
    log.close()
    with path.open("ab") as end:
        end.write(torn)
    reopened = Journal(path, "x")
    assert reopened.append(events.Warned(text="second")).seq == 2
    reopened.close()
    assert [event.text for event in journal.read(path)] == ["first", "second"]


def test_listeners_see_an_event_after_it_is_on_disk_and_folded(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    seen: list[tuple[int, int]] = []
    record = Record(Journal(path, "x"), lambda event: seen.append((event.seq, _lines(path))))
    for event in sessions.started() + sessions.attempt(1, Outcome.KEPT, sessions.verdict()):
        record.emit(event)
    assert seen == [(n, n) for n in range(1, 8)]
    assert record.session == events.fold(journal.read(path))


def test_a_listener_that_fails_is_heard_of_and_hears_no_more(tmp_path: Path) -> None:
    heard: list[int] = []
    told: list[int] = []

    def fails(event: events.Event) -> None:
        heard.append(event.seq)
        raise ZeroDivisionError("1/0")

    record = Record(Journal(tmp_path / "events.jsonl", "x"), fails, lambda event: told.append(event.seq))
    for event in sessions.started():
        record.emit(event)
    written = list(journal.read(tmp_path / "events.jsonl"))
    assert heard == [1]
    assert told == [event.seq for event in written] == [1, 2, 3, 4]
    assert written[1].text == "the run goes on unheard: ZeroDivisionError: 1/0"
    assert [str(fault) for fault in record.faults] == ["1/0"]


def test_a_full_disk_is_one_error_and_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    script = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from pathlib import Path
from stitch_tui.agents.events import Warned
from stitch_tui.agents.journal import Journal
from stitch_tui.tools.errors import EnvironmentFault, UsageError
log = Journal(Path({str(path)!r}), "x")
log.append(Warned(text="a" * 100))
resource.setrlimit(resource.RLIMIT_FSIZE, (400, -1))
try:
    log.append(Warned(text="b" * 1000))
except EnvironmentFault as fault:
    print(fault)
resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
log.append(Warned(text="c"))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=_root())
    assert "journal cannot be written" in done.stdout, done.stderr
    assert [(e.seq, e.text[0]) for e in journal.read(path)] == [(1, "a"), (2, "c")]


def test_a_folder_that_cannot_be_written_is_an_environment_fault(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file where the folder should be")
    with pytest.raises(EnvironmentFault, match="journal cannot be written"):
        Journal(tmp_path / "sessions" / "x" / "events.jsonl", "x")


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _root() -> Path:
    return Path(__file__).resolve().parents[2]


def test_a_line_of_an_older_version_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def renamed(data: dict[str, object]) -> dict[str, object]:
        return {**data, "v": 1, "type": "warning"}

    monkeypatch.setitem(journal.MIGRATIONS, 0, renamed)
    path = tmp_path / "events.jsonl"
    path.write_text(
        '{"v":0,"seq":1,"type":"caution","text":"old"}\n{"v":1,"seq":2,"type":"warning","text":"new"}\n'
    )
    assert [event.text for event in journal.read(path)] == ["old", "new"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"v":1,"seq":3,"type":"warning","text":"x"}', "damaged: event 3 stands where 2 should"),
        ('{"v":1,"seq":1,"type":"warning","text":"x"}', "damaged: event 1 stands where 2 should"),
        ('{"v":2,"type":"warning","text":"x"}', "written by a newer stitch"),
        ('{"v":0,"type":"warning","text":"x"}', "the journal is damaged"),
        ('{"v":1,"type":"warning"}', "the journal is damaged: warning.text: Field required"),
        ("nonsense", "the journal is damaged"),
        ("[1]", "the journal is damaged"),
    ],
)
def test_a_line_that_cannot_be_read_is_one_error_with_its_place(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(f'{{"v":1,"seq":1,"type":"warning","text":"fine"}}\n{line}\n')
    with pytest.raises(UsageError, match=said) as refused:
        list(journal.read(path))
    assert refused.value.where == f"{path}:2"


def test_what_is_no_file_is_no_journal(tmp_path: Path) -> None:
    path = journal.path_of(tmp_path, "x")
    path.mkdir(parents=True)
    assert journal.sessions(tmp_path) == []
    with pytest.raises(EnvironmentFault, match="cannot be read: Is a directory"):
        list(journal.read(path))
    with pytest.raises(EnvironmentFault, match="cannot be read: No such file"):
        list(journal.read(journal.path_of(tmp_path, "gone")))


def test_a_line_of_brackets_without_end_is_damage_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("[" * 100_000 + "\n")
    with pytest.raises(UsageError, match="damaged"):
        list(journal.read(path))
