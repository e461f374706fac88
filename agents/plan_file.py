"""``plan.toml`` in a session's folder, as a person edits it: the bundle's plan, and a sum of what may change.

The sum says whether anybody but the engine wrote what stands there, in this run or before it.
"""

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tomli_w
from pydantic import BaseModel, ConfigDict, ValidationError

from stitch_tui.agents.plan_outline import Row
from stitch_tui.tools import foreign_toml
from stitch_tui.tools.errors import UsageError

NAME, END = "plan.toml", "end"
HEAD = """\
# You may edit this file while the session runs or rests.  Read are: title, strategy, nodes and the order of
# subtasks; state = "approved" or "skipped"; a [[subtask]] that is gone is left to PyTorch, and one without an
# id, with title and nodes, is added.  Everything else is information, and is written anew.  [end] stays at
# the end: without it the file counts as half saved.

"""


@dataclass(frozen=True)
class PlanFile:
    """What stands in the file."""

    rows: tuple[Row, ...]
    begun: str
    """Sum of the rows that the engine wrote; empty: it is not said."""
    whole: bool
    """Has it its end?  Whatever a file says that is cut, it may say by being cut."""

    @property
    def by_hand(self) -> bool:
        """Did somebody change them?"""
        return _sum(self.rows) != self.begun


class _Table(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    id: str = ""
    title: str = ""
    nodes: list[str] = []
    strategy: str = ""
    state: str = ""

    def row(self) -> Row:
        return Row(self.id, self.title.strip(), tuple(self.nodes), self.strategy.strip(), self.state)


class _Plan(BaseModel):
    model_config = ConfigDict(extra="ignore")

    outline: str = ""
    subtask: list[_Table] = []
    end: dict[str, Any] | None = None


def written(bundle_plan: bytes, rows: Sequence[Row]) -> bytes:
    """The file's bytes: the bundle's ``plan.toml`` with the plan's words in the place of the code's."""
    plan: dict[str, Any] = tomllib.loads(bundle_plan.decode())
    known = {row.id: row for row in rows}
    shown = [row for table in plan.get("subtask", []) if (row := known.get(table["id"]))]
    for table in plan.get("subtask", []):
        if row := known.get(table["id"]):
            table |= {"strategy": row.strategy, "state": row.state}
    whole = {"format": plan.pop("format"), "outline": _sum(shown), **plan, END: {}}
    return (HEAD + tomli_w.dumps(whole)).encode()


def read(data: bytes) -> PlanFile:
    """What stands in the file.

    Raises:
        UsageError: it is no plan.
    """
    try:
        plan = _Plan.model_validate(foreign_toml.loads(data.decode()))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError("it is not read", where=where, why=first["msg"]) from error
    except ValueError as error:  # no TOML, no UTF-8
        raise UsageError("it is not read", why=str(error)) from error
    if not (plan.subtask or plan.outline):
        raise UsageError("it is not read", why="no subtask stands there", advice='write state = "skipped"')
    return PlanFile(tuple(table.row() for table in plan.subtask), plan.outline, plan.end is not None)


def _sum(rows: Sequence[Row]) -> str:
    text = json.dumps([(row.id, row.title, row.nodes, row.strategy, row.state) for row in rows])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
