"""Regions own convex sets of nodes, and their border is exact."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stitch_tui.tools.graph import (
    DType,
    Graph,
    InvalidRegion,
    Node,
    Source,
    TensorSpec,
    ValueKind,
    references,
    region_of,
)

SPEC = TensorSpec(shape=(2, 3), dtype=DType.F32)


def source(id: str, kind: ValueKind) -> Source:
    return Source(id=id, kind=kind, target=id, spec=SPEC)


def node(id: str, *operands: str, outputs: int = 1) -> Node:
    args = tuple({"ref": operand} for operand in operands)
    return Node(id=id, op="aten.add.Tensor", args=args, outputs=(SPEC,) * outputs)


GRAPH = Graph(
    sources=(
        source("w", ValueKind.PARAMETER),
        source("mean", ValueKind.BUFFER),
        source("x", ValueKind.INPUT),
    ),
    nodes=(
        node("linear", "x", "w"),
        node("norm", "linear", "mean", "w"),
        node("side", "linear"),
        node("update", "mean", "linear"),
        node("out", "norm", "side"),
    ),
    outputs=("out",),
    mutations={"mean": "update"},
)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Random acyclic graphs over one input."""
    nodes: list[Node] = []
    for index in range(draw(st.integers(1, 9))):
        known = ["x", *(n.id for n in nodes)]
        operands = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        nodes.append(node(f"n{index}", *operands))
    return Graph(sources=(source("x", ValueKind.INPUT),), nodes=tuple(nodes), outputs=(nodes[-1].id,))


@given(graphs(), st.data())
def test_a_region_is_accepted_exactly_when_no_path_leaves_and_returns(graph: Graph, data) -> None:
    ids = [n.id for n in graph.nodes]
    chosen = data.draw(st.sets(st.sampled_from(ids), min_size=1))
    reachable: dict[str, set[str]] = {}
    for n in graph.nodes:
        reachable[n.id] = {o for o in n.operands if o in graph.node}
        reachable[n.id] |= {deep for o in n.operands for deep in reachable.get(o, ())}
    convex = not any(any(reachable[mid] & chosen for mid in reachable[end] - chosen) for end in chosen)
    if convex:
        region = region_of(graph, chosen)
        assert set(region.nodes) == chosen
        assert not set(region.inputs) & chosen
    else:
        with pytest.raises(InvalidRegion, match="not convex"):
            region_of(graph, chosen)


def test_inputs_are_activations_then_parameters_then_buffers() -> None:
    assert region_of(GRAPH, ["norm"]).inputs == ("linear", "w", "mean")


def test_outputs_are_what_others_read_then_new_buffer_values() -> None:
    region = region_of(GRAPH, ["update", "linear"])
    assert region.outputs == ("linear", "update")
    assert region.inputs == ("x", "w", "mean")


def test_a_tuple_cannot_cross_the_border() -> None:
    split = Graph(
        sources=(source("x", ValueKind.INPUT),),
        nodes=(node("split", "x", outputs=2), node("first", "split")),
        outputs=("first",),
    )
    with pytest.raises(InvalidRegion, match="tuple"):
        region_of(split, ["split"])
    assert region_of(split, ["split", "first"]).outputs == ("first",)


@pytest.mark.parametrize(("nodes", "message"), [([], "at least one"), (["nope"], "no such node: nope")])
def test_a_set_that_names_nothing_is_refused(nodes: list[str], message: str) -> None:
    with pytest.raises(InvalidRegion, match=message):
        region_of(GRAPH, nodes)


def test_references_are_found_at_any_depth_and_strings_are_not_references() -> None:
    argument = [1, "x", {"ref": "a"}, [{"ref": "b"}, {"dtype": "f32"}], {"k": {"ref": "a"}}]
    assert list(references(argument)) == ["a", "b", "a"]


def test_dtype_codes_follow_the_abi_header() -> None:
    assert [d.code for d in (DType.F32, DType.BF16, DType.BOOL)] == [0, 3, 9]
    assert TensorSpec(shape=(3, 5), dtype=DType.F16).nbytes == 30
    assert TensorSpec(shape=(), dtype=DType.I64).nbytes == 8
