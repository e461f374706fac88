"""Tensor-core instructions: those whose fragments the runtime knows."""

import re
from collections.abc import Sequence

from stitch_tui.tools.emulator.ptx.instruction import Instruction, translates
from stitch_tui.tools.emulator.ptx.vocabulary import VALUE_TYPES, UnknownPtx, braced, identifier

SHAPE = re.compile(r"m\d+n\d+k\d+")
MMA = {
    "m16n8k16_f32_f16_f16_f32",
    "m16n8k8_f32_f16_f16_f32",
    "m16n8k16_f32_bf16_bf16_f32",
}
WMMA_TYPES = {"f16", "bf16", "tf32", "f32"}


@translates("ldmatrix")
def load_matrix(one: Instruction) -> str:
    if not one.has("m8n8") or one.type != "b16":
        raise UnknownPtx(one.name)
    names = braced(one.operand(0))
    transposed = "true" if one.has("trans") else "false"
    load = f"ldmatrix_({one.address(1, 'shared')}, {len(names)}, {transposed}, v_, {one.line});"
    return f"uint32_t v_[4]; {load} {_spread(names, 'v_')}"


@translates("mma")
def multiply(one: Instruction) -> str:
    form = "_".join((_shape(one), *(part for part in one.parts if part in VALUE_TYPES)))
    if form not in MMA or ".row.col." not in one.name or one.has("satfinite"):
        raise UnknownPtx(one.name)
    a, b, c = (_fragment(one, k) for k in (1, 2, 3))
    arrays = f"uint32_t a_[4] = {{{a}}}, b_[4] = {{{b}}}, c_[4] = {{{c}}}, d_[4];"
    return f"{arrays} mma_{form}(a_, b_, c_, d_, {one.line}); {_spread(braced(one.operand(0)), 'd_')}"


@translates("wmma")
def warp_matrix(one: Instruction) -> str:
    kinds = [part for part in one.parts if part in VALUE_TYPES or part in ("s4", "u4", "b1")]
    if not set(kinds) <= WMMA_TYPES or one.has("satfinite"):
        raise UnknownPtx(one.name)
    if one.parts[1] == "load":
        return _load(one)
    if one.parts[1] == "store":
        return _store(one)
    a, b, c = (_fragment(one, k) for k in (1, 2, 3))
    sizes = [len(braced(one.operand(k))) for k in (1, 2, 3, 0)]
    arrays = f"uint32_t a_[] = {{{a}}}, b_[] = {{{b}}}, c_[] = {{{c}}}, d_[{sizes[3]}];"
    call = (
        f'wmma_mma("{_shape(one)}", "{".".join(kinds)}", a_, {sizes[0]}, b_, {sizes[1]}, c_, {sizes[2]}, '
        f"d_, {sizes[3]}, {one.line});"
    )
    return f"{arrays} {call} {_spread(braced(one.operand(0)), 'd_')}"


def _load(one: Instruction) -> str:
    names = braced(one.operand(0))
    call = (
        f"wmma_load('{one.parts[2]}', {_by_column(one)}, {one.address(1, _space(one))}, "
        f'{one.read(2, "u32")}, "{_shape(one)}", "{one.type}", {len(names)}, v_, {one.line});'
    )
    return f"uint32_t v_[{len(names)}]; {call} {_spread(names, 'v_')}"


def _store(one: Instruction) -> str:
    count = len(braced(one.operand(1)))
    return (
        f"uint32_t v_[] = {{{_fragment(one, 1)}}}; "
        f"wmma_store({_by_column(one)}, {one.address(0, _space(one))}, "
        f'{one.read(2, "u32")}, "{_shape(one)}", "{one.type}", {count}, v_, {one.line});'
    )


def _shape(one: Instruction) -> str:
    found = next((part for part in one.parts if SHAPE.fullmatch(part)), None)
    if not found:
        raise UnknownPtx(one.name)
    return found


def _space(one: Instruction) -> str:
    return "shared" if one.has("shared") else "global"


def _by_column(one: Instruction) -> str:
    return "true" if one.has("col") else "false"


def _fragment(one: Instruction, k: int) -> str:
    return ", ".join(one.scope.read(name, "b32") for name in braced(one.operand(k)))


def _spread(names: Sequence[str], array: str) -> str:
    return " ".join(f"{identifier(name)} = {array}[{k}];" for k, name in enumerate(names))
