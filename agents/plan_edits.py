"""A human's changes to a plan.  Pure: a plan and a command give a plan, or a reason against it."""

from collections.abc import Iterable

from stitch_tui.agents.commands import Add, Edit, Reorder
from stitch_tui.agents.host import route as host_route
from stitch_tui.agents.state import HOST, Plan, Session, Subtask, SubtaskState
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.graph import Graph, InvalidRegion, Region, region_of
from stitch_tui.tools.iteration import Outcome


class Refused(UsageError):
    """A command that cannot be done as things stand."""


def plan_of(session: Session) -> Plan:
    """The plan.

    Raises:
        Refused: there is none yet.
    """
    if session.plan is None:
        raise Refused("there is no plan yet")
    return session.plan


def named(session: Session, id: str) -> Subtask:
    """The subtask with this id.

    Raises:
        Refused: there is none.
    """
    for subtask in plan_of(session).subtasks:
        if subtask.id == id:
            return subtask
    known = ", ".join(subtask.id for subtask in session.subtasks) or "none"
    raise Refused(f"no subtask {id}", why=f"there is {known}")


def edited(session: Session, graph: Graph, command: Edit) -> Plan:
    """The plan with a changed subtask.

    Raises:
        Refused: its nodes cannot be changed any more, or not so.
    """
    old = named(session, command.subtask)
    changes = command.model_dump(include={"title", "strategy"}, exclude_none=True)
    if command.nodes is not None and command.nodes != old.covers:
        if old.is_host:
            raise Refused("the host program owns no nodes", where=old.id)
        if old.attempts or old.state not in (SubtaskState.PROPOSED, SubtaskState.APPROVED):
            raise Refused("its nodes cannot change any more", where=old.id, why="it was begun")
        others = [s for s in session.subtasks if s.id != old.id]
        changes["region"] = _region(graph, command.nodes, others)
        changes |= dict.fromkeys(("share", "amdahl", "bound_us", "work", "race"))
    return replaced(plan_of(session), old.model_copy(update=changes))


def added(session: Session, graph: Graph, command: Add) -> Plan:
    """The plan with a new, approved subtask at its end.

    Raises:
        Refused: its nodes are no region, or belong to another subtask; there is a host program already.
    """
    plan = plan_of(session)
    if command.nodes == (HOST,):
        return _with_host(plan, command)
    region = _region(graph, command.nodes, plan.subtasks)
    taken = {subtask.id for subtask in plan.subtasks}
    id = next(name for number in range(1, len(taken) + 2) if (name := f"s{number:02d}") not in taken)
    new = Subtask(
        id=id,
        title=command.title,
        region=region,
        strategy=command.strategy,
        state=SubtaskState.APPROVED,
    )
    claimed = set(region.nodes)
    left = (
        u.model_copy(update={"nodes": tuple(n for n in u.nodes if n not in claimed)}) for u in plan.uncovered
    )
    uncovered = tuple(entry for entry in left if entry.nodes)
    return plan.model_copy(update={"subtasks": (*plan.subtasks, new), "uncovered": uncovered})


def _with_host(plan: Plan, command: Add) -> Plan:
    if plan.host:
        raise Refused("there is a host program already", where=HOST, advice="redirect it, or take it back")
    asked = {"state": SubtaskState.APPROVED, "direction": command.strategy or command.title}
    host = host_route.subtask(command.title, command.strategy).model_copy(update=asked)
    return plan.model_copy(update={"subtasks": (*plan.subtasks, host)})


def reordered(session: Session, command: Reorder) -> Plan:
    """The plan with a subtask at another position, which says when it is worked on.

    Raises:
        Refused: there is no such place.
    """
    plan, moved = plan_of(session), named(session, command.subtask)
    if command.position > len(plan.subtasks):
        raise Refused(f"no position {command.position}", why=f"the plan has {len(plan.subtasks)} subtasks")
    rest = [subtask for subtask in plan.subtasks if subtask.id != moved.id]
    rest.insert(command.position - 1, moved)
    return plan.model_copy(update={"subtasks": tuple(rest)})


def taken_back(session: Session, id: str) -> Plan:
    """The plan with a skipped subtask approved again, its best version what it was.

    Raises:
        Refused: it is not skipped, or others have taken its place.
    """
    old = named(session, id)
    if old.state is not SubtaskState.SKIPPED:
        raise Refused("is not skipped", where=id)
    for other in session.subtasks:
        if other.id != id and set(other.region.nodes) & set(old.region.nodes):
            raise Refused("cannot be taken back", where=id, why=f"{other.id} has taken its place")
    kept = [i.number for i in session.attempts_of(id) if i.outcome is Outcome.KEPT]
    best = kept[-1] if kept else None
    again = old.model_copy(update={"state": SubtaskState.APPROVED, "reason": "", "best": best})
    return replaced(plan_of(session), again)


def replaced(plan: Plan, subtask: Subtask) -> Plan:
    """The plan with `subtask` in the place of the one with its id."""
    subtasks = tuple(subtask if s.id == subtask.id else s for s in plan.subtasks)
    return plan.model_copy(update={"subtasks": subtasks})


def _region(graph: Graph, nodes: tuple[str, ...], others: Iterable[Subtask]) -> Region:
    if unknown := [node for node in nodes if node not in graph.node]:
        raise Refused(f"no node {unknown[0]}", why=f"the reference has {', '.join(list(graph.node)[:20])}")
    for other in others:
        if shared := set(nodes) & set(other.region.nodes):
            raise Refused(f"{sorted(shared)[0]} belongs to {other.id} already")
    try:
        return region_of(graph, list(nodes))
    except InvalidRegion as fault:
        raise Refused("these nodes cannot be one subtask", why=str(fault)) from fault
