"""What limits a candidate, by rule from its profile: the bottleneck, the numbers that show it, one change.

Rules are tried in order, the system before the kernels (`kernel_rules`), and the machine code where nobody
read counters; the first that holds is the diagnosis, and the next ones are what to look at afterwards.
"""

from collections.abc import Iterator
from dataclasses import replace

from stitch_tui.agents.kernel_rules import FEWER_VALUES, ON_TENSOR_CORES, RULES, Diagnosis, Work
from stitch_tui.agents.state import Advice, Bottleneck, Disease
from stitch_tui.tools.profiling.choice import BUSY
from stitch_tui.tools.profiling.profile import KernelCode, Profile, SystemProfile

__all__ = ["Diagnosis", "Work", "advice", "diagnose"]

LAUNCH_SHARE = 0.3
"""Of a run's time, in calls that launch: from here on launches are what the device waits for.  (ours)"""
SPILLED_BYTES = 64
"""Of a thread, by ptxas, where nobody counted what spills move.  (ours)"""
UNKNOWN = Work()
"""Where nobody says what a candidate computes."""


def diagnose(profile: Profile, work: Work = UNKNOWN) -> tuple[Diagnosis, ...]:
    """All rules that hold, the primary one first; empty where the evidence is not enough for any."""
    found = list(_of_system(profile.system)) if profile.system else []
    for kernel in profile.kernels[:1]:
        held = (diagnosis for rule in RULES if (diagnosis := rule(kernel, work)))
        found += (_with_code(diagnosis, profile.code_of(kernel.kernel)) for diagnosis in held)
    return tuple(found or _of_code(profile, work))


def advice(profile: Profile, work: Work = UNKNOWN) -> Advice | None:
    """The primary diagnosis as advice; the others are its next steps."""
    found = diagnose(profile, work)
    if not found:
        return None
    first, *others = found
    return Advice(
        bottleneck=first.bottleneck,
        evidence=first.evidence,
        change=first.change,
        next_steps=tuple(f"{other.disease}: {other.change}" for other in others[:2]),
        disease=first.disease,
    )


def _of_system(system: SystemProfile) -> Iterator[Diagnosis]:
    if system.busy_share >= BUSY:
        return
    idle = f"the device is busy {system.busy_share:.0%} of a run's {system.wall_us:.0f} us"
    launching = f"{system.launches} launches take the host {system.launch_us:.0f} us"
    if system.launch_us >= LAUNCH_SHARE * system.wall_us:
        change = (
            "do the work in fewer kernels: put consecutive element-wise steps into one, keeping values "
            "in registers"
            if system.launches > 1
            else "give the kernel more work a launch, or fuse it with its neighbours: it ends before the "
            "next one can be launched"
        )
        yield Diagnosis(Disease.LAUNCH_BOUND, Bottleneck.LAUNCH, f"{idle}; {launching}", change)
    else:
        yield Diagnosis(
            Disease.HOST_BOUND,
            Bottleneck.HOST,
            f"{idle}; {launching}, and the host does something else in between",
            "take work off the host: compute what does not change between calls in stitch_bind, and do no "
            "allocation, no synchronisation and no loops over data in stitch_run",
        )


def _with_code(diagnosis: Diagnosis, code: KernelCode | None) -> Diagnosis:
    """The evidence, with what the machine code says of the same thing."""
    said = {
        Disease.SPILL: f"ptxas: {code.spill_bytes} bytes spilled a thread" if code else "",
        Disease.NO_TENSOR_CORES: f"in its code: {code.tensor_text}" if code and code.tensor_text else "",
    }.get(diagnosis.disease, "")
    return replace(diagnosis, evidence=f"{diagnosis.evidence}; {said}") if said else diagnosis


def _of_code(profile: Profile, work: Work) -> Iterator[Diagnosis]:
    """What the machine code of the kernel that takes longest shows where nobody read counters.

    Of several kernels, and without a trace, nobody knows which one that is.
    """
    traced = profile.system.kernels if profile.system else ()
    code = profile.code_of(traced[0].kernel) if traced else None
    if code is None and not traced and len(profile.code) == 1:
        code = profile.code[0]
    if code is None or profile.kernels:
        return
    if code.spill_bytes >= SPILLED_BYTES:
        evidence = f"ptxas: {code.kernel} spills {code.spill_bytes} bytes a thread"
        yield Diagnosis(Disease.SPILL, Bottleneck.MEMORY, evidence, FEWER_VALUES)
    if work.products and work.tensor_cores and traced and code.tensor == {}:
        evidence = f"{code.kernel}, which takes the longest, has {code.tensor_text} in its code"
        yield Diagnosis(Disease.NO_TENSOR_CORES, Bottleneck.COMPUTE, evidence, ON_TENSOR_CORES)
