"""The plan as Markdown for a person's editor, and what was changed in it when it comes back.  Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from stitch_tui.agents.commands import Add, Command, Edit, Reorder, Skip
from stitch_tui.agents.state import HOST, Session, Subtask, SubtaskState
from stitch_tui.tools.errors import UsageError
from stitch_tui.view.wording import percent

HEAD = """\
<!-- Change titles, text and nodes; move sections to reorder; delete one to skip it.
     A new section, `## title` with a line `nodes: a b c`, adds a subtask; `nodes: host` the host program.
     Lines that begin with `>` are information and are not read. -->
"""
_SECTION = re.compile(r"^## +(?:(s\d+|host)\b[ :]*)?(.*)$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class Change:
    """One change, in a sentence and as the command that makes it."""

    text: str
    make: Callable[[int], Command]


def written(session: Session) -> str:
    """The plan as Markdown."""
    return "\n".join([f"# Plan of {session.id}", "", HEAD, *map(_section, session.subtasks)])


def _section(subtask: Subtask) -> str:
    share = f", {percent(subtask.share)} of the time" if subtask.share is not None else ""
    lines = [
        f"## {subtask.id} {subtask.title}",
        f"> {subtask.state}{share}",
        f"nodes: {' '.join(subtask.covers)}",
        "",
        subtask.strategy,
        "",
    ]
    return "\n".join(lines)


@dataclass(frozen=True)
class _Section:
    id: str
    title: str
    nodes: tuple[str, ...]
    text: str


def changes(before: Session, text: str) -> list[Change]:
    """What a person changed, in the order in which it must be done.

    Raises:
        UsageError: a section names no known subtask, or a new one has no nodes.
    """
    known = {subtask.id: subtask for subtask in before.subtasks}
    sections = [_named(section, known) for section in _read(text)]
    for section in sections:
        if section.id and section.id not in known:
            raise UsageError(f"no subtask {section.id}", where=f"## {section.id} {section.title}")
        if not section.id and not section.nodes:
            raise UsageError("a new subtask needs nodes", where=f"## {section.title}")
    return [
        *_edits(known, sections),
        *_skips(known, sections),
        *_added(sections),
        *_moves(before, sections),
    ]


def _named(section: _Section, known: dict[str, Subtask]) -> _Section:
    """The section; ``## host ...`` is a title where the plan has no host program."""
    if section.id != HOST or HOST in known:
        return section
    return replace(section, id="", title=f"{HOST} {section.title}".strip())


def _edits(known: dict[str, Subtask], sections: list[_Section]) -> list[Change]:
    found = []
    for section in sections:
        if not section.id:
            continue
        old = known[section.id]
        title = section.title if section.title and section.title != old.title else None
        strategy = section.text if section.text != old.strategy.strip() else None
        nodes = section.nodes if section.nodes and section.nodes != old.covers else None
        changed = [
            name for name, v in (("title", title), ("strategy", strategy), ("nodes", nodes)) if v is not None
        ]
        if changed:
            found.append(Change(f"{old.id}: {', '.join(changed)}", _edit(old.id, title, strategy, nodes)))
    return found


def _edit(
    id: str, title: str | None, strategy: str | None, nodes: tuple[str, ...] | None
) -> Callable[[int], Command]:
    return lambda g: Edit(subtask=id, title=title, strategy=strategy, nodes=nodes, generation=g)


def _skips(known: dict[str, Subtask], sections: list[_Section]) -> list[Change]:
    kept = {section.id for section in sections}
    gone = [s for s in known.values() if s.id not in kept and s.state is not SubtaskState.SKIPPED]
    return [Change(f"{s.id}: skipped", _skip(s.id)) for s in gone if not s.state.ended]


def _skip(id: str) -> Callable[[int], Command]:
    return lambda g: Skip(subtask=id, text="deleted from the plan", generation=g)


def _added(sections: list[_Section]) -> list[Change]:
    return [Change(f"new: {s.title}", _add(s)) for s in sections if not s.id]


def _add(section: _Section) -> Callable[[int], Command]:
    return lambda g: Add(title=section.title, nodes=section.nodes, strategy=section.text, generation=g)


def _moves(before: Session, sections: list[_Section]) -> list[Change]:
    """The fewest moves would be clever; these are right: each subtask to its place, from the top."""
    wanted = [section.id for section in sections if section.id]
    order = [s.id for s in before.subtasks]
    found = []
    target = wanted + [id for id in order if id not in wanted]
    for place, id in enumerate(target):
        if order[place] != id:
            order.remove(id)
            order.insert(place, id)
            found.append(Change(f"{id}: to place {place + 1}", _move(id, place + 1)))
    return found


def _move(id: str, place: int) -> Callable[[int], Command]:
    return lambda g: Reorder(subtask=id, position=place, generation=g)


def _read(text: str) -> list[_Section]:
    text = _COMMENT.sub("", text)
    heads = list(_SECTION.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [_section_of(head, text[head.end() : end]) for head, end in zip(heads, ends, strict=True)]


def _section_of(head: re.Match[str], body: str) -> _Section:
    nodes: tuple[str, ...] = ()
    kept = []
    for line in body.strip("\n").split("\n"):
        if line.startswith("nodes:"):
            nodes = tuple(line.removeprefix("nodes:").replace(",", " ").split())
        elif not line.startswith(">"):
            kept.append(line)
    return _Section(head[1] or "", head[2].strip(), nodes, "\n".join(kept).strip())
