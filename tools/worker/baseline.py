"""Time the reference itself for the judge: ``boot.py baseline FD``, one process for each baseline.

Loads the reference anew, so that nothing a candidate or another baseline did can touch it; answers the
``burst`` lines of the runner protocol.
"""

import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .device_clock import Clock, evict
from .reference import Options, Reference
from .region_module import region_module
from .region_target import RegionTarget
from .samples import FILLS_AHEAD, SETS
from .target import target_of
from .task import Task
from .variants import FULL

_PR_SET_PDEATHSIG = 1
MEMORY_SHARE = 0.04
"""Of the free device memory, for the inputs of one baseline: there are up to ten beside a candidate."""


@dataclass(frozen=True)
class Kind:
    """How a baseline runs the reference."""

    compiled: Mapping[str, Any] | None = None
    """Arguments of ``torch.compile``; None: not compiled."""
    matmul_precision: str = ""
    """Of its float32 products; empty: the reference's own, as for every other flag."""


KINDS = {
    "eager": Kind(),
    "compile": Kind({}),
    "compile-reduce-overhead": Kind({"mode": "reduce-overhead"}),
    "eager-high": Kind(matmul_precision="high"),
    "compile-high": Kind({}, matmul_precision="high"),
}
USUAL = tuple(name for name, kind in KINDS.items() if not kind.matmul_precision)
"""Under the reference's own flags: what a speedup is claimed over."""
LOWER = tuple(name for name in KINDS if name not in USUAL)
"""In TF32 where the reference multiplies in float32: shown beside the others, never claimed over."""
PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "einsum", "scaled_dot_product_attention"}
PRODUCTS |= {"lstm", "gru", "rnn_tanh", "rnn_relu", "opaque"}
"""Operators whose float32 products ``matmul_precision`` rules, by their ATen name; ``opaque``: who knows."""


def kinds_for(own: Options, operators: Set[str]) -> tuple[str, ...]:
    """The baselines of a target with those operators: `LOWER` too where products have precision to lose."""
    names = {name.split(".")[1] if "." in name else name for name in operators}
    multiplies = own.dtype == "f32" and own.matmul_precision == "highest" and names & PRODUCTS
    return (*USUAL, *LOWER) if multiplies else USUAL


class Baseline:
    """One way to run the target, on rotating inputs."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        kind = KINDS[description["kind"]]
        given = dict(description["options"])
        if kind.matmul_precision:
            given["matmul_precision"] = kind.matmul_precision
        options = Options(**{**given, "project": Path(given["project"])})
        os.chdir(options.project)
        task = Task(Reference.open(options))
        self.device = task.reference.device
        target = target_of(task, description["target"])
        drawn = [t.detach().contiguous() for t in target.draw(FULL, description["seed"])]
        moving = [place for place, slot in enumerate(target.inputs) if slot.kind == "activation"]
        self._values = [drawn[place].clone() for place in moving]
        draws = [self._copied(drawn, moving) for _ in range(self._affordable())]
        self._moving = [[draw[place] for place in moving] for draw in draws]
        self._call, self._sets = self._prepared(task, target, draws)
        self._fills = FILLS_AHEAD if isinstance(target, RegionTarget) else 1
        if kind.compiled is not None:
            self._call = torch.compile(self._call, **kind.compiled)
        self._compiled = kind.compiled is not None

    def _affordable(self) -> int:
        """As many sets of inputs as a candidate has, fewer where the device's memory is short."""
        if self.device.type != "cuda":
            return SETS
        nbytes = sum(t.nbytes for t in self._values)
        free, _ = torch.cuda.mem_get_info(self.device)
        return max(1, min(SETS, int(MEMORY_SHARE * free / max(1, nbytes))))

    @staticmethod
    def _copied(drawn: Sequence[Tensor], moving: Sequence[int]) -> list[Tensor]:
        """A set with activations of its own, and the weights of all."""
        return [tensor.clone() if place in moving else tensor for place, tensor in enumerate(drawn)]

    def _prepared(
        self, task: Task, target: Any, draws: Sequence[list[Tensor]]
    ) -> tuple[Callable[..., Any], list[list[Any]]]:
        """The function to time and its arguments for each rotation."""
        task.reference.set_flags()
        if isinstance(target, RegionTarget):
            nodes = [task.full.exported.nodes[node] for node in target.region["nodes"]]
            module = region_module(nodes, target.region["inputs"], target.region["outputs"], self.device)
            return module, [list(tensors) for tensors in draws]
        count = len(task.full.inputs)
        return task.reference.module, [task.full.template.fill(tensors[:count]) for tensors in draws]

    def burst(self, count: int, cold: bool) -> list[float]:
        """Event times of `count` calls, microseconds.

        Inputs of cold ones come right ahead, as a candidate's do: what the host does meanwhile is not timed.
        """
        clocks = []
        with torch.no_grad():
            for launch in range(count):
                if self._compiled:
                    torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
                number = launch % len(self._sets)
                if cold:
                    if self._values:
                        torch._foreach_copy_(self._moving[number], self._values)
                    evict(self.device, self._fills)
                clock = Clock(self.device)
                clock.start()
                self._call(*self._sets[number])
                clock.stop()
                clocks.append(clock)
        return [clock.elapsed_us() for clock in clocks]


def main() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # one that rests would outlive the judge
    channel = socket.socket(fileno=int(sys.argv[-1]))
    reader = channel.makefile("r", encoding="utf-8", newline="\n")
    baseline: Baseline | None = None
    while line := reader.readline():
        verb, _, rest = line.rstrip("\n").partition(" ")
        if verb == "baseline":
            try:
                baseline = Baseline(json.loads(rest))
                baseline.burst(2, cold=False)
            except Exception as error:
                message = " ".join(str(error).split())[:400]
                channel.sendall(f"error environment {type(error).__name__}: {message}\n".encode())
                return
            channel.sendall(f"ready 1 {os.getpid()}\n".encode())
        elif verb == "burst" and baseline:
            nonce, count, mode = rest.split()
            times = " ".join(f"{time:.3f}" for time in baseline.burst(int(count), mode == "cold"))
            channel.sendall(f"times {nonce} {times}\ndone {nonce} 0 0 0 0 0\n".encode())
        elif verb == "quit":
            return


if __name__ == "__main__":
    main()
