"""The mean of a row and the squares about it in one pass, where a second one would read the row again."""

from collections.abc import Sequence

from stitch_tui.agents.builtin.ir import Instr, Register, ScalarDag


def in_one_pass(dag: ScalarDag) -> ScalarDag:
    """`dag` with each ``sum((x - mean)^2)`` and the sum behind its mean as one reduction, ``moments``.

    Values keep their places, so that whatever refers to them still does.
    """
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
