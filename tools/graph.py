"""The reference's dataflow graph as plain data, and regions of it.

The judge worker (`worker/export.py`) writes a `Graph` as JSON; planners cut it into `Region`s; a
region's border is the argument list of a candidate (``include/stitch.h``).  No torch here.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict


class DType(StrEnum):
    """Element types of the candidate ABI, in the order of ``enum stitch_dtype``."""

    F32 = "f32"
    F64 = "f64"
    F16 = "f16"
    BF16 = "bf16"
    I8 = "i8"
    U8 = "u8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    BOOL = "bool"

    @property
    def code(self) -> int:
        """The value of ``enum stitch_dtype``."""
        return list(DType).index(self)

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2}.get(self.value, 1)


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class TensorSpec(_Data):
    """Shape, dtype and strides (in elements) of a tensor."""

    shape: tuple[int, ...]
    dtype: DType
    strides: tuple[int, ...] | None = None
    """None: contiguous."""

    @property
    def numel(self) -> int:
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def nbytes(self) -> int:
        return self.numel * self.dtype.size

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


class ValueKind(StrEnum):
    """Where a graph value comes from, in the order in which a candidate receives them."""

    INPUT = "input"
    NODE = "node"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"


class Source(_Data):
    """A value that no node computes: a user input, parameter, buffer or lifted constant."""

    id: str
    kind: ValueKind
    target: str
    """Name in ``state_dict`` (parameter, buffer), of the argument (input), or of the constant."""
    spec: TensorSpec


class Node(_Data):
    """One operator call.

    ``args`` and ``kwargs`` are JSON: scalars and lists as they are, a reference to another value as
    ``{"ref": id}``, a dtype as ``{"dtype": "f32"}``, a non-finite float as ``{"float": "inf"}``, any
    other constant (memory format, layout, device) as ``{"const": "torch.contiguous_format"}``.
    """

    id: str
    op: str
    """Full overload name, ``aten.linear.default``; ``getitem`` selects from a tuple-valued node."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    outputs: tuple[TensorSpec, ...]
    """One spec; several for a tuple-valued node, whose consumers are ``getitem`` nodes."""
    module: str = ""
    """Path of the module that made the call, ``layers.0.attn``."""
    source: str = ""
    """``file:line`` of the call in the reference."""
    flops: float = 0.0
    bytes_moved: float = 0.0
    """Bytes read and written at least once: operands plus results."""
    time_us: float | None = None
    """Measured on the session's device, alone, median; None when it was not measured."""
    bound_us: float | None = None
    """Roofline bound on the device; None without a GPU."""

    @property
    def spec(self) -> TensorSpec:
        return self.outputs[0]

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Ids of the values that the node reads, in order, without repeats."""
        return tuple(dict.fromkeys(references((self.args, self.kwargs))))


def references(argument: Any) -> Iterable[str]:
    """Ids of all values referred to anywhere inside a node's JSON argument."""
    if isinstance(argument, Mapping):
        if set(argument) == {"ref"}:
            yield argument["ref"]
        else:
            for item in argument.values():
                yield from references(item)
    elif isinstance(argument, Sequence) and not isinstance(argument, str):
        for item in argument:
            yield from references(item)


class Graph(_Data):
    """A reference's forward pass: nodes in a topological order, functional, one shape variant."""

    sources: tuple[Source, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    """The user's outputs, flattened, in order; a value may occur twice or be a source."""
    mutations: dict[str, str] = {}
    """Buffer source id -> id of the node that computes its new value."""

    @cached_property
    def node(self) -> dict[str, Node]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def source(self) -> dict[str, Source]:
        return {source.id: source for source in self.sources}

    @cached_property
    def position(self) -> dict[str, int]:
        """Topological position of each node."""
        return {node.id: index for index, node in enumerate(self.nodes)}

    @cached_property
    def users(self) -> dict[str, tuple[str, ...]]:
        """Ids of the nodes that read each value."""
        readers: dict[str, list[str]] = {}
        for node in self.nodes:
            for operand in node.operands:
                readers.setdefault(operand, []).append(node.id)
        return {value: tuple(nodes) for value, nodes in readers.items()}

    @property
    def results(self) -> tuple[str, ...]:
        """Every value that leaves the program: outputs, then new values of mutated buffers."""
        return self.outputs + tuple(self.mutations.values())

    def spec(self, value: str) -> TensorSpec:
        """The spec of a value; of the first output for a tuple-valued node."""
        return self.source[value].spec if value in self.source else self.node[value].spec

    def kind(self, value: str) -> ValueKind:
        return self.source[value].kind if value in self.source else ValueKind.NODE


class Region(_Data):
    """A convex set of nodes with its border: what one candidate computes.

    ``inputs`` and ``outputs`` are value ids in the ABI's order: activations (by first use), then
    parameters, then buffers and constants; results in topological order, then the new values of
    mutated buffers.
    """

    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ints: tuple[int, ...] = ()
    floats: tuple[float, ...] = ()


class InvalidRegion(ValueError):
    """A set of nodes that no single kernel launch sequence can own; the message says why."""


def region_of(graph: Graph, nodes: Iterable[str]) -> Region:
    """The region that owns `nodes`.

    Raises:
        InvalidRegion: unknown node, empty set, not convex, or a border value that is a tuple.
    """
    wanted = set(nodes)
    if unknown := wanted - graph.node.keys():
        raise InvalidRegion(f"no such node: {', '.join(sorted(unknown))}")
    if not wanted:
        raise InvalidRegion("a subtask needs at least one node")
    owned = sorted(wanted, key=graph.position.__getitem__)
    _require_convex(graph, owned)
    reads = dict.fromkeys(v for n in owned for v in graph.node[n].operands if v not in wanted)
    mutated = {new: buffer for buffer, new in graph.mutations.items()}
    leaving = [
        n for n in owned if n in graph.results or any(user not in wanted for user in graph.users.get(n, ()))
    ]
    for value in [v for v in reads if v in graph.node] + leaving:
        if len(graph.node[value].outputs) > 1:
            raise InvalidRegion(f"{value} is a tuple: its getitem nodes belong in the same subtask")
    rank = {ValueKind.PARAMETER: 1, ValueKind.BUFFER: 2, ValueKind.CONSTANT: 2}
    return Region(
        nodes=tuple(owned),
        inputs=tuple(sorted(reads, key=lambda v: rank.get(graph.kind(v), 0))),
        outputs=tuple(sorted(leaving, key=lambda v: v in mutated and v not in graph.outputs)),
    )


def _require_convex(graph: Graph, owned: Sequence[str]) -> None:
    """No path may leave the set and come back: the program could not be ordered."""
    inside, downstream = set(owned), set[str]()
    for node in graph.nodes[graph.position[owned[0]] :]:
        tainted = [o for o in node.operands if o in downstream]
        if node.id in inside:
            if tainted:
                raise InvalidRegion(f"not convex: {node.id} depends on {tainted[0]}, which is outside")
        elif tainted or any(o in inside for o in node.operands):
            downstream.add(node.id)
