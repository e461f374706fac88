"""Growing a region around an anchor: a neighbour joins when the whole still lowers to one kernel."""

from collections.abc import Iterator, Mapping, Sequence

from stitch_tui.agents.builtin import operators, scans, shapes
from stitch_tui.agents.builtin.index_maps import MOVES, ONCE, SPLITS
from stitch_tui.agents.builtin.ir import Kind, NotFusable, Subtask
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.agents.builtin.lower_index import is_copy
from stitch_tui.tools.graph import Graph, InvalidRegion, Node, region_of

MOST_OPERANDS = 12
"""Tensors at a kernel's border: more would not fit registers and cache."""


def grow(
    graph: Graph, anchor: Node, groups: Sequence[frozenset[str]], taken: Mapping[str, int]
) -> frozenset[str] | None:
    """The largest region around `anchor` that greedy growth finds; None when there is no template.

    Consumers join before producers; a product or convolution takes consumers only, since a
    producer would be computed again for every tile.
    """
    group = _with_items(
        graph, _with_reversals(graph, anchor, taken) or _with_transposes(graph, anchor, taken)
    )
    if (subtask := _lowered(graph, group)) is None:
        return None
    growing = True
    while growing:
        growing = False
        for neighbour in _neighbours(graph, group, subtask.kind, taken):
            bigger = _with_items(graph, group | {neighbour.id})
            if not taken.keys().isdisjoint(bigger):
                continue
            if not _worthwhile(graph, subtask, neighbour) or _cyclic(graph, bigger, groups, taken):
                continue
            if lowered := _lowered(graph, bigger):
                group, subtask, growing = bigger, lowered, True
                break
    return _pruned(graph, group)


def _lowered(graph: Graph, group: frozenset[str]) -> Subtask | None:
    try:
        subtask = lower(graph, region_of(graph, group))
    except (NotFusable, InvalidRegion):
        return None
    return subtask if len(subtask.accesses) <= MOST_OPERANDS else None


def _with_transposes(graph: Graph, anchor: Node, taken: Mapping[str, int]) -> frozenset[str]:
    """The anchor, with the transposes that only it reads when it is a product."""
    group = {anchor.id}
    if anchor.op in shapes.PRODUCTS:
        for operand in anchor.operands:
            node = graph.node.get(operand)
            if node is None or operand in taken or operand in graph.results:
                continue
            if shapes.is_transpose_of_last_two(node) and graph.users[operand] == (anchor.id,):
                group.add(operand)
    whole = frozenset(group)
    return whole if _lowered(graph, whole) else frozenset({anchor.id})


def _with_reversals(graph: Graph, anchor: Node, taken: Mapping[str, int]) -> frozenset[str] | None:
    """A scan between two reversals, neither of which can join alone; None when there is none."""
    if anchor.op not in scans.SCANS:
        return None
    around = [n for n in (*anchor.operands, *graph.users.get(anchor.id, ())) if n in graph.node]
    flips = [n for n in around if graph.node[n].op == scans.FLIP and n not in taken]
    whole = frozenset({anchor.id, *flips})
    return whole if len(flips) > 1 and _lowered(graph, whole) else None


def _with_items(graph: Graph, group: frozenset[str]) -> frozenset[str]:
    """With the tuples that its nodes pick from, and all their items: no kernel takes or gives a tuple."""
    picked = {shapes.ref(graph.node[n].args[0]) for n in group if graph.node[n].op == "getitem"}
    tuples = {n for n in group | picked if graph.node[n].op in operators.TUPLES | SPLITS} | picked
    return group | tuples | {user for n in tuples for user in graph.users.get(n, ())}


def _neighbours(graph: Graph, group: frozenset[str], kind: Kind, taken: Mapping[str, int]) -> Iterator[Node]:
    ordered = sorted(group, key=graph.position.__getitem__)
    found = [user for node in ordered for user in graph.users.get(node, ())]
    if kind not in (Kind.GEMM, Kind.CONV, Kind.POOL):
        found += [operand for node in reversed(ordered) for operand in graph.node[node].operands]
    for value in dict.fromkeys(found):
        if value in graph.node and value not in group and value not in taken:
            node = graph.node[value]
            reduces = node.op in operators.ROWS and kind is Kind.ROWS
            scans_too = (node.op in scans.SCANS or node.op == scans.FLIP) and kind is Kind.SCAN
            moves = kind in (Kind.POINTWISE, Kind.INDEX) and (node.op in MOVES or node.op == "getitem")
            if reduces or scans_too or moves or shapes.is_pointwise(node) or shapes.is_view(node):
                yield node


def _worthwhile(graph: Graph, subtask: Subtask, node: Node) -> bool:
    """A value much smaller than the space would be computed again at each of its points."""
    if node.spec.numel == subtask.points:
        return True
    if subtask.kind in (Kind.INDEX, Kind.POINTWISE):
        return _feeds_moves(graph, subtask, node) or _is_free_move(node)
    if subtask.kind is not Kind.ROWS:
        return False
    return any(o in subtask.region.nodes for o in node.operands)  # a value for each row


def _feeds_moves(graph: Graph, subtask: Subtask, node: Node) -> bool:
    """Whether all readers are in the kernel and read each element once: it is computed no more often."""
    readers = graph.users.get(node.id, ())
    return bool(readers) and all(r in subtask.region.nodes and graph.node[r].op in ONCE for r in readers)


def _is_free_move(node: Node) -> bool:
    return shapes.is_free(node) and not shapes.is_view(node)


def _cyclic(
    graph: Graph, group: frozenset[str], groups: Sequence[frozenset[str]], taken: Mapping[str, int]
) -> bool:
    """Whether, with other groups as single steps, a path leaves `group` and comes back."""
    seen: set[str] = set()
    waiting = [user for node in group for user in graph.users.get(node, ()) if user not in group]
    while waiting:
        value = waiting.pop()
        if value in group:
            return True
        if value in seen:
            continue
        members = groups[taken[value]] if value in taken else (value,)
        seen.update(members)
        waiting += [user for member in members for user in graph.users.get(member, ())]
    return False


def _pruned(graph: Graph, group: frozenset[str]) -> frozenset[str]:
    """Without views and copies at the edge: PyTorch does those for nothing."""
    while True:
        edge = [n for n in group if _moves_nothing(graph, group, n) and _at_edge(graph, group, n)]
        smaller = next((group - {n} for n in sorted(edge) if _lowered(graph, group - {n})), None)
        if smaller is None:
            return group
        group = smaller


def _moves_nothing(graph: Graph, group: frozenset[str], node: str) -> bool:
    """A leading transpose stays: a program hands its kernels contiguous tensors.  So does a copy of a result
    that nothing else reads: it costs this kernel nothing, and PyTorch another one."""
    leading = any(u in group for u in graph.users.get(node, ()))
    if graph.node[node].op in operators.COPIES:
        source = shapes.ref(graph.node[node].args[0])
        if source in group and graph.users[source] == (node,) and source not in graph.results:
            return False
    if is_copy(graph, graph.node[node]) or (leading and graph.node[node].op in shapes.TRANSPOSES):
        return False
    return shapes.is_plain(graph.node[node])


def _at_edge(graph: Graph, group: frozenset[str], node: str) -> bool:
    feeds_product = any(graph.node[u].op in shapes.PRODUCTS for u in graph.users.get(node, ()) if u in group)
    leading = not any(o in group for o in graph.node[node].operands)
    trailing = not any(u in group for u in graph.users.get(node, ()))
    return (leading and not feeds_product) or trailing
