"""``plan.toml``: the bundle's subtasks and their numbers, for people and for `read_bundle`."""

import hashlib
from collections.abc import Mapping
from typing import Any

import tomli_w

from stitch_tui.tools.bundle.contents import Kernel, Program
from stitch_tui.tools.bundle.coverage import coverage
from stitch_tui.tools.graph import DType
from stitch_tui.tools.verdict import Flag, Verdict

FORMAT = 1
"""Of ``plan.toml`` and ``verdict.json``; a reader refuses a newer one."""


def plan_text(program: Program) -> str:
    """The plan as TOML: reference, program, one ``[[subtask]]`` each in the order given."""
    reference = program.reference
    covered = coverage(program.graph, [kernel.region for kernel in program.stitched])
    plan = {
        "format": FORMAT,
        "reference": _filled(
            {
                "file": "reference.py",
                "class": reference.class_name,
                "mode": reference.mode,
                "origin": reference.origin,
                "sha256": reference.sha256,
            }
        ),
        "program": _filled(
            {
                "session": program.session,
                "operators": len(program.graph.nodes),
                "coverage": round(covered.share, 4),
                "coverage_basis": covered.basis.value,
                "verdict": None if program.verdict is None else verdict_numbers(program.verdict),
            }
        ),
        "subtask": [_subtask(program, kernel) for kernel in program.kernels],
    }
    return tomli_w.dumps(plan)


def verdict_numbers(verdict: Verdict) -> dict[str, Any]:
    """What a verdict says in numbers; times only where something was timed."""
    numbers: dict[str, Any] = {
        "category": verdict.category.value,
        "flags": [flag.value for flag in verdict.flags],
        "device": verdict.device,
        "error": verdict.error,
        "error_limit": verdict.error_limit,
    }
    if verdict.timing is not None and Flag.FUNCTIONAL not in verdict.flags:
        timing = verdict.timing
        numbers["time_us"] = timing.candidate.median_us
        numbers["time_interval_us"] = [timing.candidate.low_us, timing.candidate.high_us]
        numbers["bind_us"] = timing.bind_us
        numbers["speedup"] = {name: ratio.value for name, ratio in timing.speedups.items()}
        numbers["best_baseline"] = timing.best_baseline if timing.baselines else None
    return _filled(numbers)


def _subtask(program: Program, kernel: Kernel) -> dict[str, Any]:
    region = kernel.region
    row = {
        "id": kernel.id,
        "title": kernel.title,
        "state": kernel.state,
        "strategy": kernel.strategy,
        "nodes": list(region.nodes),
        "inputs": [_value(program, value) for value in region.inputs],
        "outputs": [_value(program, value) for value in region.outputs],
        "ints": list(region.ints),
        "floats": list(region.floats),
        "verdict": None if kernel.verdict is None else verdict_numbers(kernel.verdict),
    }
    if kernel.source:
        row["kernel"] = f"kernels/{kernel.file}"
        row["sha256"] = hashlib.sha256(kernel.source.encode()).hexdigest()
        row["options"] = list(kernel.options)
    return _filled(row)


def _value(program: Program, value: str) -> dict[str, Any]:
    """A value at a region's border: its id, kind, name in the state_dict, shape and dtype."""
    graph = program.graph
    spec, source = graph.spec(value), graph.source.get(value)
    row = {
        "id": value,
        "kind": graph.kind(value).value,
        "name": source.target if source else None,
        "dtype": DType(spec.dtype).value,
        "shape": list(spec.shape),
        "strides": None if spec.strides is None else list(spec.strides),
    }
    return {key: item for key, item in row.items() if item is not None}


def _filled(row: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is not there: TOML has no null."""
    return {key: value for key, value in row.items() if value is not None and value not in ("", [], {})}
