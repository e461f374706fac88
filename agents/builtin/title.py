"""Short names for subtasks and their kernels: ``linear+gelu``, ``layer_norm_gelu``."""

import re
from collections.abc import Sequence

from stitch_tui.agents.builtin import operators, shapes
from stitch_tui.tools.graph import Node

LONGEST = 5
RMS_NORM = ("pow", "mean", "add", "rsqrt", "mul")


def short_op(op: str) -> str:
    """``aten.linear.default`` -> ``linear``."""
    parts = op.split(".")
    name = parts[1].lstrip("_") if len(parts) > 1 else op
    return "batch_norm" if name.startswith("native_batch_norm") else name.removeprefix("linalg_")


def title_of(nodes: Sequence[Node]) -> str:
    """The operators in order, plain views left out, repeats counted, a written-out RMSNorm by name."""
    plain = (*operators.CASTS, "getitem")
    names = [short_op(n.op) for n in nodes if not shapes.is_plain(n) and n.op not in plain]
    names = _with_rms_norm(names or [short_op(n.op) for n in nodes])
    groups: list[tuple[str, int]] = []
    for name in names:
        if groups and groups[-1][0] == name:
            groups[-1] = (name, groups[-1][1] + 1)
        else:
            groups.append((name, 1))
    words = [name if count == 1 else f"{name}x{count}" for name, count in groups]
    if len(words) > LONGEST:
        words = [*words[: LONGEST - 1], f"{len(words) - LONGEST + 1} more"]
    return "+".join(words)


def _with_rms_norm(names: list[str]) -> list[str]:
    for start in range(len(names) - len(RMS_NORM) + 1):
        if tuple(names[start : start + len(RMS_NORM)]) == RMS_NORM:
            rest = names[start + len(RMS_NORM) :]
            return [*names[:start], "rms_norm", *(rest[1:] if rest[:1] == ["mul"] else rest)]
    return names


def identifier(text: str) -> str:
    """A C identifier made of `text`."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").lower() or "value"
