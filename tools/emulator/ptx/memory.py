"""Loads, stores, atomics, asynchronous copies and transaction barriers."""

from stitch_tui.tools.emulator.ptx.instruction import Instruction, translates
from stitch_tui.tools.emulator.ptx.vocabulary import (
    VALUE_TYPES,
    UnknownPtx,
    braced,
    identifier,
    size_of,
    value_type,
)

SPACES = ("param", "global", "shared", "local", "const")
ATOMICS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")


@translates("ld", "ldu")
def load(one: Instruction) -> str:
    space = one.first_of(SPACES, "generic")
    address, kind = one.address(1, space), one.type
    wanted = [(k * size_of(kind), name) for k, name in enumerate(braced(one.operand(0))) if name != "_"]
    if space == "param":
        typed = value_type(kind)
        return " ".join(one.scope.write(name, f"raw<{typed}>({address}+{at})", kind) for at, name in wanted)
    polls = one.has("acquire") or (one.has("volatile") and space == "global")
    wait = "stitch_emu::yield_now(); " if polls else ""
    total = size_of(kind) * len(braced(one.operand(0)))
    reads = " ".join(one.scope.write_loaded(name, kind, at) for at, name in wanted)
    return f"{wait}char* a_ = {address}; LD(a_, {total}, {one.line}); {reads}"


@translates("st")
def store(one: Instruction) -> str:
    space = one.first_of(SPACES, "generic")
    names, kind = braced(one.operand(1)), one.type
    checked = "" if space == "param" else f"ST(a_, {size_of(kind) * len(names)}, {one.line}); "
    writes = (
        f"put<{value_type(kind)}>(a_+{k * size_of(kind)}, {one.scope.read(name, kind)});"
        for k, name in enumerate(names)
    )
    return f"char* a_ = {one.address(0, space)}; {checked}" + " ".join(writes)


@translates("atom", "red")
def atomic(one: Instruction) -> str:
    if one.has("async", "noftz") and one.type not in VALUE_TYPES:
        raise UnknownPtx(one.name)
    space = "shared" if one.has("shared") else "global"
    first = 1 if one.opcode == "atom" else 0
    address = f"({value_type(one.type)}*){one.address(first, space)}"
    arguments = ", ".join(one.read(k) for k in range(first + 1, len(one.operands)))
    value = f"atom_{one.first_of(ATOMICS)}({address}, {arguments}, {one.line})"
    return one.write(value) if one.opcode == "atom" else f"{value};"


@translates("cp")
def copy(one: Instruction) -> str:
    if one.parts[1] != "async" or one.has("bulk", "mbarrier"):
        raise UnknownPtx(one.name)
    if one.has("commit_group"):
        return "stitch_emu::async_commit();"
    if one.has("wait_group", "wait_all"):
        return f"ASYNC_WAIT({one.read(0, 'u32') if one.operands else '~0u'}, {one.line});"
    count = one.read(2, "u32")
    taken = one.read(3, "u32") if len(one.operands) > 3 else count
    return f"cp_async({one.address(0, 'shared')}, {one.address(1, 'global')}, {count}, {taken}, {one.line});"


@translates("cvta")
def convert_address(one: Instruction) -> str:
    value = one.read(1)
    if one.has("shared"):
        value = f"({value} {'-' if one.has('to') else '+'} (uint64_t)stitch_emu::t_smem)"
    return one.write(value)


@translates("isspacep")
def is_space(one: Instruction) -> str:
    if one.has("cluster"):
        raise UnknownPtx(one.name)
    inside = f"(uint64_t)({one.read(1, 'u64')} - (uint64_t)stitch_emu::t_smem) < (1u<<20)"
    value = inside if one.parts[1].startswith("shared") else f"!({inside})"
    return f"{identifier(one.operand(0))} = {value};"


@translates("mbarrier")
def transaction_barrier(one: Instruction) -> str:
    what = one.parts[1]
    if one.has("cluster", "expect_tx", "parity", "noComplete"):
        raise UnknownPtx(one.name)
    if what == "init":
        return f"mbar_init({one.address(0, 'shared')}, {one.read(1, 'u32')});"
    if what == "arrive":
        count = one.read(2, "u32") if len(one.operands) > 2 else "1"
        return one.write(f"mbar_arrive({one.address(1, 'shared')}, {count})", "u64")
    if what in ("test_wait", "try_wait"):
        return f"{identifier(one.operand(0))} = mbar_test({one.address(1, 'shared')}, {one.read(2, 'u64')});"
    if what == "inval":
        return ";"
    raise UnknownPtx(one.name)


@translates("prefetch", "prefetchu", "discard", "applypriority")
def hint(one: Instruction) -> str:
    """Says something about caches, which the emulator has not."""
    return ";"
