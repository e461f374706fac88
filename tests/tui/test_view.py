"""What the screen shows, without a screen: diffs, colours, orders, the plan as text, drafts, the board."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shown_sessions import BETTER, CODE, SESSION, beginning, emulated, in_progress, numbered

from stitch_tui import clipboard
from stitch_tui.agents import commands, events
from stitch_tui.agents.commands import Add, Edit, Redirect, Reorder, Skip
from stitch_tui.agents.host import route as host_route
from stitch_tui.agents.state import Session
from stitch_tui.link import JournalFeed
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.race import Race
from stitch_tui.view import orders, plan_text
from stitch_tui.view.alignment import Alignment, Row, diff, pairs
from stitch_tui.view.board import STREAM_LINES, Board
from stitch_tui.view.drafts import Drafts
from stitch_tui.view.highlighting import PYTHON, Files, Highlights
from stitch_tui.view.listing import Fold, Remark, folded, is_marked, with_remarks
from stitch_tui.view.versions import differences
from stitch_tui.view.wording import bar

LINES = st.lists(st.sampled_from(["int i = 0;", "  x += 1;", "}", "", "return x;", "// é"]), max_size=30)


def session() -> Session:
    board = Board()
    for event in numbered(in_progress()):
        board.add(event)
    return board.session


@given(LINES, LINES)
def test_a_streamed_diff_holds_both_texts_and_so_does_a_finished_one(old: list[str], new: list[str]) -> None:
    alignment = Alignment(old)
    streamed = [row for line in new for row in alignment.add(line)]
    for rows in ([*streamed, *alignment.rest()], diff(old, new)):
        assert [row.text for row in rows if row.sign != "-"] == new
        assert [row.text for row in rows if row.sign != "+"] == old
        assert [row.new for row in rows if row.new] == list(range(1, len(new) + 1))
        assert [row.old for row in rows if row.old] == list(range(1, len(old) + 1))


@given(LINES, LINES)
def test_side_by_side_keeps_every_row(old: list[str], new: list[str]) -> None:
    rows = diff(old, new)
    paired = pairs(rows)
    assert [left for left, _ in paired if left and left.sign != "+"] == [r for r in rows if r.sign != "+"]
    assert [right for _, right in paired if right and right.sign != "-"] == [r for r in rows if r.sign != "-"]


def test_remarks_stand_at_their_lines_and_unchanged_lines_fold() -> None:
    rows = [Row(" ", n, n, f"line {n}") for n in range(1, 41)]
    said = [Remark("fact", 20, "ptxas: 8 registers"), Remark("error", 20, "wrong"), Remark("error", 99, "?")]
    items = list(with_remarks(rows, said))
    assert items[0] == said[2], "about no line that is there"
    at = items.index(rows[19])
    assert items[at - 1 : at + 2] == [said[0], rows[19], said[1]]
    short = folded(items)
    assert [item for item in short if isinstance(item, Remark)] == [said[2], said[0], said[1]]
    assert sum(item.lines if isinstance(item, Fold) else isinstance(item, Row) for item in short) == 40
    assert [item for item in short if is_marked(item)] == [said[2], said[1]]


def test_code_is_coloured_by_its_syntax() -> None:
    highlights = Highlights(CODE.split("\n"))
    lines = CODE.split("\n")

    def of(number: int) -> dict[str, str]:
        return {lines[number][begin:end]: kind for begin, end, kind in highlights.line(number)}

    assert of(1) == {"#include": "preproc", '"stitch.h"': "string"}
    assert of(5)["__global__"] == "cuda"
    assert of(5)["rms_norm_silu"] == "function"
    assert of(6)["blockIdx"] == "builtin"
    assert of(17)["__expf"] == "call"
    assert of(17)["// silu"] == "comment"


HOST = "class ModelNew(StitchModule):\n    def forward(self, x):  # once\n        return aten.relu(x, 'no')\n"


def test_a_host_program_is_coloured_as_python() -> None:
    lines = HOST.split("\n")
    whole, streamed = Highlights(lines, PYTHON), Highlights(lines, PYTHON, complete=False)
    found = [{lines[n][a:b]: kind for a, b, kind in whole.line(n)} for n in range(3)]
    assert found[0] == {"class": "keyword", "ModelNew": "type"}
    assert found[1] == {"def": "keyword", "forward": "function", "self": "builtin", "# once": "comment"}
    assert found[2] == {"return": "keyword", "relu": "call", "'no'": "string"}
    assert [streamed.line(n) for n in range(3)] == [whole.line(n) for n in range(3)]


def test_each_file_of_a_listing_has_the_colours_of_its_language() -> None:
    code, host, data = CODE.split("\n"), HOST.split("\n"), ["return = 1"]
    files = Files([("plan.toml", data), ("kernels/s01.cu", code), ("empty.py", []), ("host.py", host)])
    assert files.line(0) == [], "neither CUDA nor Python"
    assert [files.line(1 + n) for n in range(len(code))] == [
        Highlights(code).line(n) for n in range(len(code))
    ]
    after = 1 + len(code)
    assert [files.line(after + n) for n in range(3)] == [Highlights(host, PYTHON).line(n) for n in range(3)]
    assert Files([]).line(0) == []


def test_colours_of_a_stream_and_of_wide_characters_stay_in_their_line() -> None:
    lines = ["// größe → 宽", 'const char* s = "宽";  // x', "int i = 1;"] * 300
    growing = lines[:100]
    highlights = Highlights(growing, complete=False)
    highlights.line(99)
    growing += lines[100:]
    for number in (0, 1, 2, 127, 128, 500, 899):
        spans = highlights.line(number)
        assert spans, number
        assert all(0 <= begin < end <= len(lines[number]) for begin, end, _ in spans)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))


def test_colours_follow_lines_whose_predecessors_were_let_go() -> None:
    kept = ["int a = 1;", "return;"] * 200
    whole = Highlights(kept, complete=False)
    growing = ["/* gone */"] * 300 + kept
    pruned = Highlights(growing, complete=False)
    pruned.line(301)
    del growing[:300]
    pruned.begin_at(300)
    for number in (0, 1, 127, 128, 399):
        assert pruned.line(300 + number) == whole.line(number) != []


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("use shared memory", Redirect(subtask="s02", text="use shared memory", generation=3)),
        ("3: go", Redirect(subtask="s03", text="go", generation=3)),
        ("→ subtask 3: go", Redirect(subtask="s03", text="go", generation=3)),
        ("@s03: go", Redirect(subtask="s03", text="go", generation=3)),
        ("/now 1 stop that", Redirect(subtask="s01", text="stop that", now=True, generation=3)),
        ("/approve", commands.Decide(generation=3)),
        ("/approve 5", commands.Decide(subtask="s05", generation=3)),
        (
            "/reject s05 too small",
            commands.Decide(subtask="s05", choice="reject", text="too small", generation=3),
        ),
        ("/skip", Skip(subtask="s02", generation=3)),
        ("/unskip 4", Skip(subtask="s04", undo=True, generation=3)),
        ("/move 3 1", Reorder(subtask="s03", position=1, generation=3)),
        ("/restore 5", commands.Restore(iteration=5, generation=3)),
        ("/autonomy auto", commands.SetAutonomy(mode="auto", generation=3)),  # type: ignore[arg-type]
        ("/pause", commands.Pause(generation=3)),
    ],
)
def test_a_line_of_the_composer_is_an_order(line: str, command: object) -> None:
    make = orders.read(line, session(), "s02").make
    assert make
    assert make(3) == command


@pytest.mark.parametrize(
    "line", ["/aprove", "/restore", "/restore x", "/reject", "/move 9 1", "/autonomy", "/redirect"]
)
def test_what_is_no_order_says_what_one_looks_like(line: str) -> None:
    with pytest.raises(UsageError):
        orders.read(line, session(), "s02")


def test_words_without_a_subtask_are_not_sent_anywhere() -> None:
    with pytest.raises(UsageError, match="no subtask is selected"):
        orders.read("go", session(), "")


def test_every_entry_is_an_action_or_a_command_of_ctl() -> None:
    import typer

    from stitch_tui.commands.ctl import ctl

    known = set(typer.main.get_command(ctl).commands) | {"pause", "resume"}  # type: ignore[attr-defined]
    other = {"now": "redirect", "unskip": "skip", "move": "reorder"}
    assert {other.get(e.name, e.name) for e in orders.ENTRIES if not e.action} <= known


def test_the_plan_comes_back_from_the_editor_as_it_went() -> None:
    assert plan_text.changes(session(), plan_text.written(session())) == []


def test_each_change_of_the_plans_text_is_a_command() -> None:
    text = plan_text.written(session())
    third = text.index("## s03")
    fifth = text.index("## s05")
    fourth = text.index("## s04")
    text = (
        text[: text.index("## s01")]
        + text[third:fourth].replace("softmax", "softmax, online", 1)
        + text[text.index("## s01") : third]
        + text[fourth:fifth]
        + "## sum of rows\nnodes: add_1 sum_1\n\nOne warp a row.\n"
    )
    made = [change.make(0) for change in plan_text.changes(session(), text)]
    assert made == [
        Edit(subtask="s03", title="attention scores+softmax, online", generation=0),
        Skip(subtask="s05", text="deleted from the plan", generation=0),
        Add(title="sum of rows", nodes=("add_1", "sum_1"), strategy="One warp a row.", generation=0),
        Reorder(subtask="s03", position=1, generation=0),
    ]


def test_the_host_program_is_a_section_of_the_plans_text() -> None:
    text = plan_text.written(session()) + "## host program\nnodes: host\n\nOne graph.\n"
    (added,) = [change.make(0) for change in plan_text.changes(session(), text)]
    assert added == Add(title="host program", nodes=("host",), strategy="One graph.", generation=0)
    before = session()
    assert before.plan is not None
    plan = before.plan.model_copy(update={"subtasks": (*before.subtasks, host_route.subtask())})
    before = before.model_copy(update={"plan": plan})
    assert plan_text.changes(before, plan_text.written(before)) == []
    moved = plan_text.written(before).replace("## host host program", "## host one graph")
    assert [change.make(0) for change in plan_text.changes(before, moved)] == [
        Edit(subtask="host", title="one graph", generation=0)
    ]


def test_a_plan_with_an_unknown_subtask_is_refused() -> None:
    with pytest.raises(UsageError, match="no subtask s77"):
        plan_text.changes(session(), "## s77 x\nnodes: a\n")
    with pytest.raises(UsageError, match="needs nodes"):
        plan_text.changes(session(), "## new\n")


def test_drafts_and_history_outlive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "composer.json"
    drafts = Drafts(path)
    drafts.remember("first")
    drafts.remember("first")
    drafts.draft = "half a sent"
    drafts.save()
    again = Drafts(path)
    assert (again.draft, again.history) == ("half a sent", ["first"])
    path.write_text("\0\0")
    assert Drafts(path).history == []
    path.write_text(json.dumps({"draft": 1, "history": "x"}))
    assert Drafts(path).draft == ""


def test_the_board_forgets_nothing_and_counts_no_event_twice() -> None:
    board, made = Board(), numbered(in_progress())
    for event in [*made, *made]:
        board.add(event)
    assert board.seq == len(made) == board.changes
    assert board.session.id == SESSION
    assert tuple(board.session.iterations) == events.fold(made).iterations
    assert [s.id for s in board.proposed] == ["s05"]
    assert board.phase == "measuring s02"
    board.add(events.Decision(who="human", action="pause"))
    assert board.phase == "paused"


def test_a_race_is_a_note_and_part_of_its_subtask() -> None:
    board = Board()
    race = Race(left_out={"tile-a": "no time was left"})
    for event in numbered([*in_progress(), events.Raced(subtask="s02", race=race)]):
        board.add(event)
    assert board.session.subtask("s02").race == race
    assert (board.notes[-1].kind, board.notes[-1].text) == ("race", f"s02: {race.sentence}")


def test_streamed_text_is_kept_by_lines_and_bounded() -> None:
    board = Board()
    for event in beginning():
        board.add(event)
    for text in ("int a", ";\nint b;\nin", "t c;"):
        board.add(events.CoderDelta(subtask="s01", text=text))
    assert (board.stream.lines, board.stream.rest) == (["int a;", "int b;"], "int c;")
    board.add(events.CoderDelta(subtask="s01", text="\n" * 300_000))
    assert len(board.stream.lines) + board.stream.dropped == 300_002
    assert len(board.stream.lines) <= STREAM_LINES


def test_files_that_differ_are_listed_sources_first() -> None:
    before = {"report.md": b"a\n", "kernels/s01.cu": CODE.encode()}
    after = {"report.md": b"b\n", "kernels/s01.cu": BETTER.encode(), "plan.toml": b"x\n"}
    found = differences(before, after)
    assert [path for path, _, _ in found.files] == ["kernels/s01.cu", "plan.toml", "report.md"]
    assert found.sentence.startswith("kernels/s01.cu +5 -4")
    rows = [item for item in found.items if isinstance(item, Row)]
    for side, sign, number, at in ((found.old, "+", "old", 0), (found.new, "-", "new", 1)):
        lines = [line for _, text in side for line in text]
        shown = [row for row in rows if row.sign != sign]
        assert [lines[getattr(row, number) + row.shift[at] - 1] for row in shown] == [r.text for r in shown]


def test_a_copy_passes_through_tmux() -> None:
    plain = clipboard.sequence("x", tmux=False)
    assert plain == "\x1b]52;c;eA==\x07"
    assert clipboard.sequence("x", tmux=True) == "\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\"


def test_a_bar_is_as_long_as_its_share() -> None:
    assert [bar(share, 4) for share in (0, 0.5, 1, 7, -1)] == ["    ", "██  ", "████", "████", "    "]
    assert bar(1 / 32, 4) == "▏   "


def test_a_journal_that_is_damaged_says_so_after_what_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    whole = [event.model_dump_json() for event in numbered(emulated())]
    path.write_text("\n".join([*whole[:2], *whole[3:], ""]))
    board, feed = Board(), JournalFeed(path)
    asyncio.run(feed.run(board))
    assert board.seq == 2
    assert "the journal is damaged: event 4 stands where 3 should" in feed.trouble


def test_a_model_that_is_waited_for_is_counted_down_until_it_answers() -> None:
    board, began = Board(), datetime(2026, 1, 1, tzinfo=UTC)
    pause = {"role": "coder", "reason": "rate limit: 429: slow [/] down", "attempt": 1, "attempts": 5}
    for event in numbered([*in_progress(), events.ModelWaits(seconds=20, **pause)]):
        board.add(event.model_copy(update={"time": began}))
    assert board.countdown(began) == "coder asks again in 20 s: rate limit: 429: slow [/] down"
    assert board.countdown(began + timedelta(seconds=7.5)).startswith("coder asks again in 13 s")
    assert board.countdown(began + timedelta(seconds=20)) == "", "it is being asked"
    assert board.notes[-1].text.endswith("again in 20 s (attempt 2 of 6)")
    board.add(events.CoderDelta(subtask="s02", text="x"))
    assert board.countdown(began) == ""
