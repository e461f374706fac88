"""Two reductions of a row in one pass, where a second one would read the row again."""

from collections.abc import Sequence
from dataclasses import replace

from stitch_tui.agents.builtin.ir import Instr, Register, ScalarDag, Store


def in_one_pass(dag: ScalarDag) -> ScalarDag:
    """`dag` with one reduction for the mean of a row and the squares about it, and one for its maximum and
    the sum of exponentials below it."""
    return _with_exponentials(_with_moments(dag))


def _with_moments(dag: ScalarDag) -> ScalarDag:
    """Each ``sum((x - mean)^2)`` and the sum behind its mean as one reduction, ``moments``."""
    instrs = list(dag.instrs)
    for place in range(len(instrs)):
        if (found := _mean_of_squares(instrs, place)) is None:
            continue
        total, mean = found
        users = [i for i, instr in enumerate(instrs) if total in instr.args]
        if users == [mean] and all(store.instr != total for store in dag.stores):
            instrs[total] = Instr("moments", Register.MOMENTS, instrs[total].args)
            instrs[mean] = Instr("mean_of", Register.F32, (total,))
        if instrs[total].op == "moments":
            instrs[place] = Instr("squares_of", Register.F32, (total,))
    return ScalarDag(tuple(instrs), dag.stores)


def _mean_of_squares(instrs: Sequence[Instr], place: int) -> tuple[int, int] | None:
    """The sum and the mean of x, when value `place` is the sum of the squares of x about that mean."""
    if instrs[place].op != "sum":
        return None
    square = instrs[instrs[place].args[0]]
    if square.op != "mul" or square.args[0] != square.args[1]:
        return None
    centred = instrs[square.args[0]]
    if centred.op != "sub" or centred.register is not Register.F32:
        return None
    x, mean = centred.args
    known = instrs[mean].op == "mean_of"
    if not known and not (instrs[mean].op == "div" and instrs[instrs[mean].args[1]].op == "count"):
        return None
    total = instrs[mean].args[0]
    return (total, mean) if instrs[total].op in ("sum", "moments") and instrs[total].args == (x,) else None


def _with_exponentials(dag: ScalarDag) -> ScalarDag:
    """Each ``sum(exp(x - max))`` and its maximum as one reduction, ``exponentials``."""
    instrs, stores = list(dag.instrs), dag.stores
    place = 0
    while place < len(instrs):
        if (top := _top_of_exponentials(instrs, place)) is not None:
            if instrs[top].op == "max_of":  # its state comes in front of it
                instrs, stores = _shifted(instrs, stores, top)
                instrs.insert(top, Instr("exponentials", Register.EXPONENTIALS, instrs[top].args))
                top, place = top + 1, place + 1
                instrs[top] = Instr("top_of", Register.F32, (top - 1,))
            instrs[place] = Instr("total_of", Register.F32, instrs[top].args)
        place += 1
    return ScalarDag(tuple(instrs), stores)


def _shifted(
    instrs: Sequence[Instr], stores: tuple[Store, ...], place: int
) -> tuple[list[Instr], tuple[Store, ...]]:
    """Both as they are when one more value stands at `place`."""

    def moved(index: int) -> int:
        return index + (index >= place)

    return (
        [replace(instr, args=tuple(map(moved, instr.args))) for instr in instrs],
        tuple(replace(store, instr=moved(store.instr)) for store in stores),
    )


def _top_of_exponentials(instrs: Sequence[Instr], place: int) -> int | None:
    """The maximum of x, when value `place` is the sum of the exponentials of x less its maximum."""
    if instrs[place].op != "sum" or instrs[instrs[place].args[0]].op != "exp":
        return None
    below = instrs[instrs[instrs[place].args[0]].args[0]]
    if below.op != "sub":
        return None
    x, top = below.args
    found = instrs[top]
    state = instrs[found.args[0]] if found.op == "top_of" else found
    known = found.op == "top_of" or (found.op == "max_of" and found.register is Register.F32)
    return top if known and state.args == (x,) else None
