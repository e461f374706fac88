"""A KernelBench task at sizes for the emulator: smaller module-level integers, the rest unchanged.

Only constants that ``get_inputs`` and ``get_init_inputs`` name are touched, and only above a cap: each is
halved until it fits (an odd one becomes the largest odd number that does), so what was equal stays equal and
what divided mostly still divides.  The smallest cap with which the module builds and runs is taken.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CAPS = (16, 32, 64, 128)
BATCH_CAP = 4
GROUPS_CAP = 4
"""A group of one channel is its own mean: normalised, nothing is left of it."""
TRIAL_S = 300
_TRIAL = """
import runpy, sys, torch
names = runpy.run_path(sys.argv[1])
torch.manual_seed(0)
with torch.no_grad():
    result = names["Model"](*names["get_init_inputs"]())(*names["get_inputs"]())
first = result[0] if isinstance(result, (tuple, list)) else result
assert first.numel() and bool(torch.isfinite(first.double()).any())
"""


class Irreducible(Exception):
    """No reduced form of the task runs; the message says why."""


def reduced(source: str, folder: Path) -> tuple[str, int]:
    """The smaller program and its cap; `folder` takes the drafts that are tried.

    Raises:
        Irreducible: with no cap the module builds and runs.
    """
    why = ""
    for cap in CAPS:
        text = shrunk(source, cap)
        draft = folder / "draft.py"
        draft.write_text(text)
        try:
            done = subprocess.run(
                [sys.executable, "-c", _TRIAL, str(draft)],
                capture_output=True, text=True, timeout=TRIAL_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Irreducible(f"cap {cap}: one forward pass takes more than {TRIAL_S} s") from None
        finally:
            draft.unlink()
        if done.returncode == 0:
            return text, cap
        why = (done.stderr.strip().splitlines() or ["died"])[-1]
    raise Irreducible(f"cap {CAPS[-1]}: {why}")


def shrunk(source: str, cap: int, batch: int = BATCH_CAP) -> str:
    """The source with large module-level integers replaced: at most `cap`, a batch's at most `batch`."""
    tree = ast.parse(source)
    used = _names_in_inputs(tree)
    edits: list[tuple[int, int, int, str]] = []
    for name, value in _constants(tree):
        if name in used:
            edits += _edits(value, _limit(name.lower(), cap, batch))
    lines = source.splitlines(keepends=True)
    for line, start, end, text in sorted(edits, reverse=True):
        raw = lines[line - 1].encode()
        lines[line - 1] = (raw[:start] + text.encode() + raw[end:]).decode()
    return "".join(lines)


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Module-level names with their expressions; of ``a, b = 1, 2`` both."""
    for statement in tree.body:
        if not isinstance(statement, ast.Assign):
            continue
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Name):
            yield target.id, value
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for name, item in zip(target.elts, value.elts, strict=False):
                if isinstance(name, ast.Name):
                    yield name.id, item


def _limit(name: str, cap: int, batch: int) -> int:
    if "batch" in name:
        return batch
    return GROUPS_CAP if "groups" in name else cap


def _names_in_inputs(tree: ast.Module) -> set[str]:
    """Names that the two functions read, through other module-level constants too."""
    functions = [
        s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name in ("get_inputs", "get_init_inputs")
    ]
    used = {n.id for f in functions for n in ast.walk(f) if isinstance(n, ast.Name)}
    for name, value in reversed(list(_constants(tree))):
        if name in used:
            used |= {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
    return used


def _edits(value: ast.expr, cap: int) -> Iterator[tuple[int, int, int, str]]:
    """Replacements of integer expressions: line, first and last byte, text."""
    number = _integer(value)
    if number is not None:
        smaller = _smaller(number, cap)
        if smaller != number and value.end_col_offset is not None and value.lineno == value.end_lineno:
            yield value.lineno, value.col_offset, value.end_col_offset, str(smaller)
    elif isinstance(value, (ast.Tuple, ast.List)):
        for item in value.elts:
            yield from _edits(item, cap)


def _integer(value: ast.expr) -> int | None:
    if isinstance(value, ast.Constant) and type(value.value) is int:
        return value.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Add, ast.Pow)):
        left, right = _integer(value.left), _integer(value.right)
        if left is None or right is None:
            return None
        kinds = {ast.Mult: left * right, ast.Add: left + right, ast.Pow: left**right}
        return kinds[type(value.op)]
    return None


def _smaller(number: int, cap: int) -> int:
    while number > cap and number % 2 == 0:
        number //= 2
    return number if number <= cap else cap - 1 + cap % 2
