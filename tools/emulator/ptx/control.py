"""Control flow, barriers, warp collectives and calls."""

from stitch_tui.tools.emulator.ptx.instruction import Instruction, translates
from stitch_tui.tools.emulator.ptx.vocabulary import UnknownPtx, identifier

SHUFFLES = {"idx": "SHFL", "up": "UP", "down": "DOWN", "bfly": "XOR"}
VOTES = {"popc": "count", "and": "and", "or": "or"}


@translates("bar", "barrier")
def barrier(one: Instruction) -> str:
    if one.has("warp"):
        return f"__syncwarp({one.read(0, 'u32')}, FILE_, {one.line});"
    if one.has("cluster", "arrive"):
        raise UnknownPtx(one.name)
    if one.has("red"):
        return _voting_barrier(one)
    _only_barrier_zero(one, 0, len(one.operands) == 1)
    return f"__syncthreads(FILE_, {one.line});"


def _voting_barrier(one: Instruction) -> str:
    _only_barrier_zero(one, 1, len(one.operands) == 3)
    how = VOTES[one.parts[2]]
    value = f"__syncthreads_{how}({one.read(2, 'pred')}, FILE_, {one.line})"
    return one.write(f"(uint32_t){value}", "u32") if how == "count" else one.write(f"{value} != 0", "pred")


def _only_barrier_zero(one: Instruction, k: int, whole_block: bool) -> None:
    if one.operand(k) != "0" or not whole_block:
        raise UnknownPtx(f"named barrier {one.name} {', '.join(one.operands)}")


@translates("shfl")
def shuffle(one: Instruction) -> str:
    value, _, valid = one.operand(0).partition("|")
    call = (
        f"shfl_ptx(stitch_emu::W_{SHUFFLES[one.parts[2]]}, {one.read(4, 'u32')}, {one.read(1, 'u32')}, "
        f"{one.read(2, 'u32')}, c_, q_, {one.line})"
    )
    stores = f"{identifier(value)} = v_;" + (f" {identifier(valid)} = q_;" if valid else "")
    return f"uint32_t c_ = {one.read(3, 'u32')}; bool q_; uint32_t v_ = {call}; {stores}"


@translates("vote")
def vote(one: Instruction) -> str:
    how = one.parts[2]
    arguments = f"({one.read(2, 'u32')}, {one.read(1, 'pred')}, FILE_, {one.line})"
    if how == "ballot":
        return one.write(f"__ballot_sync{arguments}", "u32")
    if how not in ("any", "all"):
        raise UnknownPtx(one.name)
    return one.write(f"__{how}_sync{arguments} != 0", "pred")


@translates("activemask")
def active_mask(one: Instruction) -> str:
    return one.write(f"__activemask(FILE_, {one.line})", "u32")


@translates("match")
def match(one: Instruction) -> str:
    if not one.has("any"):
        raise UnknownPtx(one.name)
    return one.write(f"__match_any_sync({one.read(2, 'u32')}, {one.read(1)}, FILE_, {one.line})", "u32")


@translates("redux")
def reduce(one: Instruction) -> str:
    if one.parts[2] not in ("add", "min", "max"):
        raise UnknownPtx(one.name)
    return one.write(f"__reduce_{one.parts[2]}_sync({one.read(2, 'u32')}, {one.read(1)}, FILE_, {one.line})")


@translates("bra")
def branch(one: Instruction) -> str:
    return f"goto {identifier(one.operand(0))};"


@translates("ret", "exit")
def leave(one: Instruction) -> str:
    if one.opcode == "exit" and not one.scope.function.entry:
        raise UnknownPtx("exit inside a function")
    return "return;"


@translates("call")
def call(one: Instruction) -> str:
    operands = list(one.operands)
    results = _names(operands.pop(0)) if operands[0].startswith("(") else []
    function = operands.pop(0)
    arguments = _names(operands[0]) if operands and operands[0].startswith("(") else []
    if function == "vprintf":
        form, values = map(identifier, arguments)
        return f"ptx_vprintf(*(const char**){form}, *(char**){values}); *(int*){identifier(results[0])} = 0;"
    if function == "__assertfail":
        return f'stitch_emu::trap({{FILE_, {one.line}}}, "a failing device assert()");'
    if not any(known.name == function for known in one.scope.module.functions):
        raise UnknownPtx(f"call of {function}")
    return f"{identifier(function)}({', '.join(map(identifier, results + arguments))});"


def _names(group: str) -> list[str]:
    return [name.strip() for name in group[1:-1].split(",") if name.strip()]


@translates("membar", "fence")
def fence(one: Instruction) -> str:
    if one.has("proxy", "cluster"):
        raise UnknownPtx(one.name)
    return ";" if one.has("cta") else "stitch_emu::fence(1);"


@translates("trap", "brkpt")
def trap(one: Instruction) -> str:
    return f'stitch_emu::trap({{FILE_, {one.line}}}, "{one.opcode}");'


@translates("nanosleep")
def sleep(one: Instruction) -> str:
    return "stitch_emu::yield_now();"


@translates("griddepcontrol", "setmaxnreg")
def no_effect(one: Instruction) -> str:
    """Registers and early starts: both change speed alone here, as launches run one after another."""
    return ";"
