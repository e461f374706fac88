"""Device memory that a candidate holds beyond all reason, so that nothing else can run."""

from collections.abc import Callable

import torch

from .candidate_fault import CandidateFault
from .faults import Fault

FULL_SHARE = 0.03
"""Of the device's memory: with less left nobody else can work."""
HOARD_SHARE = 0.25
"""Of the device's memory: less than this, given back by the candidate's end, is not what filled it."""


def require_room(device: torch.device, end: Callable[[], None]) -> None:
    """Raise when the device's memory is full; `end` ends the candidate, and what comes free was its.

    Raises:
        CandidateFault: it was the candidate that filled it.
        Fault: it was somebody else.
    """
    if device.type != "cuda":
        return
    left, total = torch.cuda.mem_get_info(device)
    if left >= FULL_SHARE * total:
        return
    end()
    held = torch.cuda.mem_get_info(device)[0] - left
    if held < HOARD_SHARE * total:
        raise Fault("memory", "the device's memory is full", why=f"{left >> 20} MiB are left")
    raise CandidateFault(
        "out_of_memory_gpu",
        f"the candidate holds {held / 2**30:.1f} GiB of device memory and leaves {left >> 20} MiB",
    )
