"""Which profiler is asked: the system first, then Nsight Compute for the kernels that take the time."""

from dataclasses import dataclass

from stitch_tui.tools.profiling.profile import SystemProfile

SHARE = 0.1
"""A kernel below this share of the device's time is not looked at: halving it wins less than 5 %."""
BUSY = 0.5
"""Below this share of busy time the pauses win more than any kernel could."""


@dataclass(frozen=True)
class Choice:
    """Whether to ask Nsight Compute, about which kernels, and why."""

    ask: bool
    kernels: tuple[str, ...]
    """Empty: all."""
    reason: str


def choose(system: SystemProfile | None) -> Choice:
    """The rule: skipped when the device waits for the host, else the kernels above a share of the time."""
    if system is None:
        return Choice(True, (), "no trace: every kernel is looked at")
    if system.busy_share < BUSY:
        return Choice(
            False,
            (),
            f"the device is busy {system.busy_share:.0%} of the time: its kernels are not the limit",
        )
    total = sum(kernel.time_us for kernel in system.kernels)
    hot = [kernel for kernel in system.kernels if kernel.time_us >= SHARE * total]
    names = tuple(kernel.kernel for kernel in hot)
    share = sum(kernel.time_us for kernel in hot) / total if total else 0.0
    count = f"{len(hot)} of {len(system.kernels)} kernels" if len(system.kernels) > 1 else "the one kernel"
    return Choice(True, names, f"{count} with {share:.0%} of the device's time")
