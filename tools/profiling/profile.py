"""A profile as data: what ncu says of kernels, a trace of a run, and on what evidence."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

WARP = 32
_READY = ("selected", "not_selected")
"""The warp could issue: it did, or another one did."""


class Evidence(StrEnum):
    """Who measured; what stands further down knows less."""

    NCU = "ncu"
    NSYS = "nsys"
    CUPTI = "cupti"
    CODE = "code"
    """Nobody measured: what the compiler and the disassembler say of the machine code."""
    NONE = "none"


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KernelProfile(_Data):
    """What Nsight Compute measured of one kernel; None: not asked, or not believed.

    Over several launches of one kernel sizes are those of the longest, sums are summed, and the rest is
    averaged by time.
    """

    kernel: str
    launches: int
    time_us: float
    """Of all profiled launches together."""
    blocks: int = 0
    threads: int = 0
    """Of one block."""
    registers: int = 0
    """Of one thread."""
    static_shared_bytes: int = 0
    """Of one block, as ``dynamic_shared_bytes``."""
    dynamic_shared_bytes: int = 0
    memory_percent: float | None = None
    """Of the peak of the busiest part of the memory system; the four below likewise."""
    dram_percent: float | None = None
    l1_percent: float | None = None
    l2_percent: float | None = None
    sm_percent: float | None = None
    """Of the peak of the busiest pipe of the multiprocessors."""
    dram_bytes: float | None = None
    occupancy_percent: float | None = None
    """Warps that were there, of those that an SM holds."""
    occupancy_limit_percent: float | None = None
    """Warps that fit, by registers, shared memory and threads."""
    blocks_by_registers: int | None = None
    """Blocks that fit on an SM by its registers alone; the three below likewise."""
    blocks_by_shared: int | None = None
    blocks_by_warps: int | None = None
    blocks_by_slots: int | None = None
    waves: float | None = None
    """Grid over the blocks that the device holds at once."""
    multiprocessors: int | None = None
    active_cycles: float | None = None
    """Mean over the multiprocessors."""
    elapsed_cycles: float | None = None
    issue_percent: float | None = None
    """Cycles in which a scheduler issued."""
    stalls: dict[str, float] = {}
    """Cycles between two instructions of a warp, by what it waited for; ``selected`` issues."""
    threads_active: float | None = None
    """Threads of a warp that take part in an instruction, of 32."""
    load_sectors: float | None = None
    """32-byte sectors of a global load, for each request of a warp; 4 is enough for 4-byte elements."""
    store_sectors: float | None = None
    loaded_sectors: float | None = None
    """Of all global loads together; ``stored_sectors`` likewise."""
    stored_sectors: float | None = None
    load_use_percent: float | None = None
    """Bytes that a thread asked for, of those in the sectors of global loads."""
    store_use_percent: float | None = None
    l1_hit_percent: float | None = None
    l2_hit_percent: float | None = None
    shared_wavefronts: float | None = None
    """Passes through shared memory."""
    load_conflicts: float | None = None
    """Those of them that conflicts of reads added."""
    store_conflicts: float | None = None
    local_load_sectors: float | None = None
    """Sectors of local memory that were read: spilled registers and arrays with computed indices."""
    local_store_sectors: float | None = None
    tensor_percent: float | None = None
    """Of the tensor cores' peak."""
    fma_percent: float | None = None
    """Of the peak of the pipes for fp32 products and sums."""

    @property
    def shared_bytes(self) -> int:
        """Of one block."""
        return self.static_shared_bytes + self.dynamic_shared_bytes

    @property
    def stall(self) -> tuple[str, float]:
        """What warps wait for most, and its share of their time; nothing where stalls were not asked for."""
        waits = {name: cycles for name, cycles in self.stalls.items() if name not in _READY}
        total = sum(self.stalls.values())
        if not waits or not total:
            return "", 0.0
        name = max(waits, key=waits.__getitem__)
        return name, waits[name] / total

    @property
    def limiter(self) -> str:
        """What keeps more blocks off an SM; empty where it is not known."""
        known = {
            "registers": self.blocks_by_registers,
            "shared memory": self.blocks_by_shared,
            "warps": self.blocks_by_warps,
            "block slots": self.blocks_by_slots,
        }
        limits = {name: blocks for name, blocks in known.items() if blocks is not None}
        return min(limits, key=limits.__getitem__) if limits else ""


