"""The end of a kernel that computes an element at a time: its scalar program as C, from loads to stores."""

from collections.abc import Callable

from stitch_tui.agents.builtin import c_scalar, emit
from stitch_tui.agents.builtin.ir import Subtask


def epilogue(subtask: Subtask, indent: str, element: Callable[[int], str], root: str = "") -> list[str]:
    """Statements from the loads to the stores.

    Args:
        element: where the element of an operand lies, by the operand's number.
        root: what the program works on, where there is anything: the sum, the window's value.
    """
    lines = []
    for index, instr in enumerate(subtask.dag.instrs):
        if instr.op == "root":
            lines.append(f"{indent}const float v{index} = {root};")
        elif instr.op == "load":
            number = int(instr.literal)
            value = c_scalar.widened(subtask.accesses[number].dtype, element(number))
            lines.append(f"{indent}const {instr.register.value} v{index} = {value};")
        else:
            lines += emit.assignments(subtask.dag.instrs, [index], indent)
    for store in subtask.dag.stores:
        value = c_scalar.narrowed(subtask.accesses[store.access].dtype, f"v{store.instr}")
        lines.append(f"{indent}{element(store.access)} = {value};")
    return lines
