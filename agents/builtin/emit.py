"""The parts that every generated file has: header comment, border checks, operands, main function."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from stitch_tui.agents.builtin import c_scalar
from stitch_tui.agents.builtin.ir import Access, Align, Instr, Kind, Matrix, Subtask, Tune
from stitch_tui.agents.builtin.title import identifier
from stitch_tui.tools.graph import DType, Graph

_NUMBER = re.compile(r"_\d+$")
_VALUE = re.compile(r"^( *const [\w ]+ (v\d+) = [^;\n]*;\n)", re.MULTILINE)
"""A value of a kernel: its line and its name."""


@dataclass(frozen=True)
class Tensor:
    """A tensor at the border under its C name."""

    name: str
    dtype: DType
    rank: int
    where: str
    """``call->in[0]``."""


@dataclass(frozen=True)
class Border:
    """All tensors of the call, by value id."""

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]

    def tensor(self, access: Access | Matrix) -> Tensor:
        written = isinstance(access, Access) and access.output
        return (self.outputs if written else self.inputs)[access.value]


def border(graph: Graph, subtask: Subtask) -> Border:
    """C names and places of a subtask's tensors, in the ABI's order."""
    taken: set[str] = set()

    def named(values: Iterable[str], side: str) -> dict[str, Tensor]:
        found = {}
        for index, value in enumerate(values):
            source = graph.source.get(value)
            # The prefix keeps a tensor's name apart from keywords, functions and locals of the kernel.
            # Without the node's number, equal layers have equal sources, and are compiled once.
            plain = source.target if source else _NUMBER.sub("", value)
            name = _unique(f"{side}_{identifier(plain)}", taken)
            spec = graph.spec(value)
            found[value] = Tensor(name, spec.dtype, len(spec.shape), f"call->{side}[{index}]")
        return found

    return Border(named(subtask.region.inputs, "in"), named(subtask.region.outputs, "out"))


def _unique(name: str, taken: set[str]) -> str:
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    taken.add(candidate)
    return candidate


def template(name: str) -> str:
    """A part of the file that is the same for every subtask."""
    return (files(__package__) / "templates" / f"{name}.cuh").read_text(encoding="utf-8").rstrip("\n")


def opening(subtask: Subtask, tensors: Border, tune: Tune, bound: str) -> str:
    """Comment, includes and named constants."""
    lines = [
        f"// {subtask.title}: {subtask.kind} kernel, strategy {tune.name}",
        f"// {tune.sentence}",
        f"// {bound}",
        f"// Arithmetic: {subtask.numerics.multiply} products, {subtask.numerics.accumulate} sums; "
        "narrower types are rounded where they leave the kernel.",
    ]
    for side, group in (("in", tensors.inputs), ("out", tensors.outputs)):
        lines += [
            f"//   {side}[{i}] {t.name}: {t.dtype}, rank {t.rank}" for i, t in enumerate(group.values())
        ]
    everything = [*tensors.inputs.values(), *tensors.outputs.values()]
    used = {t.dtype for t in everything} | _rounded(subtask)
    lines.append('#include "stitch.h"\n#include <cuda_runtime.h>')
    if DType.F16 in used:
        lines.append("#include <cuda_fp16.h>")
    if DType.BF16 in used:
        lines.append("#include <cuda_bf16.h>")
    lines.append("#include <math.h>\n")
    lines += [f"constexpr int {name} = {value};" for name, value in tune.constants.items()]
    return "\n".join(lines)


def _rounded(subtask: Subtask) -> set[DType]:
    narrow = {"round_f16": DType.F16, "round_bf16": DType.BF16}
    return {narrow[i.op] for i in subtask.dag.instrs if i.op in narrow}


def constants(rank: int, operands: int) -> str:
    """Sizes of the space."""
    return (
        f"constexpr int RANK = {max(rank, 1)};      // dimensions of the result's space\n"
        f"constexpr int OPERANDS = {operands};  // tensors that the kernel walks over\n"
    )


def table(name: str, numbers: Sequence[int]) -> str:
    """A constant for each dimension, as a function: device code cannot index a host array."""
    choice = str(numbers[-1])
    for d in range(len(numbers) - 2, -1, -1):
        choice = f"d == {d} ? {numbers[d]} : {choice}"
    argument = "int d" if len(numbers) > 1 else "int"
    return f"__host__ __device__ constexpr int {name}({argument}) {{ return {choice}; }}"


def call_check(tensors: Border) -> str:
    """A host function that refuses a call with another border."""
    ins, outs = list(tensors.inputs.values()), list(tensors.outputs.values())
    tests = [f"call->abi == STITCH_ABI && call->n_in == {len(ins)} && call->n_out == {len(outs)}"]
    for t in (*ins, *outs):
        place = t.where.replace("call->", "")
        tests.append(f"is(call->{place}, {t.dtype.code}, {t.rank})")
    body = "\n      && ".join(tests)
    return (
        "static bool is(const stitch_tensor& t, int dtype, int rank) {\n"
        "  return t.dtype == dtype && t.ndim == rank;\n}\n\n"
        f"static bool expected(const stitch_call* call) {{\n  return {body};\n}}"
    )


def parameters(tensors: Border, accesses: Sequence[Access]) -> list[str]:
    """Kernel parameters of the operands of a scalar program."""
    return [
        f"{_const(a)}{c_scalar.C_TYPE[a.dtype]}* __restrict__ {operand_name(tensors, a, i)}"
        for i, a in enumerate(accesses)
    ]


def kernel(template: str, subtask: Subtask, tensors: Border, own: Sequence[str]) -> str:
    """The kernel of that text with its name and its parameters, its `own` ahead of its operands'."""
    every = ",\n    ".join([*own, *parameters(tensors, subtask.accesses)])
    return template.replace("@NAME@", kernel_name(subtask)).replace("@PARAMETERS@", every)


