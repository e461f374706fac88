"""A program as one CUDA graph: the second part of every ``model_new.py``, copied like `loader`."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from stitch_tui.tools.bundle.parts.loader import StitchScratch, stitch_stream

# ------------------------------------------------------------------------------------------------
# The program as one CUDA graph, where that is faster: the same text in every bundle.

STITCH_PATIENCE = 2
STITCH_GAIN = 0.95
STITCH_PACE_SECONDS = 0.01


class StitchReplay:
    """The program on one stream: launched step by step, or as one CUDA graph once that has proved faster.

    A graph has addresses built in.  So inputs are copied to where it reads them and results from where it
    leaves them, and other weights, or weights that are bound anew, need another graph.
    """

    def __init__(self, device: torch.device, arena_bytes: int) -> None:
        self.device, self.arena_bytes = device, arena_bytes
        self.key: Any = None  # the weights that `graph` is right for
        self.patience = self.due = (
            STITCH_PATIENCE  # calls with the same weights ahead of a graph; still to come
        )
        self.graph: torch.cuda.CUDAGraph | None = None
        self.refused = ""  # why there can be no graph: said once
        self.inputs: list[torch.Tensor] = []
        self.results: Any = None

    def __call__(
        self,
        key: Any,
        run: Callable[..., Any],
        inputs: list[torch.Tensor],
        changing: list[torch.Tensor],
    ) -> Any:
        """What ``run(inputs)`` returns; `changing` are the buffers that it changes."""
        if key != self.key:
            self.drop()
            self.key, self.due = key, self.patience
        if self.graph is not None:
            return self.replayed(inputs)
        result = run(inputs)
        self.due -= 1
        if self.due == 0:
            self.patience *= 2  # weights that change again and again get a graph more and more seldom
            kept = [buffer.clone() for buffer in changing]
            self.consider(run, inputs)
            for buffer, value in zip(changing, kept, strict=True):
                buffer.copy_(value)
        return result

    def consider(self, run: Callable[..., Any], inputs: list[torch.Tensor]) -> None:
        """Keep a graph of `run` if it is faster, copies included; where none can be made, warn of it once."""
        try:
            self.capture(run, inputs)
            if self.pace(lambda: self.replayed(inputs)) < STITCH_GAIN * self.pace(lambda: run(inputs)):
                return
        except RuntimeError as error:
            # An operator that waits for the device, or no memory for a second arena.
            torch.cuda.synchronize(self.device)
            self.warn(error)
        self.drop()

    def warn(self, error: RuntimeError) -> None:
        why = next(iter(str(error).splitlines()), "") or type(error).__name__
        if not self.refused:
            text = f"the program is launched step by step: it cannot be captured as a CUDA graph: {why}"
            warnings.warn(text, stacklevel=2)
        self.refused = why

    def drop(self) -> None:
        self.graph, self.inputs, self.results = None, [], None

    def capture(self, run: Callable[..., Any], inputs: list[torch.Tensor]) -> None:
        self.inputs = stitch_places(inputs)
        graph = torch.cuda.CUDAGraph()
        mode, own = "thread_local", torch.cuda.current_stream(self.device)
        # torch leaves its own stream current where a capture fails: `own` is current again in any case.
        with (
            torch.cuda.device(self.device),
            torch.cuda.stream(own),
            torch.cuda.graph(graph, capture_error_mode=mode),
        ):
            scratch = StitchScratch(self.device, stitch_stream(self.device), self.arena_bytes)
            self.results = run(self.inputs, scratch)
        self.graph = graph

    def replayed(self, inputs: list[torch.Tensor]) -> Any:
        assert self.graph is not None
        for place, tensor in zip(self.inputs, inputs, strict=True):
            place.copy_(tensor)
        self.graph.replay()
        return stitch_copied(self.results)

    def pace(self, call: Callable[[], Any]) -> float:
        """Seconds of a call among others, with the host's share: the best of three rounds."""

        def spent(count: int) -> float:
            torch.cuda.synchronize(self.device)
            began = time.perf_counter()
            for _ in range(count):
                call()
            torch.cuda.synchronize(self.device)
            return (time.perf_counter() - began) / count

        count = max(1, min(20, int(STITCH_PACE_SECONDS / spent(1))))
        return min(spent(count) for _ in range(3))


def stitch_places(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Where a graph reads inputs: written by calls in and out of inference mode, whichever made them."""
    with torch.inference_mode(False), torch.no_grad():
        return [tensor.clone() for tensor in inputs]


def stitch_copied(value: Any) -> Any:
    """Results in memory of their own, nested as before."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: stitch_copied(item) for key, item in value.items()}
    return type(value)(map(stitch_copied, value)) if isinstance(value, (tuple, list)) else value
