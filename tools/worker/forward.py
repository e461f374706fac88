"""Run the reference, or a program in its place, for a profiler.

``boot.py forward OPTIONS RUNS [MODULE [TRACE]]`` opens the reference anew with OPTIONS, as JSON.  It, or the
``ModelNew`` of the file MODULE with its weights, runs once to warm up, then RUNS times between
``cuProfilerStart`` and ``cuProfilerStop``; with TRACE torch's profiler watches those runs instead and writes
that file.
"""

import contextlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .cuda_driver import CudaDriver
from .reference import Options, Reference, seed_everything
from .session import Emit, Json, Session
from .task import Task
from .tracing import traced

PROGRAM = "stitch_program"
"""The name that a program's module is imported under."""


def main() -> None:
    told, runs, *files = sys.argv[1:]
    described = json.loads(told)
    options = Options(**{**described, "project": Path(described["project"])})
    os.chdir(options.project)
    task = Task(Reference.open(options))
    module = program_of(task.reference, Path(files[0])) if files else task.reference.module
    with_ranges(sys.modules.get(PROGRAM), torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop)
    with warmed_up(task, module, int(runs)) as run:
        if files[1:]:
            traced(run, Path(files[1]))
            return
        with CudaDriver().profiled():
            run()
            torch.cuda.synchronize()


def trace(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``trace``: the reference through torch's profiler.

    Params: ``file``, which gets a Chrome trace, and ``runs``.
    """
    task: Task = session.task
    with warmed_up(task, task.reference.module, int(params["runs"])) as run:
        traced(run, Path(params["file"]))
    return {}


@contextlib.contextmanager
def warmed_up(task: Task, module: nn.Module, runs: int) -> Iterator[Callable[[], None]]:
    """The module's forward pass at full size, `runs` times in a row, after one that warms up.

    Its buffers are as before at the end.
    """
    reference = task.reference
    reference.set_flags()
    kept = {name: value.clone() for name, value in module.named_buffers()}
    args = reference.draw_inputs(reference.options.seed) if reference.writes_inputs else task.first_args

    def run(times: int = runs) -> None:
        with torch.no_grad():
            for _ in range(times):
                module(*args)

    run(1)
    torch.cuda.synchronize()
    try:
        yield run
    finally:
        with torch.no_grad():
            for name, value in module.named_buffers():
                value.copy_(kept[name])


def with_ranges(program: Any, push: Callable[[str], Any], pop: Callable[[], Any]) -> None:
    """Put an NVTX range with its subtask's name around each call of a bundle's kernel; others have none.

    The program is launched step by step: in a CUDA graph no step is a range, and the runs that decide
    whether one is made would be among those that are traced.
    """
    binding = getattr(program, "StitchBinding", None)
    if binding is None:
        return
    if (replay := getattr(program, "StitchReplay", None)) is not None:
        replay.consider = lambda *_: None
    call = binding.__call__

    def ranged(self: Any, *arguments: Any) -> Any:
        push(self.kernel.id)
        try:
            return call(self, *arguments)
        finally:
            pop()

    binding.__call__ = ranged


def program_of(reference: Reference, path: Path) -> nn.Module:
    """The ``ModelNew`` of a file, constructed as the reference was and given its weights by name."""
    spec = importlib.util.spec_from_file_location(PROGRAM, path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path.name} is not a Python file")
    found = importlib.util.module_from_spec(spec)
    sys.modules[PROGRAM] = found
    spec.loader.exec_module(found)
    arguments = reference.loaded.get_init_inputs
    seed_everything(reference.options.init_seed)
    init = arguments() if arguments is not None else []
    model: nn.Module = found.ModelNew(**init) if isinstance(init, dict) else found.ModelNew(*init)
    model.to(device=reference.device, dtype=reference.options.torch_dtype)
    model.train(reference.options.mode == "train")
    model.load_state_dict(reference.module.state_dict())
    return model.requires_grad_(False)


if __name__ == "__main__":
    main()
