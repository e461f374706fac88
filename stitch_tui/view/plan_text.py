"""The plan as Markdown for a person's editor, and what was changed in it when it comes back.  Pure."""

import re
from collections.abc import Container
from dataclasses import replace

from stitch_tui.agents import plan_outline
from stitch_tui.agents.plan_outline import Change, Row
from stitch_tui.agents.state import HOST, Session, Subtask
from stitch_tui.view.wording import percent

HEAD = """\
<!-- Change titles, text and nodes; move sections to reorder; delete one to skip it.
     A new section, `## title` with a line `nodes: a b c`, adds a subtask; `nodes: host` the host program.
     Lines that begin with `>` are information and are not read. -->
"""
_SECTION = re.compile(r"^## +(?:(s\d+|host)\b[ :]*)?(.*)$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


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


def changes(before: Session, text: str) -> list[Change]:
    """What a person changed, in the order in which it must be done.

    Raises:
        UsageError: a section names no known subtask, or a new one has no nodes.
    """
    known = {subtask.id for subtask in before.subtasks}
    rows = [_named(row, known) for row in _read(text)]
    return plan_outline.changes(before, plan_outline.outline(before), rows)


def _named(row: Row, known: Container[str]) -> Row:
    """The row; ``## host ...`` is a title where the plan has no host program."""
    if row.id != HOST or HOST in known:
        return row
    return replace(row, id="", title=f"{HOST} {row.title}".strip())


def _read(text: str) -> list[Row]:
    text = _COMMENT.sub("", text)
    heads = list(_SECTION.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [_section_of(head, text[head.end() : end]) for head, end in zip(heads, ends, strict=True)]


def _section_of(head: re.Match[str], body: str) -> Row:
    nodes: tuple[str, ...] = ()
    kept = []
    for line in body.strip("\n").split("\n"):
        if line.startswith("nodes:"):
            nodes = tuple(line.removeprefix("nodes:").replace(",", " ").split())
        elif not line.startswith(">"):
            kept.append(line)
    return Row(head[1] or "", head[2].strip(), nodes, "\n".join(kept).strip())
