"""When each disease is diagnosed: the thresholds in words and their source, for who asks why.

*guide* and *ours* as in `kernel_rules`.
"""

from collections.abc import Mapping

from stitch_tui.agents.diagnosis import LAUNCH_SHARE, SPILLED_BYTES
from stitch_tui.agents.kernel_rules import (
    BALANCED,
    BUSY_ISSUE,
    CONFLICT_SHARE,
    DIVERGENT_THREADS,
    IDLE_TENSOR,
    MEMORY_BUSY,
    OCCUPANCY,
    SHARED_BUSY,
    SPILL_SHARE,
    TAIL_ACTIVE,
    USED_BYTES,
    WASTE_SHARE,
)
from stitch_tui.agents.state import Disease
from stitch_tui.tools.profiling.choice import BUSY
from stitch_tui.tools.profiling.profile import WARP

CRITERIA: Mapping[Disease, str] = {
    Disease.HOST_BOUND: f"the device is busy less than {BUSY:.0%} of a run (ours)",
    Disease.LAUNCH_BOUND: f"the device is busy less than {BUSY:.0%} of a run, and launching takes "
    f"{LAUNCH_SHARE:.0%} of it or more (ours)",
    Disease.SPILL: f"local memory moves {SPILL_SHARE:.0%} of device memory's bytes or more; where nobody "
    f"counted them, ptxas tells of {SPILLED_BYTES} bytes a thread or more (ours)",
    Disease.TAIL: f"more than one wave, with {TAIL_ACTIVE:.0%} of the waves filled and of the SMs' time "
    "used, or less (ours)",
    Disease.SMALL_GRID: "fewer blocks than SMs (guide: LaunchStatistics), memory and SMs below "
    f"{BALANCED:g} % of their peaks",
    Disease.DIVERGENCE: f"fewer than {DIVERGENT_THREADS:g} of {WARP} threads take part in an instruction "
    f"(guide: WarpStateStats), and one is issued in {BUSY_ISSUE:g} % of cycles or more (ours)",
    Disease.NO_TENSOR_CORES: "products that tensor cores may compute: those are used less than "
    f"{IDLE_TENSOR:g} % (ours) and device memory less than {BALANCED:g} %; where nobody counted, the code "
    "has none of their instructions",
    Disease.BANK_CONFLICTS: f"{CONFLICT_SHARE:.0%} of the passes through shared memory or more are conflicts "
    f"(guide: MemoryWorkloadAnalysis), at {SHARED_BUSY:g} % of L1's peak or more (ours)",
    Disease.UNCOALESCED: f"less than {USED_BYTES:g} % of the bytes in global memory's sectors are used "
    f"(guide: SourceCounters), by {WASTE_SHARE:.0%} of its traffic or more, or where nobody counted that "
    f"with memory at {MEMORY_BUSY:g} % of its peak or more (ours)",
    Disease.MEMORY: f"memory at {BALANCED:g} % of its peak or more, and not below the SMs "
    "(guide: SpeedOfLight)",
    Disease.COMPUTE: f"the SMs at {BALANCED:g} % of their peak or more (guide: SpeedOfLight)",
    Disease.LOW_OCCUPANCY: f"less than {OCCUPANCY:g} % of an SM's warps fit (guide: Occupancy), memory and "
    f"SMs below {BALANCED:g} % of their peaks",
    Disease.LATENCY: f"memory and SMs below {BALANCED:g} % of their peaks (guide: SpeedOfLight)",
}
