"""The rules about one kernel's counters: what is wrong before what is merely the limit, each with one change.

Thresholds stand beside their source: *guide* is Nvidia's Kernel Profiling Guide with the rules that Nsight
Compute ships (sections SpeedOfLight, WarpStateStats, Occupancy, LaunchStatistics, SourceCounters), *ours* was
set on the recorded kernels of ``tests/diseases``.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from stitch_tui.agents.state import Bottleneck, Disease
from stitch_tui.tools.profiling.profile import WARP, KernelProfile

WELL_USED = 80.0
"""Percent of a peak from which more is hardly to be had.  (guide: SpeedOfLight)"""
BALANCED = 60.0
"""Percent of the peaks of memory and of the SMs below both of which latency is the limit, and from which the
busier one is.  (guide: SpeedOfLight)"""
SPILL_SHARE = 0.1
"""Local memory's bytes over those of device memory.  (ours)"""
TAIL_ACTIVE = 0.75
"""Share of a kernel's time in which the average SM has work, and of its waves that are filled.  (ours)"""
DIVERGENT_THREADS = 20.0
"""Threads, of 32, that take part in an instruction.  (guide: WarpStateStats, thread divergence)"""
BUSY_ISSUE = 40.0
"""Percent of cycles with an instruction issued from which divergence costs time.  (ours)"""
USED_BYTES = 50.0
"""Percent of the bytes in global memory's sectors that threads asked for.  (guide: SourceCounters)"""
WASTE_SHARE = 0.3
"""Of all sectors that go through global memory, those of poor accesses: fewer cost little.  (ours)"""
MEMORY_BUSY = 40.0
"""Percent of memory's peak from which poor accesses cost time, where nobody counted sectors.  (ours)"""
CONFLICT_SHARE = 0.3
"""Of the passes through shared memory.  (guide: MemoryWorkloadAnalysis, shared memory bank conflicts)"""
SHARED_BUSY = 40.0
"""Percent of L1's and shared memory's peak from which conflicts cost time.  (ours)"""
REPEATED = 1.25
"""Bytes that device memory moves over those that have to be moved.  (ours)"""
IDLE_TENSOR = 5.0
"""Percent of the tensor cores' peak.  (ours)"""
OCCUPANCY = 50.0
"""Percent of an SM's warps that fit.  (guide: Occupancy)"""
_BYTES = 32
"""Of a sector."""


@dataclass(frozen=True)
class Work:
    """What a candidate computes, as far as the rules ask."""

    products: bool = False
    """It multiplies matrices or convolves."""
    tensor_cores: bool = False
    """Tensor cores may compute them in the reference's precision."""
    least_bytes: float = 0.0
    """That any program for it must read and write; 0: not known."""


@dataclass(frozen=True)
class Diagnosis:
    """One thing that limits."""

    disease: Disease
    bottleneck: Bottleneck
    evidence: str
    change: str


def spill(kernel: KernelProfile, work: Work) -> Diagnosis | None:
    """Registers that went to local memory and back."""
    sectors = (kernel.local_load_sectors or 0) + (kernel.local_store_sectors or 0)
    if not sectors or not kernel.dram_bytes or sectors * _BYTES < SPILL_SHARE * kernel.dram_bytes:
        return None
    return Diagnosis(
        Disease.SPILL,
        Bottleneck.MEMORY,
        f"{kernel.kernel} moves {sectors * _BYTES / 1e6:.1f} MB of spilled registers or local arrays, "
        f"{kernel.dram_bytes / 1e6:.1f} MB of device memory; {kernel.registers} registers a thread",
        FEWER_VALUES,
    )


def tail(kernel: KernelProfile, work: Work) -> Diagnosis | None:
    """A last wave that leaves most SMs idle."""
    waves, active = kernel.waves, _active(kernel)
    if waves is None or active is None or waves <= 1:
        return None
    if waves / math.ceil(waves) > TAIL_ACTIVE or active > TAIL_ACTIVE:
        return None
    return Diagnosis(
        Disease.TAIL,
        Bottleneck.LATENCY,
        f"{kernel.blocks} blocks are {waves:.2f} waves, and the average SM works {active:.0%} of the time",
        "let the grid fill whole waves: smaller blocks of work, or a persistent grid of as many blocks as "
        "the device holds, which take pieces until none is left",
    )


def small_grid(kernel: KernelProfile, work: Work) -> Diagnosis | None:
    """Fewer blocks than SMs."""
    if not kernel.multiprocessors or kernel.blocks >= kernel.multiprocessors:
        return None
    if max(kernel.memory_percent or 0, kernel.sm_percent or 0) >= BALANCED:
        return None
    return Diagnosis(
        Disease.SMALL_GRID,
        Bottleneck.LATENCY,
        f"{kernel.blocks} blocks for {kernel.multiprocessors} SMs",
        "cut the work into more blocks: split the longest loop or reduction over blocks and merge afterwards",
    )


