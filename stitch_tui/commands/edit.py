"""``stitch edit``: a kernel of the session, its host program, or its plan, by hand."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stitch_tui.commands.output import say

if TYPE_CHECKING:
    from stitch_tui.agents.state import Session


def edit(
    subtask: Annotated[
        str, typer.Argument(metavar="[SUBTASK]", help="Or host, plan; else the one at work.")
    ] = "",
) -> None:
    """Open a subtask's .cu in $VISUAL or $EDITOR; what you save becomes an iteration of yours.

    A running session notices it, ends its own step on that subtask, and judges and commits yours like any
    other.  `stitch edit host` opens the host program, where the plan has one, as it is stitched now;
    `stitch edit plan` opens the session's plan.toml: what you change there is done.  Without a
    terminal the file's path is printed: any editor will do.
    """
    from stitch_tui import editor
    from stitch_tui.agents import presence
    from stitch_tui.session import journal_of, plan_path, source_path, state_of

    engine = presence.running(Path.cwd())
    name = journal_of(Path.cwd(), engine.session if engine else "").parent.name
    session = state_of(Path.cwd(), name)
    if subtask == "plan":
        path = plan_path(Path.cwd(), session)
    else:
        path = source_path(Path.cwd(), session, _chosen(session, subtask))
    if not editor.edit(path):
        say(str(path))
    if engine is None:
        say("no engine runs: your edit counts when the session goes on (stitch --auto --resume)")


def _chosen(session: "Session", word: str) -> str:
    """The id that `word` means, else that of the subtask at work, else of the only one.

    Raises:
        UsageError: there is none, or it is not clear which.
    """
    from stitch_tui.tools.errors import UsageError
    from stitch_tui.view.orders import subtask_id

    if word:
        return subtask_id(word, session)
    active = [subtask.id for subtask in session.subtasks if subtask.state.active]
    known = active or [subtask.id for subtask in session.subtasks]
    if len(known) != 1:
        raise UsageError("which subtask?", advice=f"there is {', '.join(known) or 'none yet'}")
    return known[0]
