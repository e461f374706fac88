"""What the built-in Coder emits from: one subtask as a root operation with scalar programs around it.

A subtask iterates over a rectangular *space*.  Every tensor at its border is an `Access` into that
space, and everything that happens at one point of it is a `ScalarDag`.  New node kinds (convolution,
pooling, scan, attention) add a `Kind` and a root; the scalar programs around them stay the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from stitch_tui.tools.graph import DType, Region

MAX_RANK = 8
FLOATS = (DType.F32, DType.F16, DType.BF16)


class NotFusable(Exception):
    """These nodes cannot be one kernel of the built-in Coder; the message says why."""


class Kind(StrEnum):
    """What the kernel is built around."""

    POINTWISE = "pointwise"
    ROWS = "rows"
    GEMM = "gemm"
    CONV = "convolution"
    POOL = "pool"
    SCAN = "scan"
    INDEX = "index"


class Register(StrEnum):
    """The type in which a scalar is held: f16 and bf16 are computed in f32, integers in 64 bits."""

    F32 = "float"
    I64 = "long long"
    BOOL = "bool"
    MOMENTS = "Moments<float>::State"
    EXPONENTIALS = "Exponentials<float>::State"
    """These two are what a reduction in one pass knows of a row: see `one_pass`."""


def register_of(dtype: DType) -> Register:
    """The register type of a tensor's elements.

    Raises:
        NotFusable: f64, which would need double arithmetic throughout.
    """
    if dtype is DType.F64:
        raise NotFusable("f64 stays with PyTorch")
    if dtype in FLOATS:
        return Register.F32
    return Register.BOOL if dtype is DType.BOOL else Register.I64


class Align(StrEnum):
    """How a border tensor's dimensions meet those of the space."""

    BROADCAST = "BROADCAST"
    """From the right, extents 1 repeat."""
    RESHAPED = "RESHAPED"
    """Another shape with as many elements in the same order: a view that costs nothing."""
    ROW = "ROW"
    """As BROADCAST, without the reduced dimensions (a reduction with keepdim=False)."""
    CHANNEL = "CHANNEL"
    """One dimension, which is the result's channels: a convolution's bias, weights of a batch norm."""


@dataclass(frozen=True)
class Access:
    """A border tensor as the kernel sees it."""

    value: str
    dtype: DType
    rank: int
    align: Align
    output: bool = False
    per_row: bool = False
    """One element for each row of the space, as a reduction gives."""


@dataclass(frozen=True)
class Instr:
    """One value of a scalar program; `args` are indices of earlier ones.

    ``load`` reads `Access` number `literal`; ``const`` is `literal`; ``root`` is what the root computes at
    a point (a product, a window's maximum); `REDUCTIONS` reduce over a row, `SCANS` run along it; ``count``
    is the length of a row.

    `PLACES` are those of an index kernel: ``coord`` is the point's coordinate along dimension `literal`;
    ``size`` is an extent of `Access` number ``literal // MAX_RANK``, along dimension ``literal % MAX_RANK``;
    ``load_at`` reads `Access` number `literal` at the integers `args`, ``load_if`` only where the first of
    them is true.
    """

    op: str
    register: Register
    args: tuple[int, ...] = ()
    literal: float | int | bool = 0


REDUCTIONS = (
    *("sum", "prod_of", "max_of", "min_of", "any_of", "all_of", "argmax_of", "argmin_of"),
    *("moments", "exponentials"),
)
SCANS = ("scan_sum", "scan_prod")
PLACES = ("coord", "size", "load_at", "load_if")


@dataclass(frozen=True)
class Store:
    """The value that goes to an output: `instr` to `Access` number `access`."""

    instr: int
    access: int


@dataclass(frozen=True)
class ScalarDag:
    """A scalar program in SSA form, evaluated at each point of the space in f32."""

    instrs: tuple[Instr, ...]
    stores: tuple[Store, ...]

    def levels(self) -> tuple[int, ...]:
        """For each value, how many reductions over the row must be finished before it is known."""
        level: list[int] = []
        for instr in self.instrs:
            needed = max((level[a] for a in instr.args), default=0)
            level.append(needed + (instr.op in REDUCTIONS))
        return tuple(level)


def constant_along_rows(instrs: Sequence[Instr], accesses: Sequence[Access]) -> tuple[bool, ...]:
    """For each value of a scalar program, whether it is the same along a row."""
    same: list[bool] = []
    for instr in instrs:
        if instr.op == "load":
            same.append(accesses[int(instr.literal)].per_row)
        else:
            fixed = instr.op in (*REDUCTIONS, "count", "const")
            same.append(fixed or (bool(instr.args) and all(same[a] for a in instr.args)))
    return tuple(same)


