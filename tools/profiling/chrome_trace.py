"""A Chrome trace of torch's profiler (CUPTI) as spans."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stitch_tui.tools.profiling.ncu_csv import Unreadable, base_name
from stitch_tui.tools.profiling.spans import Span, Spans

_CALLS = ("cuda_runtime", "cuda_driver")


def read_trace(path: Path) -> Spans:
    """The device's and the CUDA API's spans.

    Raises:
        Unreadable: it is no trace.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
        events = [event for event in told if event.get("ph") == "X"]
        return Spans(
            kernels=[_kernel(event) for event in events if event.get("cat") == "kernel"],
            copies=[_copy(event) for event in events if event.get("cat") in ("gpu_memcpy", "gpu_memset")],
            calls=[_span(event, event["name"]) for event in events if event.get("cat") in _CALLS],
        )
    except (OSError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise Unreadable(f"torch's profiler left no trace: {type(error).__name__}: {error}") from error


def _span(event: Mapping[str, Any], name: str, **more: Any) -> Span:
    start, length = float(event["ts"]) * 1e3, float(event["dur"]) * 1e3
    return Span(name, start, start + length, **more)


def _kernel(event: Mapping[str, Any]) -> Span:
    about = event.get("args", {})
    sizes = [math.prod(map(int, about.get(name, ()))) for name in ("grid", "block")]
    return _span(event, base_name(event["name"]), blocks=sizes[0], threads=sizes[1])


def _copy(event: Mapping[str, Any]) -> Span:
    kind = "fill" if event["cat"] == "gpu_memset" else event["name"].split()[1]
    return _span(event, kind, nbytes=int(event.get("args", {}).get("bytes", 0)))