def divergence(kernel: KernelProfile, work: Work) -> Diagnosis | None:
    """Branches that threads of one warp take apart."""
    threads = kernel.threads_active
    if threads is None or threads >= DIVERGENT_THREADS or (kernel.issue_percent or 0) < BUSY_ISSUE:
        return None
    return Diagnosis(
        Disease.DIVERGENCE,
        Bottleneck.COMPUTE,
        f"{threads:.1f} of {WARP} threads take part in an instruction, and schedulers issue "
        f"{kernel.issue_percent:.0f} % of the time",
        "let the threads of a warp take the same branch: sort or map work to threads so that the condition "
        "is the same within 32 neighbours, or compute without branching",
    )


def uncoalesced(kernel: KernelProfile, work: Work) -> Diagnosis | None:
    """Global accesses that use a small part of each sector."""
    uses = {"loads": kernel.load_use_percent, "stores": kernel.store_use_percent}
    poor = {name: use for name, use in uses.items() if use is not None and 0 < use < USED_BYTES}
    if not poor or not _costs(kernel, poor):
        return None
    sectors = {"loads": kernel.load_sectors, "stores": kernel.store_sectors}
    told = ", ".join(
        f"{name} use {use:.0f} % of the bytes they move ({sectors[name] or 0:.0f} sectors a request)"
        for name, use in poor.items()
    )
    return Diagnosis(
        Disease.UNCOALESCED,
        Bottleneck.MEMORY,
        f"global {told}",
        "let neighbouring threads access neighbouring addresses: swap the indices of threads and loops, "
        "or go through a tile in shared memory where one side must be strided",
    )


def _costs(kernel: KernelProfile, poor: Collection[str]) -> bool:
    """Do poor accesses move enough to matter?  A product stores little, however it does so."""
    moved = {"loads": kernel.loaded_sectors, "stores": kernel.stored_sectors}
    total = sum(sectors or 0 for sectors in moved.values())
    if not total:
        return (kernel.memory_percent or 0) >= MEMORY_BUSY
    return sum(moved[name] or 0 for name in poor) >= WASTE_SHARE * total


def bank_conflicts(kernel: KernelProfile, work: Work) -> Diagnosis | None:
    """Accesses to shared memory that wait for each other."""
    conflicts = (kernel.load_conflicts or 0) + (kernel.store_conflicts or 0)
    passes = kernel.shared_wavefronts
    if not conflicts or not passes or conflicts < CONFLICT_SHARE * passes:
        return None
    if (kernel.l1_percent or 0) < SHARED_BUSY:
        return None
    return Diagnosis(
        Disease.BANK_CONFLICTS,
        Bottleneck.MEMORY,
        f"{conflicts / passes:.0%} of the passes through shared memory are bank conflicts, at "
        f"{kernel.l1_percent:.0f} % of its peak",
        "pad each row of the tile by one access width (tile[32][33] for 4-byte elements), or swizzle its "
        "columns",
    )


def no_tensor_cores(kernel: KernelProfile, work: Work) -> Diagnosis | None:
    """Products that the ordinary cores compute."""
    idle = kernel.tensor_percent is not None and kernel.tensor_percent < IDLE_TENSOR
    if not (work.products and work.tensor_cores and idle) or (kernel.dram_percent or 0) >= BALANCED:
        return None
    return Diagnosis(
        Disease.NO_TENSOR_CORES,
        Bottleneck.COMPUTE,
        f"tensor cores are used {kernel.tensor_percent:.0f} %, the fp32 pipe {kernel.fma_percent or 0:.0f} %",
        ON_TENSOR_CORES,
    )


def memory(kernel: KernelProfile, work: Work) -> Diagnosis | None:
    """Some part of the memory system is the busiest part of the device."""
    busiest = kernel.memory_percent or 0
    if busiest < BALANCED or busiest < (kernel.sm_percent or 0):
        return None
    moved = (kernel.dram_bytes or 0) / work.least_bytes if work.least_bytes else 0.0
    levels = {
        "device memory": (kernel.dram_percent, _ONCE if moved >= REPEATED else _FEWER_BYTES),
        "the L2 cache": (kernel.l2_percent, _NEARER),
        "L1 and shared memory": (kernel.l1_percent, _REGISTERS),
    }
    if (kernel.dram_percent or 0) >= WELL_USED:  # what lies nearer is passed on the way
        levels = {"device memory": levels["device memory"]}
    name, (percent, change) = max(levels.items(), key=lambda level: level[1][0] or 0)
    full = "; the access itself is as fast as it gets" if (percent or 0) >= WELL_USED else ""
    times = f"; it moves {moved:.1f} times the bytes that it must" if moved >= REPEATED else ""
    evidence = f"{name} at {percent or busiest:.0f} % of its peak{full}{times}"
    return Diagnosis(Disease.MEMORY, Bottleneck.MEMORY, evidence, change)


