"""What was changed in a plan becomes commands, also when the plan has gone on meanwhile."""

from dataclasses import replace

import pytest
from sessions import subtask

from stitch_tui.agents.commands import Add, Command, Decide, Edit, Reorder, Skip
from stitch_tui.agents.plan_outline import Row, changes, outline
from stitch_tui.agents.state import Plan, Session, SubtaskState
from stitch_tui.tools.errors import UsageError


def session(**states: SubtaskState) -> Session:
    """Subtasks of these names and states."""
    return Session(
        plan=Plan(subtasks=tuple(subtask(id).model_copy(update={"state": s}) for id, s in states.items()))
    )


def commands(now: Session, before: tuple[Row, ...], *after: Row) -> list[Command]:
    return [change.make(7) for change in changes(now, before, after)]


PROPOSED, CODING, DONE, SKIPPED = (SubtaskState(s) for s in ("proposed", "coding", "done", "skipped"))
PLAN = session(s01=CODING, s02=PROPOSED, s03=SKIPPED)
FIRST, SECOND, THIRD = outline(PLAN)


def test_an_outline_that_nobody_changed_changes_nothing() -> None:
    assert commands(PLAN, outline(PLAN), *outline(PLAN)) == []


def test_rows_become_commands() -> None:
    new = Row("", "sum", ("e",), "one block")
    assert commands(
        PLAN,
        outline(PLAN),
        replace(THIRD, state="approved"),
        replace(FIRST, title="gelu", strategy="tiles"),
        replace(SECOND, state="approved", nodes=("a", "b")),
        new,
    ) == [
        Edit(subtask="s01", title="gelu", strategy="tiles", generation=7),
        Edit(subtask="s02", nodes=("a", "b"), generation=7),
        Skip(subtask="s03", undo=True, generation=7),
        Decide(subtask="s02", generation=7),
        Add(title="sum", nodes=("e",), strategy="one block", generation=7),
        Reorder(subtask="s03", position=1, generation=7),
    ]


def test_only_a_new_strategy_is_of_no_use_to_the_step_that_runs() -> None:
    after = [replace(FIRST, strategy="tiles"), replace(SECOND, title="x"), THIRD]
    found = changes(PLAN, outline(PLAN), after)
    assert [change.turns for change in found] == ["s01", ""]


def test_what_was_not_touched_stays_as_it_has_become_meanwhile() -> None:
    older = (replace(FIRST, title="old", state="proposed"), SECOND)
    assert commands(PLAN, older, replace(older[0], strategy="tiles"), SECOND) == [
        Edit(subtask="s01", strategy="tiles", generation=7)
    ]
    assert commands(session(s02=PROPOSED, s01=CODING), (FIRST, SECOND), FIRST, SECOND) == []


def test_what_has_ended_is_not_skipped_again() -> None:
    now = session(s01=DONE, s02=PROPOSED)
    assert commands(now, outline(now)) == [Skip(subtask="s02", text="deleted from the plan", generation=7)]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (Row("s77", "x", ("a",), ""), "no subtask s77"),
        (Row("s01", "x", ("linear",), ""), "s01 stands there twice"),
        (Row("", "x", (), ""), "needs nodes"),
        (Row("", "", ("e",), ""), "needs a title"),
        (replace(SECOND, state="done"), "cannot become 'done'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_row(row: Row, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        changes(PLAN, outline(PLAN), [FIRST, row])
