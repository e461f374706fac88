"""Order of calls, places of intermediates, and coverage: pure functions over graphs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stitch_tui.tools.bundle import Basis, Kernel, coverage
from stitch_tui.tools.bundle.calls import argument_text, call_text, is_random
from stitch_tui.tools.bundle.memory import Lifetime, lifetimes, place
from stitch_tui.tools.bundle.schedule import reads, schedule, writes
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.graph import DType, Graph, InvalidRegion, Node, Source, TensorSpec, ValueKind, region_of

SPEC = TensorSpec(shape=(4, 8), dtype=DType.F32)


def node(name: str, *operands: str, op: str = "aten.add.Tensor", **more: float | None) -> Node:
    return Node(id=name, op=op, args=tuple({"ref": o} for o in operands), outputs=(SPEC,), **more)  # type: ignore[arg-type]


def graph(*nodes: Node, outputs: tuple[str, ...] = (), mutations: dict[str, str] | None = None) -> Graph:
    x = Source(id="x", kind=ValueKind.INPUT, target="x", spec=SPEC)
    b = Source(id="b", kind=ValueKind.BUFFER, target="b", spec=SPEC)
    last = (nodes[-1].id,)
    return Graph(sources=(x, b), nodes=nodes, outputs=outputs or last, mutations=mutations or {})


def kernel(name: str, whole: Graph, *nodes: str) -> Kernel:
    return Kernel(id=name, title=name, region=region_of(whole, nodes), source="//")


@st.composite
def stitched_graphs(draw: st.DrawFn) -> tuple[Graph, list[Kernel]]:
    """A random graph, and disjoint convex regions of it that may be ordered."""
    count = draw(st.integers(2, 12))
    nodes = []
    for index in range(count):
        before = ["x", "b", *(n.id for n in nodes)]
        operands = draw(st.lists(st.sampled_from(before), min_size=1, max_size=3, unique=True))
        op = draw(st.sampled_from(["aten.add.Tensor", "aten.view.default"]))
        nodes.append(node(f"n{index}", *operands, op=op))
    outputs = draw(st.lists(st.sampled_from([n.id for n in nodes]), min_size=1, max_size=3, unique=True))
    changed = draw(st.one_of(st.none(), st.sampled_from([n.id for n in nodes])))
    whole = graph(*nodes, outputs=tuple(outputs), mutations={"b": changed} if changed else {})
    kernels = []
    groups = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    for group in (1, 2, 3):
        members = [n.id for n, g in zip(nodes, groups, strict=True) if g == group]
        try:
            candidate = [*kernels, kernel(f"k{group}", whole, *members)]
            schedule(whole, candidate)
        except (InvalidRegion, UsageError):
            continue
        kernels = candidate
    return whole, kernels


@settings(deadline=None)
@given(stitched_graphs())
def test_every_step_comes_after_all_that_it_reads(case: tuple[Graph, list[Kernel]]) -> None:
    whole, kernels = case
    known = set(whole.source)
    steps = schedule(whole, kernels)
    for step in steps:
        assert known.issuperset(reads(step))
        known.update(writes(step))
    assert known.issuperset(whole.results)
    owned = [n for k in kernels for n in k.region.nodes]
    assert len(steps) == len(whole.nodes) - len(owned) + len(kernels)


@settings(deadline=None)
@given(stitched_graphs())
def test_running_in_the_planned_memory_gives_what_separate_memory_gives(
    case: tuple[Graph, list[Kernel]],
) -> None:
    """PyTorch's operators are taken to return views: what they return is read from the operands' memory."""
    whole, kernels = case
    steps = schedule(whole, kernels)
    offsets, total = place(lifetimes(whole, steps))
    memory: dict[int, str] = {}
    derived: dict[str, set[str]] = {name: set() for name in whole.source}
    for step in steps:
        below = {root for value in reads(step) for root in derived[value]}
        assert all(memory[offsets[root]] == root for root in below if root in offsets), (
            "overwritten while in use"
        )
        for value in writes(step):
            derived[value] = {value} if isinstance(step, Kernel) else below
            if value in offsets and isinstance(step, Kernel):
                assert offsets[value] + SPEC.nbytes <= total
                assert offsets[value] not in {offsets.get(root) for root in below}, "written while being read"
                memory[offsets[value]] = value
    for value in whole.mutations.values():
        assert all(memory[offsets[root]] == root for root in derived[value] if root in offsets)
    assert not any(root in offsets for value in whole.outputs for root in derived[value])


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 2000)), max_size=12))
def test_blocks_that_live_together_lie_apart(rows: list[tuple[int, int, int]]) -> None:
    blocks = {str(i): Lifetime(min(a, b), max(a, b), size) for i, (a, b, size) in enumerate(rows)}
    offsets, total = place(blocks)
    for one, mine in blocks.items():
        assert offsets[one] % 256 == 0
        assert offsets[one] + mine.size <= total
        for two, other in blocks.items():
            if one < two and mine.first <= other.last and other.first <= mine.last:
                assert offsets[one] + mine.size <= offsets[two] or offsets[two] + other.size <= offsets[one]


def test_a_chain_needs_memory_for_two() -> None:
    blocks = {str(i): Lifetime(i, i + 1, 1024) for i in range(50)}
    assert place(blocks)[1] == 2048


def test_kernels_that_wait_for_each_other_are_refused() -> None:
    whole = graph(node("a", "x"), node("b1", "x"), node("c", "b1"), node("d", "a"), outputs=("c", "d"))
    crossed = [kernel("k1", whole, "a", "c"), kernel("k2", whole, "b1", "d")]
    with pytest.raises(UsageError, match=r"kernels wait for each other: k1\.cu, k2\.cu"):
        schedule(whole, crossed)


def test_a_node_belongs_to_one_kernel() -> None:
    whole = graph(node("a", "x"), node("b1", "a"))
    with pytest.raises(UsageError, match="subtasks k1 and k2 both own a"):
        schedule(whole, [kernel("k1", whole, "a"), kernel("k2", whole, "a", "b1")])
    with pytest.raises(UsageError, match="owns a, which the graph does not have"):
        schedule(graph(node("z", "x")), [kernel("k1", whole, "a")])


def test_coverage_says_what_it_is_computed_from() -> None:
    nodes = [node("a", "x", bytes_moved=10, flops=0), node("b1", "a", bytes_moved=10, flops=1800)]
    whole = graph(*nodes)
    region = [region_of(whole, ["b1"])]
    assert coverage(whole, region).basis is Basis.ESTIMATE
    assert coverage(whole, region).share == pytest.approx(0.9)
    bounded = graph(*(n.model_copy(update={"bound_us": 1.0}) for n in nodes))
    assert coverage(bounded, region).basis is Basis.ROOFLINE
    timed = graph(nodes[0].model_copy(update={"time_us": 3.0}), nodes[1].model_copy(update={"time_us": 1.0}))
    assert coverage(timed, region) == coverage(timed, [region_of(timed, ["b1"])])
    assert coverage(timed, region).basis is Basis.MEASURED
    assert coverage(timed, region).share == pytest.approx(0.25)
    assert coverage(timed, []).share == 0


def test_operator_calls_are_spelled_out() -> None:
    call = Node(
        id="a",
        op="aten.full_like.default",
        args=({"ref": "x"}, {"float": "-inf"}, [1, -2.5, None, True], {"dtype": "bf16"}),
        kwargs={
            "device": {"const": "torch.device"},
            "memory_format": {"const": "torch.preserve_format"},
            "from": 1,
        },
        outputs=(SPEC,),
    )
    assert call_text(call, {"x": "y"}) == (
        'aten.full_like.default(y, float("-inf"), [1, -2.5, None, True], torch.bfloat16, device=device, '
        'memory_format=torch.preserve_format, **{"from": 1})'
    )
    assert (
        call_text(
            call.model_copy(update={"op": "getitem", "args": ({"ref": "x"}, 2), "kwargs": {}}), {"x": "y"}
        )
        == "y[2]"
    )
    ours = call.model_copy(update={"op": "mylib.f.from", "args": (), "kwargs": {}})
    assert call_text(ours, {}) == 'getattr(torch.ops.mylib.f, "from")()'


@pytest.mark.parametrize("op", ["opaque", "aten.x", "aten.a.b; import os", "aten.a b.c"])
def test_operators_that_are_none_are_refused(op: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be called from model_new\.py"):
        call_text(node("a", "x", op=op), {"x": "x"})


@pytest.mark.parametrize("constant", ["torch.x()", "os.system", "torch.float32, 1"])
def test_constants_that_are_none_are_refused(constant: str) -> None:
    with pytest.raises(UsageError, match="cannot spell"):
        argument_text({"const": constant}, {})


def test_dropout_is_random_only_where_it_drops() -> None:
    def dropout(*args: object) -> bool:
        return is_random(Node(id="a", op="aten.dropout.default", args=({"ref": "x"}, *args), outputs=(SPEC,)))

    assert dropout(0.5, True)
    assert not dropout(0.0, True)
    assert not dropout(0.5, False)
    assert is_random(node("a", "x", op="aten.bernoulli.p"))
    assert not is_random(node("a", "x", op="aten.scaled_dot_product_attention.default"))
