"""Is a candidate correct?  Trials on small and full shapes, changed inputs, changed weights; cheapest first.

The first failure ends the check.  Nothing here trusts what the candidate says: results are read from
memory that the judge owns and compared with the reference's.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from .candidate_fault import CandidateFault
from .device_probe import require_device
from .examination import Examination, border_of
from .module_call import ModuleCall
from .report import FULL, Checked, Report, Trials
from .rig import Launch
from .session import Emit, Json, Session
from .stages import perform
from .target import target_of

__all__ = ["FULL", "Checked", "Report", "Trials", "border_of", "check", "examine"]


def check(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``check``.

    Params: ``target`` (`target.target_of`), ``runner`` (fields of `Launch`), ``trials`` (fields of
    `Trials`; ``small`` left out: every small variant of the reference, or the ``smallest`` so many).
    Event ``trial`` after each.
    """
    require_device(session.task.reference.device)
    wanted = dict(params.get("trials") or {})
    if "small" not in wanted:
        small = _small_variants(session, wanted.pop("smallest", None))
        nothing_to_try = not small and wanted.get("full") == 0
        if nothing_to_try and session.task.reference.device.type == "cuda":
            return asdict(Report())  # a size made for a GPU is none for the emulator
        wanted["small"] = [FULL] if nothing_to_try else small
    trials = Trials(**{**wanted, "small": tuple(wanted["small"])})
    launch = Launch.of(params["runner"]).on(session.task.reference.device)
    module = ModuleCall(session.task) if launch.module else None
    return examine(target_of(session.task, params["target"]), launch, trials, emit, module)


def _small_variants(session: Session, count: int | None) -> list[str]:
    """Names of the small variants, all of them or those with the fewest elements."""
    small = {name: variant for name, variant in session.task.variants.items() if name != FULL}
    if count is None:
        return list(small)
    elements = {
        name: sum(math.prod(spec["shape"]) for spec in variant.inputs) for name, variant in small.items()
    }
    return sorted(small, key=elements.__getitem__)[:count]


def examine(
    target: Checked,
    launch: Launch,
    trials: Trials,
    progress: Callable[[str, dict[str, Any]], None],
    module: ModuleCall | None = None,
) -> dict[str, Any]:
    """Run the trials until one fails; returns `Report` as JSON."""
    examination = Examination(target, launch, trials, progress, module)
    try:
        perform(examination)
    except CandidateFault as fault:
        report = examination.report
        report.category = fault.category
        report.findings.append(fault.as_finding())
        report.raw += fault.raw
    finally:
        examination.close()
    return asdict(examination.report)
