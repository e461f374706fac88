"""KernelBench's own adversarial candidates, from a checkout of the user's: none may be accepted.

``python -m benchmarks.adversarial --kernelbench CHECKOUT`` needs an NVIDIA GPU and ninja, prints a line for
each, writes ``benchmarks/results/adversarial.json`` and ends with 1 when one was accepted.  CHECKOUT holds
``src/kernelbench/unit_tests/test_kernels/*.py`` and ``KernelBench/level1``; nothing of it is kept here.
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import provenance
from tests.hacks.judging import Court

TASK = "level1/1_Square_matrix_multiplication_.py"
"""What its tests hold them against."""


CONTROL = """
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
torch::Tensor product(torch::Tensor a, torch::Tensor b) { return at::matmul(a, b); }
'''
op = load_inline(name="control", cpp_sources=source, functions=["product"], with_cuda=True)

class ModelNew(nn.Module):
    def forward(self, a, b):
        return op.product(a, b)
"""
"""Correct for sure, so that a machine on which nothing compiles is not taken for a strict one."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kernelbench", type=Path, required=True)
    root = parser.parse_args().kernelbench
    candidates = sorted((root / "src/kernelbench/unit_tests/test_kernels").glob("*_kernel.py"))
    model = (root / "KernelBench" / TASK).read_text()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(len(candidates) + 1) as pool:
        folder = Path(name)
        (folder / "control.py").write_text(CONTROL)
        paths = [folder / "control.py", *candidates]
        control, *rows = pool.map(lambda path: judged(path, model, folder / f"court_{path.stem}"), paths)
    accepted = [row["candidate"] for row in rows if row["category"] == "correct"]
    provenance.write(
        "adversarial",
        {
            "benchmark": "adversarial",
            "commit": provenance.commit(),
            "task": TASK,
            "versions": provenance.versions("torch"),
            "accepted": accepted,
            "control": control,
            "rows": rows,
        },
    )
    return 1 if accepted or not rows or control["category"] != "correct" else 0


def judged(path: Path, model: str, folder: Path) -> dict[str, Any]:
    """One candidate's verdict, each on a judge of its own: compiling takes longest."""
    court, started = Court(folder, model, "cuda:0"), time.monotonic()
    try:
        found = court.module(path)
    finally:
        court.close()
    return {
        "candidate": path.stem,
        "category": found.category,
        "evidence": found.message[:300],
        "questions": list(found.questions),
        "output": found.output[-500:],
        "seconds": round(time.monotonic() - started, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
