"""A program as the files of a bundle: pure, the same input gives the same bytes."""

import json
from typing import Any

from stitch_tui.tools.bundle.contents import Program
from stitch_tui.tools.bundle.module_text import folder_text
from stitch_tui.tools.bundle.plan_file import FORMAT, plan_text
from stitch_tui.tools.bundle.report import report_text
from stitch_tui.tools.bundle.single_file import HEADER
from stitch_tui.tools.errors import UsageError


def render(program: Program) -> dict[str, bytes]:
    """The files of ``stitched/`` by their path in it.

    Raises:
        UsageError: the program cannot be ordered or written down; ids that are not distinct.
    """
    _require_distinct(program)
    files = {
        "plan.toml": plan_text(program),
        "model_new.py": folder_text(program),
        "reference.py": program.reference.text,
        "verdict.json": _verdicts(program),
        "report.md": report_text(program),
        "kernels/stitch.h": HEADER.read_text(encoding="utf-8"),
        **{f"kernels/{kernel.file}": kernel.source for kernel in program.stitched},
    }
    return {name: text.encode() for name, text in sorted(files.items())}


def _verdicts(program: Program) -> str:
    whole: dict[str, Any] = {
        "format": FORMAT,
        "program": None if program.verdict is None else program.verdict.model_dump(mode="json"),
        "subtasks": {
            kernel.id: kernel.verdict.model_dump(mode="json")
            for kernel in program.kernels
            if kernel.verdict is not None
        },
    }
    return json.dumps(whole, indent=1, sort_keys=True) + "\n"


def _require_distinct(program: Program) -> None:
    ids = [kernel.id.lower() for kernel in program.kernels]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise UsageError(f"two subtasks are called {', '.join(twice)}")
