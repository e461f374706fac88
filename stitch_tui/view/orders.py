"""Everything a person can do, in one list: the palette shows it, ``/`` commands and ``stitch ctl`` match it.

A line of the composer is read here into an order: a command for the engine, an action of the screen, or
words for the Coder of one subtask.  Pure; what a line means does not depend on the screen.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from stitch_tui.agents.commands import (
    Command,
    Decide,
    Pause,
    Redirect,
    Reorder,
    Restore,
    Resume,
    SetAutonomy,
    Skip,
    Stop,
)
from stitch_tui.agents.settings import Autonomy
from stitch_tui.agents.state import Session
from stitch_tui.tools.errors import UsageError


@dataclass(frozen=True)
class Entry:
    """One thing that can be done."""

    name: str
    """After the slash."""
    words: str
    """What follows the name; in brackets: may be left out."""
    text: str
    action: str = ""
    """Of the screen or app; empty: a command for the engine."""
    by_key: str = ""
    """The action whose key does this; empty: `action`, or the one with the command's name."""

    @property
    def pressed(self) -> str:
        """The action that a key would have."""
        return self.by_key or self.action or self.name


ENTRIES = (
    Entry("approve", "[ID]", "approve a subtask, or all that is proposed"),
    Entry("reject", "ID [WHY]", "reject a proposed subtask"),
    Entry("redirect", "[ID] TEXT", "tell the Coder to go another way, before its next compile"),
    Entry("now", "[ID] TEXT", "redirect now: cancel the current step", by_key="redirect(True)"),
    Entry("skip", "[ID] [WHY]", "leave a subtask to PyTorch"),
    Entry("unskip", "[ID]", "take a skipped subtask back", by_key="skip"),
    Entry("move", "ID PLACE", "move a subtask to a place in the plan"),
    Entry("restore", "N", "go on from iteration N of a subtask"),
    Entry("pause", "", "wait after the current step and give up the GPU"),
    Entry("resume", "", "go on after a pause", by_key="pause"),
    Entry("autonomy", "MODE", "ask-each, ask-plan or auto"),
    Entry("stop", "[WHY]", "end the run; the branch ends with the best", "stop"),
    Entry("edit", "", "edit the selected subtask", "edit"),
    Entry("add", "", "add a subtask to the plan", "add"),
    Entry("plan", "", "edit the plan as Markdown in $EDITOR", "edit_plan"),
    Entry("code", "", "edit the selected subtask's .cu in $EDITOR: yours is judged next", "edit_code"),
    Entry("log", "", "what was decided, routed and warned of", "log"),
    Entry("history", "", "iterations in git: compare, restore, apply, export", "history"),
    Entry("docs", "[QUERY]", "search the CUDA documentation on this machine", "docs"),
    Entry("profile", "", "where the reference's time goes", "profile"),
    Entry("report", "", "how the session stands", "report"),
    Entry("iterations", "", "the table of iterations", "iterations"),
    Entry("theme", "[NAME]", "look at themes, or take one", "themes"),
    Entry("full", "", "the focused pane alone, or all three", "full"),
    Entry("copy", "", "copy what the focused pane shows", "copy"),
    Entry("help", "", "keys and commands", "help"),
    Entry("quit", "", "leave; the run may go on", "leave"),
)
BY_NAME = {entry.name: entry for entry in ENTRIES}
TARGET = re.compile(r"(?:→|->)?\s*(?:@|subtask\s+)?(s?\d+)\s*:\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Order:
    """What a line asks for: exactly one of the two."""

    make: Callable[[int], Command] | None = None
    """Makes the engine's command for a generation."""
    action: str = ""
    argument: str = ""


def read(line: str, session: Session, chosen: str) -> Order:
    """The order that a line of the composer gives.

    Args:
        chosen: the selected subtask; empty: none.

    Raises:
        UsageError: it is no order; says what one looks like.
    """
    line = line.strip()
    if not line.startswith("/"):
        subtask, text = _target(line, session, chosen)
        return Order(lambda g: Redirect(subtask=subtask, text=text, generation=g))
    name, _, rest = line[1:].partition(" ")
    entry = BY_NAME.get(name)
    if entry is None:
        near = [e.name for e in ENTRIES if e.name.startswith(name[:2])]
        raise UsageError(f"no command /{name}", advice=f"there is /{', /'.join(near or BY_NAME)}")
    if entry.action:
        return Order(action=entry.action, argument=rest.strip())
    return Order(_command(entry, rest.strip(), session, chosen))


def _target(line: str, session: Session, chosen: str) -> tuple[str, str]:
    """``→ subtask 3: text``, ``@s03: text``, ``3: text``; otherwise the selected subtask."""
    if (match := TARGET.match(line)) and line[match.end() :].strip():
        return subtask_id(match[1], session), line[match.end() :].strip()
    if not chosen:
        raise UsageError("no subtask is selected", advice="write `3: what to do`")
    return chosen, line


def subtask_id(word: str, session: Session) -> str:
    """The id that ``3``, ``s3`` or ``s03`` means.

    Raises:
        UsageError: there is none.
    """
    known = [subtask.id for subtask in session.subtasks]
    number = word.lower().removeprefix("s")
    for id in known:
        if id == word or (number.isdigit() and id == f"s{int(number):02d}"):
            return id
    raise UsageError(f"no subtask {word}", advice=f"there is {', '.join(known) or 'none yet'}")


def _command(entry: Entry, rest: str, session: Session, chosen: str) -> Callable[[int], Command]:
    match entry.name:
        case "pause":
            return lambda g: Pause(generation=g)
        case "resume":
            return lambda g: Resume(generation=g)
        case "restore":
            number = _number(entry, rest)
            return lambda g: Restore(iteration=number, generation=g)
        case "autonomy":
            if rest not in list(Autonomy):
                raise _wrong(entry)
            return lambda g: SetAutonomy(mode=Autonomy(rest), generation=g)
        case "move":
            id, _, place = rest.partition(" ")
            to, position = subtask_id(id, session), _number(entry, place)
            return lambda g: Reorder(subtask=to, position=position, generation=g)
        case "approve":
            about = subtask_id(rest, session) if rest else ""
            return lambda g: Decide(subtask=about, generation=g)
    about, text = _about(entry, rest, session, chosen)
    return _of_subtask(entry, about, text)


def _of_subtask(entry: Entry, about: str, text: str) -> Callable[[int], Command]:
    match entry.name:
        case "reject":
            return lambda g: Decide(subtask=about, choice="reject", text=text, generation=g)
        case "skip":
            return lambda g: Skip(subtask=about, text=text, generation=g)
        case "unskip":
            return lambda g: Skip(subtask=about, undo=True, generation=g)
    if not text:
        raise _wrong(entry)
    now = entry.name == "now"
    return lambda g: Redirect(subtask=about, text=text, now=now, generation=g)


def _about(entry: Entry, rest: str, session: Session, chosen: str) -> tuple[str, str]:
    """The subtask that a line names, else the selected one, and the words behind it."""
    word, _, text = rest.partition(" ")
    try:
        return subtask_id(word, session), text.strip()
    except UsageError:
        if not chosen or entry.name == "reject":
            raise
        return chosen, rest


def _number(entry: Entry, word: str) -> int:
    if not word.strip().isdigit() or int(word) < 1:
        raise _wrong(entry)
    return int(word)


def _wrong(entry: Entry) -> UsageError:
    return UsageError("is not complete", where=f"/{entry.name}", advice=f"write /{entry.name} {entry.words}")


def stop(text: str = "") -> Callable[[int], Command]:
    """End the run."""
    return lambda g: Stop(text=text, generation=g)
