"""When the variants of a subtask are raced, and what the session knows of it afterwards."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from stitch_tui.agents import events, journal
from stitch_tui.agents.gates import Overtaken
from stitch_tui.agents.journal import Journal
from stitch_tui.agents.record import Record
from stitch_tui.agents.roles import CodeBrief
from stitch_tui.agents.search import Search
from stitch_tui.agents.settings import SearchSettings
from stitch_tui.agents.state import HOST, Candidate, Iteration, Plan, Subtask, Task
from stitch_tui.tools.errors import Denied, DeviceLost, JudgeKilled, LimitReached, ReferenceFault
from stitch_tui.tools.graph import Graph
from stitch_tui.tools.iteration import Kind
from stitch_tui.tools.race import Race
from stitch_tui.tools.verdict import Samples

GPU = "cuda NVIDIA H200 sm_90"
TIME = Samples(median_us=3.0, low_us=2.9, high_us=3.1, count=90)
GRAPH = Graph(sources=(), nodes=(), outputs=())


@dataclass
class Contestants:
    """Coder and Verifier of a race with so many variants, of which the last one wins."""

    count: int = 3
    fault: Exception | None = None
    """What a race ends with."""
    raced: list[tuple[list[str], float]] = field(default_factory=list)

    async def code(self, brief: CodeBrief) -> Candidate | None:
        raise AssertionError

    def variants(self, brief: CodeBrief, most: int) -> tuple[Candidate, ...]:
        names = [f"v{number}" for number in range(min(self.count, most))]
        return tuple(Candidate(source=f"// {name}", strategy=name) for name in names)

    async def race(self, subtask: Subtask, sources: Mapping[str, str], seconds: float) -> Race:
        self.raced.append((list(sources), seconds))
        if self.fault:
            raise self.fault
        return Race(times=dict.fromkeys(reversed(sources), TIME), left_out={"late": "no time was left"})

    async def verify(self, *args: Any) -> Any:
        raise AssertionError("a race gives no verdict")

    verify_program = verify


def searched(
    folder: Path, contestants: Contestants, subtask: Subtask, settings: SearchSettings, **brief: Any
) -> tuple[bool, Record]:
    path = folder / "events.jsonl"
    record = Record(Journal(path, "a-session"))
    record.emit(events.PlanProposed(plan=Plan(subtasks=(subtask,))))
    told = CodeBrief(graph=GRAPH, subtask=subtask, **({"device": GPU} | brief))
    search = Search(record, contestants, contestants, settings)
    return asyncio.run(search.before(told)), record


def test_a_subtask_is_raced_once_before_its_first_attempt_and_the_journal_tells_it(tmp_path: Path) -> None:
    contestants, subtask = Contestants(5), Subtask(id="s01", title="gelu")
    took_place, record = searched(tmp_path, contestants, subtask, SearchSettings(seconds=9.0, variants=4))
    assert took_place
    assert contestants.raced == [(["v0", "v1", "v2", "v3"], 9.0)]
    known = events.fold(journal.read(tmp_path / "events.jsonl")).subtask("s01")
    assert known == record.session.subtask("s01")
    assert known.race is not None
    assert (known.race.winner, known.race.left_out) == ("v3", {"late": "no time was left"})
    assert (known.attempts, known.best) == (0, None), "a race is no attempt"
    (tmp_path / "again").mkdir()
    assert not searched(tmp_path / "again", contestants, known, SearchSettings())[0]


@pytest.mark.parametrize(
    "fault",
    [
        DeviceLost("the judge's context on the GPU is gone"),
        JudgeKilled("the reference was killed"),
        ReferenceFault("race took longer than 300 s"),
        OSError(28, "No space left on device"),
    ],
    ids=lambda fault: type(fault).__name__,
)
def test_a_race_that_fails_is_over_and_is_said(fault: Exception, tmp_path: Path) -> None:
    contestants, subtask = Contestants(fault=fault), Subtask(id="s01", title="gelu")
    assert searched(tmp_path, contestants, subtask, SearchSettings())[0]
    *_, warned, raced = journal.read(tmp_path / "events.jsonl")
    assert isinstance(warned, events.Warned)
    assert warned.text == f"s01: its variants were not raced: {fault}"
    assert isinstance(raced, events.Raced)
    assert raced.race == Race(), "it is not begun again"


@pytest.mark.parametrize(
    "fault", [Denied("a rule denies this run to run"), LimitReached("the limit"), Overtaken("redirected")]
)
def test_what_a_human_or_a_limit_ends_is_no_fault_of_the_race(fault: Exception, tmp_path: Path) -> None:
    with pytest.raises(type(fault)):
        searched(tmp_path, Contestants(fault=fault), Subtask(id="s01", title="gelu"), SearchSettings())


@pytest.mark.parametrize(
    ("contestants", "subtask", "settings", "brief"),
    [
        (Contestants(), {}, {}, {"device": "emulator"}),
        (Contestants(), {}, {"seconds": 0.0}, {}),
        (Contestants(1), {}, {}, {}),
        (Contestants(), {"id": HOST, "task": Task.PROGRAM}, {}, {}),
        (
            Contestants(),
            {},
            {},
            {"attempts": (Iteration(number=1, subtask="s01", attempt=1, kind=Kind.DRAFT),)},
        ),
    ],
    ids=["on the emulator", "no time", "one variant", "the host program", "begun"],
)
def test_there_is_no_race(
    contestants: Contestants, subtask: dict[str, Any], settings: Any, brief: Any, tmp_path: Path
) -> None:
    planned = Subtask(**({"id": "s01", "title": "gelu"} | subtask))
    took_place, record = searched(tmp_path, contestants, planned, SearchSettings(**settings), **brief)
    assert (took_place, contestants.raced) == (False, [])
    assert record.session.subtasks == (planned,)
