"""PTX types, special registers and spelling, and how C++ says them."""

import re

VALUE_TYPES = {
    **{
        f"{kind}{bits}": f"{'' if kind == 's' else 'u'}int{bits}_t"
        for kind in "sub"
        for bits in (8, 16, 32, 64)
    },
    "b128": "u128_t",
    "f32": "float",
    "f64": "double",
    "f16": "half_t",
    "bf16": "bf16_t",
    "f16x2": "half2_t",
    "bf16x2": "bf162_t",
    "tf32": "float",
    "pred": "bool",
}
"""The C++ type an operation computes in."""

REGISTER_TYPES = {
    **{
        f"{kind}{bits}": f"uint{bits}_t"
        for kind in "subf"
        for bits in (8, 16, 32, 64)
        if f"{kind}{bits}" != "f8"
    },
    "b128": "u128_t",
    "f16x2": "uint32_t",
    "pred": "bool",
}
"""The C++ type a register is stored in."""

BYTES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
WIDER = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}
LOGIC = {"and": "&", "or": "|", "xor": "^"}

VECTORS = {"%tid": "threadIdx", "%ntid": "blockDim", "%ctaid": "blockIdx", "%nctaid": "gridDim"}
SPECIAL = {
    "%laneid": "stitch_emu::lane_id()",
    "%warpid": "stitch_emu::warp_id()",
    "%nwarpid": "32u",
    "%lanemask_lt": "stitch_emu::lanemask_lt()",
    "%lanemask_le": "(stitch_emu::lanemask_lt()*2+1)",
    "%lanemask_eq": "(1u<<stitch_emu::lane_id())",
    "%lanemask_gt": "~(stitch_emu::lanemask_lt()*2+1)",
    "%lanemask_ge": "~stitch_emu::lanemask_lt()",
    "%clock": "(uint32_t)clock64()",
    "%clock64": "(uint64_t)clock64()",
    "%globaltimer": "(uint64_t)clock64()",
    "%smid": "0u",
    "%nsmid": "4u",
    "%gridid": "0u",
    "%dynamic_smem_size": "ptx_dyn_size()",
    "%envreg1": "(uint32_t)((uint64_t)ptx_grid_ws()>>32)",
    "%envreg2": "(uint32_t)(uint64_t)ptx_grid_ws()",
    "WARP_SZ": "32u",
}


class UnknownPtx(Exception):
    """A construct that the translator does not know; the text names it."""


def size_of(kind: str) -> int:
    """Bytes of a PTX type."""
    width = re.search(r"(\d+)(x2)?$", kind)
    if not width:
        raise UnknownPtx(f"type .{kind}")
    return BYTES[width[1]] * (2 if width[2] else 1)


def identifier(name: str) -> str:
    """A PTX name as a C++ one."""
    return re.sub(r"\W", "_", name.lstrip("%"))


def value_type(kind: str) -> str:
    if kind not in VALUE_TYPES:
        raise UnknownPtx(f"type .{kind}")
    return VALUE_TYPES[kind]


def split_operands(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char in "{[(") - (char in "}])")
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return [*parts, current.strip()] if current.strip() else parts


def braced(operand: str) -> list[str]:
    """``{%r1, %r2}`` as its names; a single operand as itself."""
    inner = operand.strip()
    return [name.strip() for name in inner[1:-1].split(",")] if inner.startswith("{") else [inner]