class KernelTime(_Data):
    """A kernel in a trace."""

    kernel: str
    launches: int
    time_us: float
    """Of all launches together."""
    blocks: int = 0
    threads: int = 0
    """Of the longest launch."""


class CallTime(_Data):
    """A call of the CUDA API in a trace."""

    call: str
    count: int
    time_us: float


class CopyTime(_Data):
    """Copies and fills in a trace, of one kind such as ``HtoD``."""

    kind: str
    count: int
    time_us: float
    nbytes: int = 0


class RangeTime(_Data):
    """Kernels that were launched within an NVTX range, such as a subtask's in the stitched program."""

    name: str
    launches: int
    time_us: float


class SystemProfile(_Data):
    """Where a run's time goes, for each run: kernels, copies, gaps between them, CUDA calls."""

    runs: int
    wall_us: float
    """From the first launch to the end of the device's last work."""
    busy_us: float
    """The device had a kernel, a copy or a fill."""
    launch_us: float
    """Host time in calls that launch kernels or graphs."""
    launches: int
    """Kernels."""
    gaps: int
    """Pauses of the device between two of its activities."""
    gap_us: float
    longest_gap_us: float
    kernels: tuple[KernelTime, ...] = ()
    """By time, longest first; at most 50."""
    calls: tuple[CallTime, ...] = ()
    copies: tuple[CopyTime, ...] = ()
    ranges: tuple[RangeTime, ...] = ()
    """By time; from nsys alone.  Kernels outside of all ranges are PyTorch's own."""

    @property
    def busy_share(self) -> float:
        return self.busy_us / self.wall_us if self.wall_us else 0.0


class Trace(_Data):
    """A system profile and who measured it."""

    system: SystemProfile | None = None
    evidence: Evidence = Evidence.NONE
    why: str = ""
    """Why nobody better did."""


class KernelCode(_Data):
    """What compiler and disassembler say of one kernel."""

    kernel: str
    registers: int = 0
    """Of one thread, by ptxas, as the three below."""
    spill_bytes: int = 0
    """Of one thread, stores and loads."""
    shared_bytes: int = 0
    """Of one block, without what a launch asks for."""
    stack_bytes: int = 0
    tensor: dict[str, int] | None = None
    """Tensor-core instructions in its code by mnemonic, ``HMMA`` or ``HGMMA``; None: not counted."""

    @property
    def tensor_text(self) -> str:
        """``8 HMMA``, or that there are none; empty where nobody counted."""
        if self.tensor is None:
            return ""
        named = ", ".join(f"{count} {name}" for name, count in sorted(self.tensor.items()))
        return named or "no tensor-core instructions"


class Profile(_Data):
    """What was learnt of where a candidate's time goes."""

    evidence: Evidence
    why: str
    """Why this evidence and not better one, or why it was enough: one sentence."""
    tool: str = ""
    """``ncu 2025.3.1``."""
    system: SystemProfile | None = None
    system_evidence: Evidence = Evidence.NONE
    kernels: tuple[KernelProfile, ...] = ()
    """Longest first."""
    code: tuple[KernelCode, ...] = ()
    """The candidate's own kernels, without those of libraries."""
    report: str = ""
    """Path of the ``.ncu-rep``, which Nsight Compute opens."""
    notes: tuple[str, ...] = ()
    """Values that were not believed, metrics that this ncu does not know."""
    seconds: float = 0.0

    def code_of(self, kernel: str) -> KernelCode | None:
        """The code of a kernel as ncu and traces name it; demanglers write a template's arguments apart."""
        same = [code for code in self.code if code.kernel == kernel]
        named = [code for code in self.code if function_name(code.kernel) == function_name(kernel)]
        return same[0] if same else named[0] if len(named) == 1 else None


def function_name(kernel: str) -> str:
    """A kernel without namespaces and template arguments."""
    return kernel.partition("<")[0].rpartition("::")[2]
