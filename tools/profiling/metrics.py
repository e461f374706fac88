"""Which of ncu's metrics answer which question, and what field of a profile each one fills.

Names are those of Nsight Compute's own sections (Nsight Compute documentation, "Metrics Reference"; compute
capability 7.0 and later).
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from stitch_tui.tools.verdict import KernelFacts


class Question(StrEnum):
    """What can be asked of a kernel."""

    LIMITS = "limits"
    """How near it comes to the device's peaks; its launch and occupancy."""
    STALLS = "stalls"
    """What its warps wait for."""
    GLOBAL = "global"
    """How it goes through global memory."""
    TRAFFIC = "traffic"
    """How much of its way through global memory is loads, and how much stores."""
    SHARED = "shared"
    """Conflicts in shared memory."""
    LOCAL = "local"
    """Spilled registers."""
    PIPES = "pipes"
    """Tensor cores and fp32 pipes."""


STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALLS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle",
    "long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction",
    "not_selected", "selected", "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip
FIELDS: Mapping[Question, Mapping[str, str]] = {
    Question.LIMITS: {
        "time_us": "gpu__time_duration.sum",
        "blocks": "launch__grid_size",
        "threads": "launch__block_size",
        "registers": "launch__registers_per_thread",
        "static_shared_bytes": "launch__shared_mem_per_block_static",
        "dynamic_shared_bytes": "launch__shared_mem_per_block_dynamic",
        "memory_percent": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "l1_percent": "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "l2_percent": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        "sm_percent": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "dram_bytes": "dram__bytes.sum",
        "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
        "occupancy_limit_percent": "sm__maximum_warps_per_active_cycle_pct",
        "blocks_by_registers": "launch__occupancy_limit_registers",
        "blocks_by_shared": "launch__occupancy_limit_shared_mem",
        "blocks_by_warps": "launch__occupancy_limit_warps",
        "blocks_by_slots": "launch__occupancy_limit_blocks",
        "waves": "launch__waves_per_multiprocessor",
        "multiprocessors": "device__attribute_multiprocessor_count",
        "active_cycles": "sm__cycles_active.avg",
        "elapsed_cycles": "sm__cycles_elapsed.max",
    },
    Question.STALLS: {
        "issue_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
        "threads_active": "smsp__thread_inst_executed_per_inst_executed.ratio",
        **{f"stalls.{name}": STALL.format(name) for name in STALLS},
    },
    Question.GLOBAL: {
        "load_sectors": "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
        "store_sectors": "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
        "load_use_percent": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
        "store_use_percent": "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
        "l1_hit_percent": "l1tex__t_sector_hit_rate.pct",
        "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    },
    Question.TRAFFIC: {
        "loaded_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "stored_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    },
    Question.SHARED: {
        "shared_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
        "load_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "store_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    },
    Question.LOCAL: {
        "local_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
        "local_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    },
    Question.PIPES: {
        "tensor_percent": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "fma_percent": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    },
}
ADDED = frozenset(
    {
        "time_us", "dram_bytes", "shared_wavefronts", "load_conflicts", "store_conflicts",
        "local_load_sectors", "local_store_sectors", "loaded_sectors", "stored_sectors",
    }
)  # fmt: skip
"""Fields that several launches of a kernel add to; others are averaged by time."""
WHOLE = frozenset(
    {
        "blocks", "threads", "registers", "static_shared_bytes", "dynamic_shared_bytes",
        "blocks_by_registers", "blocks_by_shared", "blocks_by_warps", "blocks_by_slots", "multiprocessors",
    }
)  # fmt: skip
"""Fields that are counts of one launch: the longest speaks for all."""


def questions(source: str, kernels: Sequence[KernelFacts]) -> tuple[Question, ...]:
    """What to ask of a candidate, so that ncu replays its kernels no more often than that takes.

    Args:
        source: its text.
        kernels: what ptxas said of them.
    """
    asked = [Question.LIMITS, Question.STALLS, Question.GLOBAL, Question.TRAFFIC, Question.PIPES]
    if "__shared__" in source:
        asked.append(Question.SHARED)
    if not kernels or any(k.spill_bytes or k.stack_bytes for k in kernels):
        asked.append(Question.LOCAL)
    return tuple(asked)


def metrics(asked: Sequence[Question]) -> tuple[str, ...]:
    """ncu's names of all that those questions want."""
    return tuple(name for question in asked for name in FIELDS[question].values())
