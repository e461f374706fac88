"""What a verifier without suspicion says of a candidate: for comparison with ours, never used by it.

*results*: KernelBench's rule, shape and ``allclose`` on the task's own inputs, in five calls of one process.
*text*: KernelBench's static checker, loaded from a checkout of the user's.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stitch_tui.tools.worker.candidate_fault import CandidateFault
from stitch_tui.tools.worker.examination import border_of
from stitch_tui.tools.worker.launch import Launch
from stitch_tui.tools.worker.numerics import kernelbench_rule
from stitch_tui.tools.worker.rig import Rig
from tests.hacks import judging

CALLS = 5
SECONDS = 60
PROGRAM = """
import importlib.util, sys, torch

def loaded(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

folder, candidate, device, calls = sys.argv[1:]
task = loaded("model", folder + "/model.py")
def made(kind):
    torch.manual_seed(0)
    return kind(*task.get_init_inputs()).to(device)
reference, mine = made(task.Model), made(loaded("candidate", candidate).ModelNew)
def flat(value):
    return [value] if isinstance(value, torch.Tensor) else [t for v in value for t in flat(v)]
good = True
with torch.no_grad():
    for seed in range(int(calls)):
        torch.manual_seed(seed)
        inputs = [t.to(device) for t in task.get_inputs()]
        torch.manual_seed(seed)
        wanted = flat(reference(*inputs))
        torch.manual_seed(seed)
        got = flat(mine(*inputs))
        if "cuda" in device:
            torch.cuda.synchronize()
        for one, other in zip(got, wanted):
            good = good and one.shape == other.shape
            good = good and torch.allclose(one, other, atol=1e-4, rtol=1e-4)
print("passed" if good else "rejected", flush=True)
"""
WRAPPED = '''import torch
from torch import nn
from torch.utils.cpp_extension import load_inline
cuda_source = r"""
{source}
"""
op = load_inline(name="op", cpp_sources="", cuda_sources=cuda_source, functions=["run"])
class ModelNew(nn.Module):
    def forward(self, x):
        return op.run(x)
'''
"""A ``.cu`` in KernelBench's form, as far as text goes."""


class Trusting(Rig):
    """A rig that looks at results only: not at inputs, guard zones, threads or late writes."""

    def _search(self, tensors: Any) -> None:
        pass

    def _left_running(self) -> None:
        pass

    def _late_writes(self) -> None:
        pass


def results_of_library(number: int, folder: Path) -> str:
    """``native.c`` with one hack, already built in `folder`."""
    target = judging.LinearAndSums()
    library = folder / f"hack_{number}.so"
    argv = (sys.executable, str(judging.BOOT), "runner", "host")
    rig = Trusting(border_of(target), Launch(argv, load=str(library), deadline_s=10.0))
    try:
        for seed in range(CALLS):
            tensors = target.draw("full", seed)
            own = target.evaluate(tensors, "own")
            if seed == 0:
                rig.place(tensors, own)
                rig.bind(tensors)
            got, _ = rig.run(tensors)
            if not all(map(kernelbench_rule, got, own)):
                return "rejected"
    except CandidateFault as fault:
        return f"ended: {fault.message[:80]}"
    finally:
        rig.close()
    return "passed"


def results_of_module(path: Path, folder: Path, device: str) -> str:
    """A ``ModelNew`` beside the reference in `folder`, in one process as KernelBench's evaluator does it."""
    command = [sys.executable, "-c", PROGRAM, str(folder), str(path), device, str(CALLS)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        return "ended: it took too long"
    words = done.stdout.split()
    if not words or words[-1] not in ("passed", "rejected"):
        return f"ended: {(done.stderr.strip().splitlines() or ['no word'])[-1][:80]}"
    return words[-1]


def text_checker(kernelbench: Path) -> Callable[[str, str], str]:
    """KernelBench's static checker: ``passed`` or ``rejected: why`` for a text and its suffix."""
    path = kernelbench / "kernelbench" / "kernel_static_checker.py"
    spec = importlib.util.spec_from_file_location("kernel_static_checker", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def checked(text: str, suffix: str) -> str:
        wrapped = WRAPPED.format(source=text) if suffix == ".cu" else text
        valid, errors, _ = module.validate_kernel_static(wrapped, backend="cuda", precision="fp32")
        return "passed" if valid else f"rejected: {'; '.join(sorted(errors))[:120]}"

    return checked