@dataclass(frozen=True)
class Matrix:
    """An operand of a product: rows are the second last dimension, unless `transposed`."""

    value: str
    dtype: DType
    rank: int
    transposed: bool = False


@dataclass(frozen=True)
class GemmRoot:
    """``out[batch.., m, n] = sum over k of a[batch.., m, k] * b[batch.., k, n]``."""

    a: Matrix
    b: Matrix
    batched: bool
    """False: `b` is one matrix, and all leading dimensions of `a` are rows."""
    extents: tuple[int, int, int]
    """M, N, K in this graph; a hint for the order of strategies, the kernel reads its own."""


@dataclass(frozen=True)
class ConvRoot:
    """A convolution over the last dimensions of `x`, or its transpose; one tuple entry for each of them."""

    x: Matrix
    weight: Matrix
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    """Zeros before and after; of a transposed convolution, what is cut off."""
    dilation: tuple[int, ...]
    output_padding: tuple[int, ...]
    groups: int
    transposed: bool
    extents: tuple[int, int, int]
    """Result channels of a group, result positions of all images, products in a sum; a hint."""

    @property
    def spatial(self) -> int:
        """Dimensions that the kernel slides along."""
        return len(self.kernel)


@dataclass(frozen=True)
class RowsRoot:
    """Reductions along one row of the space and pointwise work before and after them."""

    axes: tuple[int, ...]
    """Reduced dimensions of the space."""
    extents: tuple[int, int]
    """Rows and row length in this graph; a hint."""
    groups: int = 0
    """If not 0, dimension 1 of the result is two of the space, and this is the extent of the first."""
    along: bool = True
    """Whether neighbours in a row are neighbours in memory, rather than neighbouring rows."""
    run: int = 1
    """Neighbours in a row that are neighbours in memory, in this graph; a hint."""


@dataclass(frozen=True)
class PoolRoot:
    """The maximum or the mean over a window of the last dimensions of `value`."""

    value: str
    dtype: DType
    maximum: bool
    sizes: tuple[int, ...]
    """Of the window, along each of the last dimensions; empty for adaptive windows."""
    steps: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil: bool
    count_padding: bool
    divisor: int
    """What a sum is divided by; 0: the number of elements in the window."""
    extents: tuple[int, ...]
    """Shape of the input in this graph; a hint."""

    @property
    def dims(self) -> int:
        return len(self.steps)

    @property
    def adaptive(self) -> bool:
        """Windows that together cover the input, whatever its size."""
        return not self.sizes


@dataclass(frozen=True)
class ScanRoot:
    """Running sums or products along one dimension of the space."""

    axis: int
    extents: tuple[int, int]
    """Rows and row length in this graph; a hint."""
    reverse: bool = False
    """From the last element to the first."""
    along: bool = True
    """Whether the scanned dimension is the last."""


Root = GemmRoot | ConvRoot | RowsRoot | PoolRoot | ScanRoot
"""What a kernel that does more than compute or move single elements is built around."""


@dataclass(frozen=True)
class Numerics:
    """How values are computed and rounded.

    Interior values of f16 and bf16 programs stay in f32 and are rounded once, where they leave the
    kernel or where the program itself casts; eager PyTorch rounds after every operator.
    """

    multiply: str = "f32"
    accumulate: str = "f32"


@dataclass(frozen=True)
class Subtask:
    """One kernel: root, scalar program, border."""

    kind: Kind
    region: Region
    title: str
    rank: int
    """Dimensions of the space."""
    points: int
    """Elements of the space in this graph; a hint, the kernel reads its own extents."""
    accesses: tuple[Access, ...]
    dag: ScalarDag
    root: Root | None = None
    numerics: Numerics = Numerics()
    proof: tuple[str, ...] = ()
    """Algebraic rewrites that were applied, with their side conditions; none yet."""

    @property
    def reduction_length(self) -> int:
        """Longest sum behind one element of the result, for the Verifier's tolerance."""
        if isinstance(self.root, (GemmRoot, ConvRoot)):
            return max(1, self.root.extents[2])
        if isinstance(self.root, PoolRoot):
            whole = self.root.extents[len(self.root.extents) - self.root.dims :]
            return max(1, math.prod(self.root.sizes or whole))
        return max(1, self.root.extents[1]) if self.root else 1


@dataclass(frozen=True)
class Tune:
    """Parameters of one strategy, emitted as named constants at the top of the file."""

    name: str
    sentence: str
    constants: dict[str, int] = field(default_factory=dict)