def arguments(tensors: Border, accesses: Sequence[Access]) -> list[str]:
    """Launch arguments for `parameters`."""
    return [pointer(a, tensors) for a in accesses]


def pointer(access: Access | Matrix, tensors: Border) -> str:
    return f"({_const(access)}{c_scalar.C_TYPE[access.dtype]}*){tensors.tensor(access).where}.data"


def _const(access: Access | Matrix) -> str:
    return "" if isinstance(access, Access) and access.output else "const "


def operand_name(tensors: Border, access: Access, number: int) -> str:
    """The tensor's name; a tensor read in two ways gets a number."""
    suffix = "" if access.output or access.align is Align.BROADCAST else f"_as{number}"
    return tensors.tensor(access).name + suffix


def widening(tensors: Border, accesses: Sequence[Access], skip: int = 0, *, groups: int = 0) -> list[str]:
    """Host lines that find the extents of the space; `skip`: bits of the dimensions without which ROW is."""
    widen = "widen_groups" if groups else "widen"
    return [
        f"  {widen}(space, {tensors.tensor(a).where}{_skip(a, skip)});"
        for a in accesses
        if a.align in (Align.BROADCAST, Align.ROW)
    ]


def placing(
    tensors: Border,
    accesses: Sequence[Access],
    skip: int = 0,
    first: int = 0,
    *,
    groups: int = 0,
    channel: str = "1",
) -> list[str]:
    """Host lines that find the strides of each operand, or refuse the shapes.

    `channel` is the dimension of the space where CHANNEL lies.
    """
    place = {
        Align.BROADCAST: "place_groups" if groups else "place",
        Align.ROW: "place",
        Align.CHANNEL: "place_group_channels" if groups else "place_channel",
        Align.RESHAPED: "place_reshaped",
    }
    more = {Align.ROW: f", {skip:#x}", Align.CHANNEL: "" if groups else f", {channel}"}
    return [
        f"  if (!{place[a.align]}(space, {number}, {tensors.tensor(a).where}{more.get(a.align, '')}))"
        " return STITCH_UNSUPPORTED_SHAPE;"
        for number, a in enumerate(accesses, first)
    ]


def _skip(access: Access, skip: int) -> str:
    return f", {skip:#x}" if access.align is Align.ROW else ""


def covering(tensors: Border, accesses: Sequence[Access], points: str, rows: str = "") -> list[str]:
    """Host lines that refuse results that do not have one element for each point."""
    return [
        f"  if ({tensors.tensor(a).where}.numel != {rows if a.per_row else points})"
        " return STITCH_UNSUPPORTED_SHAPE;"
        for a in accesses
        if a.output
    ]


def main_function(body: Sequence[str]) -> str:
    """`stitch_run` around the host lines that set `space` up and launch."""
    return "\n".join(
        [
            'extern "C" int stitch_run(const stitch_call* call) {',
            "  if (!expected(call)) return STITCH_BAD_CALL;",
            "  [[maybe_unused]] const cudaStream_t stream = (cudaStream_t)call->stream;",
            *body,
            "  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;",
            "}",
            "",
        ]
    )


def assignments(instrs: Sequence[Instr], indices: Iterable[int], indent: str) -> list[str]:
    """C statements for plain instructions, each value named ``v<index>``."""
    lines = []
    for index in indices:
        instr = instrs[index]
        expr = c_scalar.expression(instr, [f"v{a}" for a in instr.args])
        lines.append(f"{indent}const {instr.register.value} v{index} = {expr};")
    return lines


def without_unused(source: str) -> str:
    """The source without values that nothing in their kernel reads: fusion makes some superfluous."""
    head, *kernels = source.split("__global__")
    return "__global__".join([head, *map(_without_unused, kernels)])


def _without_unused(kernel: str) -> str:
    for line, name in _VALUE.findall(kernel):
        if len(re.findall(rf"\b{name}\b", kernel)) == 1:
            return _without_unused(kernel.replace(line, "", 1))
    return kernel


def kernel_name(subtask: Subtask) -> str:
    return identifier(subtask.title) + ("_gemm" if subtask.kind is Kind.GEMM else "_kernel")
