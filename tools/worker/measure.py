"""Time each node of the graph alone, on the values that it really meets."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from .cost import tensors_in
from .export import OPAQUE, Exported
from .interpreter import operands, run_node, run_nodes
from .reference import seed_everything
from .session import Emit
from .sources import source_values
from .task import Task

SAMPLES = 5
"""Timed runs of a node, after one that warms up; the median counts."""

_HIDE_LAUNCH_CYCLES = 200_000
"""The device waits this long before the timed call, so that the host's launch time does not count."""


def measure_nodes(task: Task, budget_s: float, emit: Emit) -> dict[str, float]:
    """Median time of each node in microseconds; nodes that the budget does not reach are left out.

    CUDA events on a GPU, wall time on a CPU.  Selections from a tuple cost nothing and are left out; a node
    that gives a view takes no time, whatever the host needs to make it.
    """
    deadline = time.monotonic() + budget_s
    variant, device = task.full, task.reference.device
    task.reference.set_flags()
    seed_everything(task.reference.options.seed)
    if task.unexportable is not None:
        return {OPAQUE: _median_us(lambda: task.run(task.first_args), device, deadline)}
    values = source_values(task.reference, variant.exported, variant.tensors(task.reference.options.seed))
    times: dict[str, float] = {}

    def timed(node: Mapping[str, Any], known: Mapping[str, Any]) -> None:
        if node["op"] != "getitem" and time.monotonic() < deadline:
            view = _is_view(run_node(node, known, device), [known[value] for value in operands(node)])
            call = partial(run_node, node, known, device)
            times[node["id"]] = 0.0 if view else _median_us(call, device, deadline)
            emit("measured", {"node": node["id"], "time_us": times[node["id"]]})

    with torch.no_grad():
        run_nodes(variant.exported.graph["nodes"], values, device, keep=(), before=timed)
    return times


def bounds(exported: Exported, bandwidth: float | None, peak_flops: Mapping[str, float]) -> dict[str, float]:
    """Roofline bound of each node in microseconds: ``max(bytes / bandwidth, flops / peak)``.

    Args:
        bandwidth: bytes/s; None: no bounds.
        peak_flops: operations/s by dtype name of the node's result; a missing dtype bounds nothing.
    """
    if not bandwidth:
        return {}
    return {
        node["id"]: 1e6
        * max(
            node.get("bytes_moved", 0.0) / bandwidth,
            node.get("flops", 0.0) / peak_flops.get(node["outputs"][0]["dtype"], float("inf")),
        )
        for node in exported.graph["nodes"]
    }


def _is_view(result: Any, read: Sequence[Any]) -> bool:
    """Whether a result lies in the memory of an operand."""
    places = {tensor.untyped_storage().data_ptr() for tensor in tensors_in(list(read))}
    found = tensors_in(result)
    return bool(found) and all(t.numel() and t.untyped_storage().data_ptr() in places for t in found)


def _median_us(call: Callable[[], Any], device: torch.device, deadline: float) -> float:
    samples = [once_us(call, device)]
    while len(samples) <= SAMPLES and time.monotonic() < deadline:
        samples.append(once_us(call, device))
    return statistics.median(samples[1:] or samples)


def once_us(call: Callable[[], Any], device: torch.device) -> float:
    """Microseconds of one call: by CUDA events on a GPU, else by the clock on the wall."""
    return _cuda_us(call) if device.type == "cuda" else _wall_us(call)


def _wall_us(call: Callable[[], Any]) -> float:
    started = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - started) / 1e3


def _cuda_us(call: Callable[[], Any]) -> float:
    torch.cuda._sleep(_HIDE_LAUNCH_CYCLES)  # type: ignore[no-untyped-call]
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    start.record()
    call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e3
