"""Scalar programs as C expressions."""

import math

from stitch_tui.agents.builtin.ir import PLACES, REDUCTIONS, SCANS, Instr, Register
from stitch_tui.tools.graph import DType

C_TYPE = {
    DType.F32: "float",
    DType.F16: "__half",
    DType.BF16: "__nv_bfloat16",
    DType.I8: "int8_t",
    DType.U8: "uint8_t",
    DType.I16: "int16_t",
    DType.I32: "int32_t",
    DType.I64: "int64_t",
    DType.BOOL: "uint8_t",
}
_SAME = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "erf", "erfc"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("floor", "ceil", "trunc"),
)
_FLOAT = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "abs": "fabsf({0})",
    "mean_of": "{0}.mean",
    "squares_of": "{0}.squares",
    "top_of": "{0}.top",
    "total_of": "{0}.total",
    "round": "rintf({0})",
    "sign": "sign_of({0})",
    "pow": "powf({0}, {1})",
    "round_f16": "__half2float(__float2half_rn({0}))",
    "round_bf16": "__bfloat162float(__float2bfloat16_rn({0}))",
    **{name: f"{name}f({{0}})" for name in _SAME},
}
# Signed overflow is undefined in C++ and wraps in PyTorch.
_INTEGER = {
    "add": "(long long)((unsigned long long){0} + (unsigned long long){1})",
    "sub": "(long long)((unsigned long long){0} - (unsigned long long){1})",
    "mul": "(long long)((unsigned long long){0} * (unsigned long long){1})",
    "neg": "(long long)(0ull - (unsigned long long){0})",
    "abs": "({0} < 0 ? (long long)(0ull - (unsigned long long){0}) : {0})",
    "sign": "(long long)({0} > 0) - (long long)({0} < 0)",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "not": "~{0}",
    "plus": "{0} + {1}",
    "minus": "{0} - {1}",
    "times": "{0} * {1}",
    "quotient": "divided({0}, {1})",
    "remainder": "{0} - divided({0}, {1}) * {1}",
    "wrap_i32": "(long long)(int32_t){0}",
    "wrap_i16": "(long long)(int16_t){0}",
    "wrap_i8": "(long long)(int8_t){0}",
    "wrap_u8": "(long long)(uint8_t){0}",
}
_BOOL = {
    "add": "{0} || {1}",
    "mul": "{0} && {1}",
    "and": "{0} && {1}",
    "or": "{0} || {1}",
    "xor": "{0} != {1}",
    "not": "!{0}",
}
_ANY = {"max": "pick_max({0}, {1})", "min": "pick_min({0}, {1})", "select": "{0} ? {1} : {2}"}
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_TABLE = {Register.F32: _FLOAT, Register.I64: _INTEGER, Register.BOOL: _BOOL}
_STRUCTURAL = ("load", "const", "root", "count", "cast", *REDUCTIONS, *SCANS, *PLACES)


def supported(instr: Instr) -> bool:
    """Whether the instruction has a C form in its register type."""
    return (
        instr.op in _STRUCTURAL
        or instr.op in _ANY
        or (instr.op in _COMPARE and instr.register is Register.BOOL)
        or instr.op in _TABLE[instr.register]
    )


def expression(instr: Instr, args: list[str]) -> str:
    """The instruction over named arguments; not for loads, roots and reductions."""
    if instr.op == "const":
        return literal(instr)
    if instr.op == "cast":
        return cast(instr.register, args[0])
    if instr.op in _COMPARE and instr.register is Register.BOOL:
        return f"{args[0]} {_COMPARE[instr.op]} {args[1]}"
    form = _ANY.get(instr.op) or _TABLE[instr.register][instr.op]
    return form.format(*args)


def literal(instr: Instr) -> str:
    """A constant, exact in its register type."""
    if instr.register is Register.BOOL:
        return "true" if instr.literal else "false"
    if instr.register is Register.I64:
        return f"{int(instr.literal)}ll"
    value = float(instr.literal)
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{value!r}f"


def cast(register: Register, value: str) -> str:
    if register is Register.BOOL:
        return f"{value} != 0"
    return f"({register.value}){value}"


def widened(dtype: DType, value: str) -> str:
    """An element as it is read, in its register type."""
    if dtype is DType.F32:
        return value
    if dtype is DType.F16:
        return f"__half2float({value})"
    if dtype is DType.BF16:
        return f"__bfloat162float({value})"
    return f"{value} != 0" if dtype is DType.BOOL else f"(long long){value}"


def narrowed(dtype: DType, value: str) -> str:
    """A register value as it is written."""
    if dtype is DType.F16:
        return f"__float2half_rn({value})"
    if dtype is DType.BF16:
        return f"__float2bfloat16_rn({value})"
    return value if dtype is DType.F32 else f"({C_TYPE[dtype]}){value}"
