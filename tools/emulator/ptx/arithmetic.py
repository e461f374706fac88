"""Arithmetic, logic, comparison and conversion."""

from stitch_tui.tools.emulator.ptx.instruction import Instruction, translates
from stitch_tui.tools.emulator.ptx.vocabulary import (
    LOGIC,
    VALUE_TYPES,
    WIDER,
    UnknownPtx,
    braced,
    identifier,
    size_of,
    value_type,
)

SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", **LOGIC}
ROUNDED_BY = {"rzi": "std::trunc", "rni": "std::nearbyint", "rmi": "std::floor", "rpi": "std::ceil"}
DIRECTED = {"rm": "FE_DOWNWARD", "rp": "FE_UPWARD", "rz": "FE_TOWARDZERO"}


@translates("mov")
def move(one: Instruction) -> str:
    if one.operand(0).startswith("{"):
        return _unpack(one)
    if one.operand(1).startswith("{"):
        return _pack(one)
    return one.write(one.read(1))


def _unpack(one: Instruction) -> str:
    names = braced(one.operand(0))
    bits = 8 * size_of(one.type) // len(names)
    stores = (
        f"{identifier(name)} = ({one.scope.storage(name)})(v_ >> {bits * k});"
        for k, name in enumerate(names)
        if name != "_"
    )
    return f"auto v_ = {one.read(1)}; " + " ".join(stores)


def _pack(one: Instruction) -> str:
    names = braced(one.operand(1))
    bits = 8 * size_of(one.type) // len(names)
    whole = value_type(one.type)
    parts = (f"(({whole})({one.scope.read(name, f'b{bits}')}) << {bits * k})" for k, name in enumerate(names))
    return one.write(" | ".join(parts))


@translates("add", "sub", "mul", "div", "rem", "min", "max", "and", "or", "xor", "shl", "shr")
def binary(one: Instruction) -> str:
    if one.has("cc"):
        return with_carry(one)
    if one.opcode == "mul" and one.has("wide"):
        wide = WIDER[one.type]
        return one.write(f"({value_type(wide)}){one.read(1)} * ({value_type(wide)}){one.read(2)}", wide)
    if one.opcode == "mul" and one.has("hi"):
        return one.write(f"mulhi({one.read(1)}, {one.read(2)})")
    if one.opcode in ("shl", "shr"):
        return one.write(f"{one.opcode}_({one.read(1)}, {one.read(2, 'u32')})")
    if one.has("NaN", "xorsign"):
        raise UnknownPtx(one.name)
    if one.opcode in ("min", "max"):
        return one.write(f"{one.opcode}_({one.read(1)}, {one.read(2)})")
    if one.opcode in ("div", "rem") and one.type[0] in "su":
        return one.write(f"{one.opcode}_({one.read(1)}, {one.read(2)}, {one.line})")
    return one.write(_infix(one))


def _infix(one: Instruction) -> str:
    symbol = SYMBOLS[one.opcode]
    left, right = one.read(1), one.read(2)
    if one.type == "pred":
        return f"{left} {symbol} {right}"
    if one.type[0] == "s" and symbol in "+-*":  # PTX integers wrap; C++'s signed ones must not overflow
        unsigned = value_type("u" + one.type[1:])
        left, right = f"({unsigned}){left}", f"({unsigned}){right}"
    value = f"{left} {symbol} {right}"
    if one.has("sat") and one.type == "f32":
        value = f"sat_({value})"
    return f"({value_type(one.type)})({value})"


@translates("addc", "subc")
def with_carry(one: Instruction) -> str:
    if size_of(one.type) != 4 or one.opcode[:3] not in ("add", "sub"):
        raise UnknownPtx(one.name)
    sign = "+" if one.opcode.startswith("add") else "-"
    carry = "cc_" if one.opcode.endswith("c") else "0"
    left, right = one.read(1, "u32"), one.read(2, "u32")
    total = f"uint64_t v_ = (uint64_t){left} {sign} {right} {sign} {carry}; cc_ = (v_ >> 32) & 1; "
    return total + one.write("(uint32_t)v_", "u32")


@translates("mad", "fma")
def multiply_add(one: Instruction) -> str:
    kind = one.type
    if one.has("cc"):
        raise UnknownPtx(one.name)
    if kind[0] == "f" or kind.startswith("bf"):
        return _float_multiply_add(one)
    if one.has("wide"):
        wide = WIDER[kind]
        signed, unsigned = value_type(wide), value_type("u" + wide[1:])
        product = f"({unsigned})({signed}){one.read(1)} * ({signed}){one.read(2)}"
        return one.write(f"({signed})({product} + {one.read(3, wide)})", wide)
    if one.has("hi"):
        return one.write(f"mulhi({one.read(1)}, {one.read(2)}) + {one.read(3)}")
    unsigned = "u" + kind[1:]
    product = f"({value_type(unsigned)}){one.read(1, unsigned)} * {one.read(2, unsigned)}"
    return one.write(f"{product} + {one.read(3, unsigned)}", unsigned)


def _float_multiply_add(one: Instruction) -> str:
    arguments = f"({one.read(1)}, {one.read(2)}, {one.read(3)})"
    if one.has("relu", "oob"):
        raise UnknownPtx(one.name)
    direction = one.first_of(DIRECTED, "")
    value = f"fma_v_{arguments}" if direction else f"fma_{arguments}"
    if one.has("sat"):
        value = f"sat_({value})"
    if not direction:
        return one.write(value)
    return f"std::fesetround({DIRECTED[direction]}); {one.write(value)} std::fesetround(FE_TONEAREST);"


