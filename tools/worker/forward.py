"""Run the reference alone, for a profiler: ``boot.py forward OPTIONS RUNS``, OPTIONS as JSON.

It is opened anew and runs once to warm up, then RUNS times between ``cuProfilerStart`` and
``cuProfilerStop``.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from .cuda_driver import CudaDriver
from .reference import Options, Reference
from .session import Emit, Json, Session
from .task import Task
from .tracing import traced


def main() -> None:
    told = json.loads(sys.argv[1])
    options = Options(**{**told, "project": Path(told["project"])})
    os.chdir(options.project)
    with warmed_up(Task(Reference.open(options)), int(sys.argv[2])) as run, CudaDriver().profiled():
        run()
        torch.cuda.synchronize()


def trace(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``trace``: the reference through torch's profiler.

    Params: ``file``, which gets a Chrome trace, and ``runs``.
    """
    with warmed_up(session.task, int(params["runs"])) as run:
        traced(run, Path(params["file"]))
    return {}


@contextlib.contextmanager
def warmed_up(task: Task, runs: int) -> Iterator[Callable[[], None]]:
    """The module's own forward pass at full size, `runs` times in a row, after one that warms up.

    Its buffers are as before at the end.
    """
    reference = task.reference
    reference.set_flags()
    kept = {name: value.clone() for name, value in reference.buffers.items()}
    args = reference.draw_inputs(reference.options.seed) if reference.writes_inputs else task.first_args

    def run(times: int = runs) -> None:
        with torch.no_grad():
            for _ in range(times):
                reference.module(*args)

    run(1)
    torch.cuda.synchronize()
    try:
        yield run
    finally:
        with torch.no_grad():
            for name, value in reference.buffers.items():
                value.copy_(kept[name])


if __name__ == "__main__":
    main()
