"""A profile in lines of plain text, for the terminal, the report and prompts."""

from collections.abc import Iterator

from stitch_tui.tools.profiling.profile import Evidence, KernelCode, KernelProfile, Profile, SystemProfile

SHOWN = 3
"""Kernels that are described."""


def lines(profile: Profile) -> list[str]:
    """What was measured, the most telling first; who measured it, and why nobody better did."""
    told = [] if profile.system is None else [system_line(profile.system, profile.system_evidence)]
    for kernel in profile.kernels[:SHOWN]:
        told += kernel_lines(kernel)
        if (code := profile.code_of(kernel.kernel)) and (said := code_text(code)):
            told.append(f"  code: {said}")
    if not profile.kernels:
        told += [f"{code.kernel}: {code_text(code)}" for code in profile.code[:SHOWN] if code_text(code)]
    told.append(evidence_line(profile))
    return told


def evidence_line(profile: Profile) -> str:
    """``evidence: ncu 2025.3.1, the one kernel with 100% of the device's time``."""
    who = profile.tool or str(profile.evidence)
    return f"evidence: {who}, {profile.why}" if profile.why else f"evidence: {who}"


def system_line(system: SystemProfile, evidence: Evidence) -> str:
    """A run's time and how much of it the device worked."""
    return (
        f"a run takes {system.wall_us:.1f} us, the device is busy {system.busy_share:.0%} of it: "
        f"{system.launches} kernels, {system.launch_us:.1f} us of launching, {system.gaps} pauses, "
        f"{system.gap_us:.1f} us ({evidence})"
    )


def kernel_lines(kernel: KernelProfile) -> Iterator[str]:
    """A kernel's launch, its share of the peaks, its occupancy, what it waits for, how it reads memory."""
    size = f"{kernel.blocks} blocks of {kernel.threads}, {kernel.registers} registers"
    shared = f", {kernel.shared_bytes} bytes of shared memory" if kernel.shared_bytes else ""
    times = f" in {kernel.launches} launches" if kernel.launches > 1 else ""
    yield f"{kernel.kernel}: {kernel.time_us:.1f} us{times}, {size}{shared}"
    peaks = {
        "memory": kernel.dram_percent,
        "L2": kernel.l2_percent,
        "L1 and shared": kernel.l1_percent,
        "SMs": kernel.sm_percent,
        "fp32 pipe": kernel.fma_percent,
        "tensor cores": kernel.tensor_percent,
    }
    if said := _percents(peaks):
        yield f"  of peak: {said}"
    if kernel.occupancy_percent is not None and kernel.occupancy_limit_percent is not None:
        limiter = f", limited by {kernel.limiter}" if kernel.limiter else ""
        waves = f", {kernel.waves:.2f} waves" if kernel.waves is not None else ""
        yield (
            f"  occupancy {kernel.occupancy_percent:.0f} % of "
            f"{kernel.occupancy_limit_percent:.0f} % possible{limiter}{waves}"
        )
    reason, share = kernel.stall
    if reason:
        yield f"  warps wait for {reason.replace('_', ' ')}: {share:.0%} of their time"
    use = {"loads": kernel.load_use_percent, "stores": kernel.store_use_percent}
    if said := _percents(use):
        yield f"  of the bytes that global memory moves are used: {said}"


def code_text(code: KernelCode) -> str:
    """``168 registers, 96 bytes spilled, 8 HMMA``: what is in the machine code."""
    sizes = {
        "registers": code.registers,
        "bytes spilled": code.spill_bytes,
        "bytes of stack": code.stack_bytes,
    }
    return ", ".join(
        [*(f"{size} {name}" for name, size in sizes.items() if size), *filter(None, [code.tensor_text])]
    )


def _percents(values: dict[str, float | None]) -> str:
    return ", ".join(f"{name} {value:.0f} %" for name, value in values.items() if value is not None)