def compute(kernel: KernelProfile, work: Work) -> Diagnosis | None:
    """The SMs' pipes are the busiest part of the device."""
    if (kernel.sm_percent or 0) < BALANCED:
        return None
    return Diagnosis(
        Disease.COMPUTE,
        Bottleneck.COMPUTE,
        f"the busiest pipe of the SMs at {kernel.sm_percent:.0f} % of its peak",
        "issue fewer instructions for the same result: reuse loaded values, cheaper functions, packed or "
        "wider operations",
    )


def low_occupancy(kernel: KernelProfile, work: Work) -> Diagnosis | None:
    """Too few warps fit to hide latencies."""
    limit = kernel.occupancy_limit_percent
    if limit is None or limit >= OCCUPANCY or not _starved(kernel):
        return None
    remedy = {
        "registers": "use fewer registers: smaller tiles a thread, or __launch_bounds__ with more blocks",
        "shared memory": "use less shared memory in a block: smaller or fewer tiles, or bigger blocks that "
        "share one",
        "block slots": "use bigger blocks: an SM holds no more blocks than it has slots for",
    }
    return Diagnosis(
        Disease.LOW_OCCUPANCY,
        Bottleneck.LATENCY,
        f"{limit:.0f} % of an SM's warps fit, limited by {kernel.limiter}; memory at "
        f"{kernel.memory_percent or 0:.0f} %, SMs at {kernel.sm_percent or 0:.0f} % of their peaks",
        remedy.get(kernel.limiter, "let more warps fit on an SM: other sizes of blocks"),
    )


def latency(kernel: KernelProfile, work: Work) -> Diagnosis | None:
    """Neither memory nor the SMs are busy: warps wait."""
    reason, share = kernel.stall
    if not _starved(kernel):
        return None
    waits = f"; warps wait for {reason.replace('_', ' ')} {share:.0%} of their time" if reason else ""
    return Diagnosis(
        Disease.LATENCY,
        Bottleneck.LATENCY,
        f"memory at {kernel.memory_percent or 0:.0f} %, SMs at {kernel.sm_percent or 0:.0f} % of peak, "
        f"occupancy {kernel.occupancy_percent or 0:.0f} %{waits}",
        STALL_REMEDIES.get(
            reason, "give each SM more independent work: more warps, or more elements a thread"
        ),
    )


FEWER_VALUES = (
    "keep fewer values alive in a thread: smaller tiles a thread, smaller blocks or looser "
    "__launch_bounds__, and arrays indexed only by constants after unrolling"
)
ON_TENSOR_CORES = (
    "compute the products on tensor cores: mma.sync or wmma on 16x16x16 tiles of the operands in shared "
    "memory, summed in fp32"
)
_FEWER_BYTES = (
    "move fewer bytes: fuse with what comes before or after, and keep what is read twice in shared memory or "
    "registers"
)
_ONCE = (
    "read and write each byte once: do in one pass what now takes several, and keep intermediate values in "
    "registers or shared memory"
)
_NEARER = "read less often what other blocks read too: bigger tiles, so that shared memory serves more of it"
_REGISTERS = "take more from registers: let each thread compute a bigger tile of results"
STALL_REMEDIES = {
    "long_scoreboard": "have more loads in flight: load several elements before the first is used "
    "(unroll by 4 or more, 16-byte accesses), or give more threads a part of the loop",
    "short_scoreboard": "wait less for shared memory and special functions: keep operands in registers, use "
    "several independent chains",
    "barrier": "synchronise less often: larger steps between __syncthreads(), or warps that need no barrier",
    "lg_throttle": "issue fewer and wider accesses to global memory: 16 bytes a thread",
    "mio_throttle": "issue fewer and wider accesses to shared memory, and keep operands in registers",
    "math_pipe_throttle": "spread the work over other pipes, or do less of it",
    "wait": "let each thread work on several independent elements, so that instructions need not wait",
    "no_instruction": "shorten the code: less unrolling, so that it stays in the instruction cache",
    "drain": "write less at a kernel's end: wider stores, spread over the kernel",
}
"""One change for each reason that warps wait for.  (guide: WarpStateStats)"""
Rule = Callable[[KernelProfile, Work], Diagnosis | None]
RULES: Sequence[Rule] = (
    spill,
    tail,
    small_grid,
    divergence,
    no_tensor_cores,
    bank_conflicts,
    uncoalesced,
    memory,
    compute,
    low_occupancy,
    latency,
)


def _starved(kernel: KernelProfile) -> bool:
    """Both memory and SMs are below what a busy kernel reaches; False where that is not known."""
    known = kernel.memory_percent is not None and kernel.sm_percent is not None
    return known and max(kernel.memory_percent or 0, kernel.sm_percent or 0) < BALANCED


def _active(kernel: KernelProfile) -> float | None:
    if kernel.active_cycles is None or not kernel.elapsed_cycles:
        return None
    return min(1.0, kernel.active_cycles / kernel.elapsed_cycles)
