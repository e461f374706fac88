"""Is a candidate correct?  Trials on small and full shapes, changed inputs, changed weights; cheapest first.

The first failure ends the check.  Nothing here trusts what the candidate says: results are read from
memory that the judge owns and compared with the reference's.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from .candidate_fault import CandidateFault
from .device_probe import require_device
from .examination import Examination
from .launch import Launch
from .module_lines import ModuleLines
from .project_imports import blamed, with_imports
from .region_target import RegionTarget
from .report import Report, Trials
from .session import Emit, Json, Session
from .slots import Target
from .stages import perform
from .target import target_of
from .variants import FULL


def check(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``check``.

    Params: ``target`` (`target.target_of`), ``runner`` (fields of `Launch`), ``trials`` (fields of
    `Trials`; ``small`` left out: every small variant of the reference, or the ``smallest`` so many).
    Event ``trial`` after each.
    """
    require_device(session.task.reference.device)
    wanted, target = dict(params.get("trials") or {}), target_of(session.task, params["target"])
    left_out: list[str] = []
    if "small" not in wanted:
        small, left_out = _small_variants(session, target, wanted.pop("smallest", None))
        nothing_to_try = not small and wanted.get("full") == 0
        if nothing_to_try and session.task.reference.device.type == "cuda":
            return asdict(Report())  # a size made for a GPU is none for the emulator
        wanted["small"] = [FULL] if nothing_to_try else small
    trials = Trials(**{**wanted, "small": tuple(wanted["small"])})
    reference = session.task.reference
    launch = with_imports(Launch.of(params["runner"]).on(reference.device), reference)
    module = ModuleLines(session.task) if launch.module else None
    report = examine(
        target, launch, trials, emit, module, partial(blamed, launch=launch, reference=reference)
    )
    report["unchecked"] += left_out
    return report


def _small_variants(session: Session, target: Target, count: int | None) -> tuple[list[str], list[str]]:
    """Names of the small variants, all of them or those with the fewest elements; why others are none."""
    small = {name: variant for name, variant in session.task.variants.items() if name != FULL}
    left_out: list[str] = []
    if isinstance(target, RegionTarget):
        other = {name: nodes for name in small if (nodes := target.differing(name))}
        small = {name: variant for name, variant in small.items() if name not in other}
        left_out = [
            f"{name}: {', '.join(nodes)} there compute with a number that follows the extents"
            for name, nodes in other.items()
        ]
    if count is None:
        return list(small), left_out
    elements = {
        name: sum(math.prod(spec["shape"]) for spec in variant.inputs) for name, variant in small.items()
    }
    return sorted(small, key=elements.__getitem__)[:count], left_out


def examine(
    target: Target,
    launch: Launch,
    trials: Trials,
    progress: Callable[[str, dict[str, Any]], None],
    module: ModuleLines | None = None,
    blame: Callable[[CandidateFault], CandidateFault] = lambda fault: fault,
) -> dict[str, Any]:
    """Run the trials until one fails; returns `Report` as JSON.

    Args:
        blame: the fault as it is told, or raises what is nobody's who wrote the candidate.
    """
    examination = Examination(target, launch, trials, progress, module)
    try:
        perform(examination)
    except CandidateFault as raised:
        report, fault = examination.report, blame(raised)
        report.category = fault.category
        report.findings.append(fault.as_finding())
        report.raw += fault.raw
    finally:
        examination.close()
    return asdict(examination.report)
