"""Carry a hack's candidate through the Verifier: screen, host runner, module runner, emulator."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from stitch_tui.tools import reference
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.graph import region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.python_screen import screen_module
from stitch_tui.tools.screen import Screen, screen_source
from stitch_tui.tools.verdict import Verdict
from stitch_tui.tools.verification import Bench, verify_program, verify_region
from stitch_tui.tools.worker.checking import Trials, examine
from stitch_tui.tools.worker.rig import Launch
from stitch_tui.tools.worker.target import Slot

from .table import Case, Run

HERE = Path(__file__).parent
TOOLS = HERE.parents[1] / "tools"
BOOT = TOOLS / "worker" / "boot.py"
MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)

    def forward(self, x):
        return torch.relu(self.layer(x)), x.sum(1)

def get_inputs():
    return [torch.rand(24, 33)]

def get_init_inputs():
    return [33]
"""
DROPOUT = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5, training=True)

def get_inputs():
    return [torch.rand(24, 33)]

def get_init_inputs():
    return []
"""
ROWS = {"full": 24, "small_1": 5, "small_2": 1}


class LinearAndSums:
    """relu(x w^T + b) and the row sums of x, as a target of its own."""

    def __init__(self) -> None:
        self.inputs = [
            Slot("x", "activation", torch.float32),
            Slot("p_weight", "parameter", torch.float32, "weight"),
            Slot("p_bias", "parameter", torch.float32, "bias"),
        ]
        self.outputs = [Slot("y", "activation", torch.float32), Slot("s", "activation", torch.float32)]
        self.ints, self.floats, self.random = list[int](), list[float](), list[str]()
        self.narrowed = set[str]()

    def draw(self, variant: str, seed: int) -> list[torch.Tensor]:
        weights, inputs = torch.Generator().manual_seed(0), torch.Generator().manual_seed(seed)
        return [
            torch.rand(ROWS[variant], 33, generator=inputs),
            torch.randn(7, 33, generator=weights),
            torch.randn(7, generator=weights),
        ]

    def evaluate(
        self, tensors: Sequence[torch.Tensor], precision: str, variant: str = "full"
    ) -> list[torch.Tensor]:
        x, weight, bias = [t.double() if precision == "f64" else t for t in tensors]
        return [torch.relu(x @ weight.T + bias), x.sum(1)]

    def reduction(self, variant: str) -> int:
        return 33

    def operators(self) -> set[str]:
        return {"aten.linear.default", "aten.relu.default", "aten.sum.dim_IntList"}


@dataclass(frozen=True)
class Found:
    """What was said of a candidate, whatever carried it."""

    category: str
    message: str
    questions: tuple[str, ...] = ()
    output: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)

    def catches(self, case: Case) -> bool:
        """Is it the category and the evidence that the table asks for?"""
        if case.category == "correct":
            return self.category == "correct" and any(case.words in question for question in self.questions)
        named = self.category == case.category or (not case.category and self.category != "correct")
        return named and (not case.category or case.words in self.message)


def screened(case: Case) -> Found:
    """The static screen alone."""
    path = path_of(case)
    text = path.read_text(encoding="utf-8")
    screen: Screen = (
        screen_module(text, path.name) if path.suffix == ".py" else screen_source(text, path.name)
    )
    first = screen.evidence[0] if screen.evidence else None
    messages = "; ".join(finding.message for finding in screen.evidence)
    return Found(str(first.category) if first else "correct", messages, screen.questions)


def path_of(case: Case) -> Path:
    for candidate in (HERE / "py" / f"{case.name}.py", HERE / "cu" / f"{case.name}.cu"):
        wanted = ".cu" if case.run in (Run.EMULATOR, Run.GPU) else ""
        if candidate.exists() and candidate.suffix.endswith(wanted):
            return candidate
    raise FileNotFoundError(case.name)


def hosted(number: int, folder: Path) -> Found:
    """``native.c`` with one hack, under the host runner."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler, "the host runner's candidates need a C compiler"
    library = folder / f"hack_{number}.so"
    command = [compiler, "-O1", "-w", "-shared", "-fPIC", f"-I{TOOLS / 'include'}", f"-DHACK={number}"]
    subprocess.run([*command, str(HERE / "native.c"), "-o", str(library), "-lpthread"], check=True)
    argv = (sys.executable, str(BOOT), "runner", "host")
    launch = Launch(argv, load=str(library), deadline_s=10.0)
    trials = Trials(small=("small_1", "small_2"), full=2)
    return _found(examine(LinearAndSums(), launch, trials, lambda *_: None))


def _found(report: dict[str, Any]) -> Found:
    message = report["findings"][0]["message"] if report["findings"] else ""
    return Found(report["category"], message, output=report["output"], numbers=report["numbers"])


class Court:
    """A judge with the reference open, and a bench to verify whole candidates on."""

    def __init__(self, folder: Path, model: str = MODEL) -> None:
        self.folder, self.model = folder, model
        self._loop = asyncio.Runner()
        self._judge = Judge(sys.executable, folder)
        self._loop.run(self._open())

    async def _open(self) -> None:
        (self.folder / "model.py").write_text(self.model)
        await self._judge.start()
        await reference.open_reference(self._judge, reference.ReferenceOptions(path="model.py"))
        self.graph = (await reference.graph(self._judge)).graph
        emulator = Emulator(self.folder / "cache")
        self.bench = Bench(self._judge, emulator, python=sys.executable, deadline_s=20.0)

    def module(self, path: Path, *, small_shapes: bool = True) -> Found:
        """A ``ModelNew`` file, judged as a program."""
        return self._said(verify_program(self.bench, path, small_shapes=small_shapes))

    def kernel(self, path: Path, output: int = 0) -> Found:
        """A ``.cu``, judged against the nodes behind one output."""
        wanted, nodes = {self.graph.outputs[output]}, []
        for node in reversed(self.graph.nodes):
            if node.id in wanted:
                nodes.append(node.id)
                wanted |= set(node.operands)
        return self._said(verify_region(self.bench, path, region_of(self.graph, nodes[::-1])))

    def _said(self, verification: Any) -> Found:
        verdict: Verdict = self._loop.run(verification)
        return Found(
            str(verdict.category),
            verdict.summary,
            tuple(verdict.numbers.get("questions", ())),
            str(verdict.numbers.get("output", "")),
            verdict.numbers,
        )

    def close(self) -> None:
        self._loop.run(self._judge.close())
        self._loop.close()
