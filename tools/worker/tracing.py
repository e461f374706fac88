"""What torch's profiler sees of a few runs through CUPTI: kernels, copies and CUDA calls with their times."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile


def traced(run: Callable[[], Any], file: Path) -> None:
    """Write a Chrome trace of what `run` does, which was warmed up before.

    Only the device's activities: recording PyTorch's operators too would slow the host down.
    """
    torch.cuda.init()  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    gc.collect()
    with profile(activities=[ProfilerActivity.CUDA]) as watched:
        run()
        torch.cuda.synchronize()
    watched.export_chrome_trace(str(file))