@translates(
    "neg", "abs", "not", "ex2", "lg2", "rcp", "sqrt", "rsqrt", "sin", "cos", "tanh", "brev", "popc", "clz"
)  # fmt: skip
def unary(one: Instruction) -> str:
    return one.write(f"{one.opcode}_({one.read(1)})", "u32" if one.opcode in ("popc", "clz") else None)


@translates("copysign")
def copysign(one: Instruction) -> str:
    return one.write(f"std::copysign({one.read(2)}, {one.read(1)})")


@translates("setp", "set")
def compare(one: Instruction) -> str:
    value = f"cmp_{one.parts[1]}({one.read(1)}, {one.read(2)})"
    if len(one.parts) > 3 and one.parts[2] in LOGIC:
        value = f"({value} {LOGIC[one.parts[2]]} {one.read(3, 'pred')})"
    if one.opcode == "set":
        kind = one.parts[-2]
        return one.write(f"({value_type(kind)})(({value}) ? {'1.0f' if kind[0] == 'f' else '-1'} : 0)", kind)
    true, _, false = one.operand(0).partition("|")
    other = f" {identifier(false)} = !v_;" if false and false != "_" else ""
    return f"bool v_ = {value}; {identifier(true)} = v_;{other}"


@translates("selp")
def select(one: Instruction) -> str:
    return one.write(f"{one.read(3, 'pred')} ? {one.read(1)} : {one.read(2)}")


@translates("slct")
def select_by_sign(one: Instruction) -> str:
    kind = one.parts[1]
    return one.write(f"{one.read(3)} >= 0 ? {one.read(1, kind)} : {one.read(2, kind)}", kind)


@translates("cvt")
def convert(one: Instruction) -> str:
    kinds = [part for part in one.parts[1:] if part in VALUE_TYPES]
    if len(kinds) != 2 or one.has("relu"):
        raise UnknownPtx(one.name)
    to, source = kinds
    if to == "tf32":
        return one.write(f"tf32_({one.read(1, 'f32')})", "f32")
    if to in ("f16x2", "bf16x2"):
        half = value_type(to[:-2])
        low, high = one.read(2, source), one.read(1, source)
        return one.write(f"{value_type(to)}{{cvt_<{half}>({low}), cvt_<{half}>({high})}}", to)
    value = one.read(1, source)
    if rounding := one.first_of(ROUNDED_BY, ""):
        value = f"{ROUNDED_BY[rounding]}(({'double' if source == 'f64' else 'float'}){value})"
    value = f"cvt_<{value_type(to)}>({value}, {'true' if one.has('sat') else 'false'})"
    widens = to[0] == "s" and size_of(to) < 4 and one.scope.storage(one.operand(0)) == "uint32_t"
    return one.write(f"(int32_t){value}", "s32") if widens else one.write(value, to)


@translates("bfi")
def insert_bits(one: Instruction) -> str:
    return one.write(f"bfi_({one.read(1)}, {one.read(2)}, {one.read(3, 'u32')}, {one.read(4, 'u32')})")


@translates("bfe")
def extract_bits(one: Instruction) -> str:
    return one.write(f"bfe_({one.read(1)}, {one.read(2, 'u32')}, {one.read(3, 'u32')})")


@translates("bfind")
def find_bit(one: Instruction) -> str:
    if one.type[0] == "s":
        raise UnknownPtx(one.name)
    zeros = f"clz_({one.read(1, 'u' + one.type[1:])})"
    return one.write(zeros if one.has("shiftamt") else f"{size_of(one.type) * 8 - 1} - {zeros}", "u32")


@translates("prmt")
def permute(one: Instruction) -> str:
    if one.name != "prmt.b32":
        raise UnknownPtx(one.name)
    return one.write(f"__byte_perm({one.read(1, 'u32')}, {one.read(2, 'u32')}, {one.read(3, 'u32')})", "u32")


@translates("lop3")
def logic_of_three(one: Instruction) -> str:
    inputs = ", ".join(one.read(k, "u32") for k in (1, 2, 3, 4))
    return one.write(f"lop3_({inputs})", "u32")


@translates("shf")
def funnel_shift(one: Instruction) -> str:
    inputs = ", ".join(one.read(k, "u32") for k in (1, 2, 3))
    clamped = "c" if one.has("clamp") else ""
    return one.write(f"__funnelshift_{one.parts[1]}{clamped}({inputs})", "u32")


@translates("dp4a")
def dot_product(one: Instruction) -> str:
    if one.name != "dp4a.s32.s32":
        raise UnknownPtx(one.name)
    return one.write(f"__dp4a({one.read(1, 's32')}, {one.read(2, 's32')}, {one.read(3, 's32')})", "s32")


@translates("testp")
def classify(one: Instruction) -> str:
    tests = {
        "infinite": "std::isinf",
        "number": "!std::isnan",
        "finite": "std::isfinite",
        "notanumber": "std::isnan",
    }
    return f"{identifier(one.operand(0))} = {tests[one.parts[1]]}({one.read(1)});"
