"""The candidate ABI and the runner protocol as data: dtypes, C structures, text lines.  No torch here."""

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TextIO

ABI = 1
DTYPES = ("f32", "f64", "f16", "bf16", "i8", "u8", "i16", "i32", "i64", "bool")
"""In the order of ``enum stitch_dtype``."""
IMPORTS = "STITCH_IMPORTS"
"""The variable with the folders of the project that a bundle's reference imports from."""
IN_REFERENCE = "in_reference"
"""What a runner says instead of a category: the text beside the module raised, not the module's own."""
PARAMETER, BUFFER = 1, 2
POISON = 0xFF
"""A byte: a NaN in every floating type, -1 in every integer type."""
OK, CUDA_ERROR, UNSUPPORTED_SHAPE, BAD_CALL = range(4)
NOT_EXPORTED = -1
"""What a runner returns for an optional verb that the candidate does not have."""
SYMBOLS = {verb: f"stitch_{verb}" for verb in ("sizes", "bind", "run", "unbind")}


@dataclass(frozen=True)
class Placed:
    """A tensor in the arena: `offset` and `nbytes` in bytes, `strides` in elements."""

    name: str
    dtype: int
    flags: int
    offset: int
    nbytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def numel(self) -> int:
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    def line(self, kind: str) -> str:
        numbers = (
            self.dtype,
            self.flags,
            self.offset,
            self.nbytes,
            len(self.shape),
            *self.shape,
            *self.strides,
        )
        return f"{kind} {' '.join(map(str, numbers))} {self.name}"

    @classmethod
    def parse(cls, words: Sequence[str]) -> "Placed":
        """Read what `line` wrote, without its first word.

        Raises:
            ValueError: too few words, or one that is no number.
        """
        dtype, flags, offset, nbytes, rank = map(int, words[:5])
        if len(words) != 6 + 2 * rank or not 0 <= dtype < len(DTYPES):
            raise ValueError("a tensor line has the wrong number of words or an unknown dtype")
        extents = tuple(map(int, words[5:-1]))
        return cls(words[-1], dtype, flags, offset, nbytes, extents[:rank], extents[rank:])


@dataclass
class Call:
    """One call's description; memory blocks are (offset, bytes)."""

    ins: list[Placed] = field(default_factory=list)
    outs: list[Placed] = field(default_factory=list)
    ints: list[int] = field(default_factory=list)
    floats: list[float] = field(default_factory=list)
    rng: tuple[int, int] = (0, 0)
    workspace: tuple[int, int] = (0, 0)
    bound: tuple[int, int] = (0, 0)

    def lines(self) -> Iterable[str]:
        """The text between ``call NONCE VERB`` and ``go``."""
        yield from (placed.line("in") for placed in self.ins)
        yield from (placed.line("out") for placed in self.outs)
        yield from (f"int {value}" for value in self.ints)
        yield from (f"float {value!r}" for value in self.floats)
        yield f"rng {self.rng[0]} {self.rng[1]}"
        for name, (offset, nbytes) in (("workspace", self.workspace), ("bound", self.bound)):
            if nbytes:
                yield f"{name} {offset} {nbytes}"

    def read(self, words: Sequence[str]) -> None:
        """Take in one description line, split into words.

        Raises:
            ValueError: an unknown or malformed line.
        """
        match words:
            case ["in", *rest]:
                self.ins.append(Placed.parse(rest))
            case ["out", *rest]:
                self.outs.append(Placed.parse(rest))
            case ["int", value]:
                self.ints.append(int(value))
            case ["float", value]:
                self.floats.append(float(value))
            case ["rng", seed, offset]:
                self.rng = (int(seed), int(offset))
            case ["workspace", offset, nbytes]:
                self.workspace = (int(offset), int(nbytes))
            case ["bound", offset, nbytes]:
                self.bound = (int(offset), int(nbytes))
            case _:
                raise ValueError(f"not a call line: {' '.join(words)}")


class TensorStruct(ctypes.Structure):
    """``stitch_tensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("numel", ctypes.c_int64),
    )


def received(lines: TextIO) -> Call:
    """The call that the judge describes in the lines up to ``go``, at the runner's end of the channel."""
    call = Call()
    while (words := lines.readline().split()) != ["go"]:
        if not words:
            raise SystemExit("the judge went away in the middle of a call")
        call.read(words)
    return call


class CallStruct(ctypes.Structure):
    """``stitch_call``."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("abi", ctypes.c_uint32),
        ("n_in", ctypes.c_int32),
        ("n_out", ctypes.c_int32),
        ("n_int", ctypes.c_int32),
        ("n_float", ctypes.c_int32),
        ("ins", ctypes.POINTER(TensorStruct)),
        ("outs", ctypes.POINTER(TensorStruct)),
        ("ints", ctypes.POINTER(ctypes.c_int64)),
        ("floats", ctypes.POINTER(ctypes.c_double)),
        ("rng_seed", ctypes.c_uint64),
        ("rng_offset", ctypes.c_uint64),
        ("stream", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_int64),
        ("bound", ctypes.c_void_p),
        ("bound_bytes", ctypes.c_int64),
        ("host_state", ctypes.POINTER(ctypes.c_void_p)),
    )


def c_call(call: Call, base: int, stream: int, host_state: ctypes.c_void_p) -> CallStruct:
    """`call` as the C structure, with slots at `base` + offset; it keeps alive what it points to."""
    ins, outs = _tensors(call.ins, base), _tensors(call.outs, base)
    struct = CallStruct(
        struct_size=ctypes.sizeof(CallStruct),
        abi=ABI,
        n_in=len(call.ins),
        n_out=len(call.outs),
        n_int=len(call.ints),
        n_float=len(call.floats),
        ins=ins,
        outs=outs,
        ints=(ctypes.c_int64 * max(1, len(call.ints)))(*call.ints),
        floats=(ctypes.c_double * max(1, len(call.floats)))(*call.floats),
        rng_seed=call.rng[0],
        rng_offset=call.rng[1],
        stream=stream or None,
        workspace=base + call.workspace[0] if call.workspace[1] else None,
        workspace_bytes=call.workspace[1],
        bound=base + call.bound[0] if call.bound[1] else None,
        bound_bytes=call.bound[1],
        host_state=ctypes.pointer(host_state),
    )
    return struct


def _tensors(placed: Sequence[Placed], base: int) -> "ctypes.Array[TensorStruct]":
    array = (TensorStruct * max(1, len(placed)))()
    for item, struct in zip(placed, array, strict=False):
        rank = max(1, len(item.shape))
        struct.data = base + item.offset
        struct.shape = (ctypes.c_int64 * rank)(*item.shape)
        struct.strides = (ctypes.c_int64 * rank)(*item.strides)
        struct.ndim, struct.dtype, struct.flags = len(item.shape), item.dtype, item.flags
        struct.numel = item.numel
    return array
