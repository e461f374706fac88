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

from stitch_tui.tools import launches, reference
from stitch_tui.tools.build import build_cuda
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.gpu import devices
from stitch_tui.tools.graph import Region, region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.python_screen import screen_module
from stitch_tui.tools.screen import Screen, screen_source
from stitch_tui.tools.timing import medians, speedup
from stitch_tui.tools.toolkit import find_toolkit
from stitch_tui.tools.verdict import Verdict
from stitch_tui.tools.verification import Bench, Cuda, verify_program, verify_region
from stitch_tui.tools.worker.checking import examine
from stitch_tui.tools.worker.launch import Launch
from stitch_tui.tools.worker.report import Trials
from stitch_tui.tools.worker.slots import Slot

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
RELU = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.rand(24, 33)]

def get_init_inputs():
    return []
"""
ZERO = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)

    def forward(self, x):
        largest = self.layer(x).max(1, keepdim=True).values
        return nn.functional.gelu(largest - largest.mean(1, keepdim=True))

def get_inputs():
    return [torch.rand(24, 33)]

def get_init_inputs():
    return [33]
"""
ROWS_OF_WEIGHTS = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1024, 4096, bias=False)

    def forward(self, x):
        return self.layer(x)

def get_inputs():
    return [torch.randn(1, 1024)]

def get_init_inputs():
    return []
"""
MODELS = {"28_dropout": DROPOUT, "13_identity": RELU, "13_zeros": ZERO, "22_pinned": ROWS_OF_WEIGHTS}
"""References of the candidates that do not fit `MODEL`."""
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

    def repaired(self, variant: str, seed: int) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        return [torch.randn(t.shape, generator=generator) for t in self.draw(variant, seed)]

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
        if self.category == "environment":
            return False
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


def device_source(number: int) -> str:
    """``device.cu`` with one hack."""
    return f"#define HACK {number}\n{(HERE / 'cu' / 'device.cu').read_text(encoding='utf-8')}"


def path_of(case: Case) -> Path:
    if not case.name:
        return HERE / "cu" / "device.cu" if case.run is Run.DEVICE else HERE / "native.c"
    for candidate in (HERE / "py" / f"{case.name}.py", HERE / "cu" / f"{case.name}.cu"):
        wanted = ".cu" if case.run is Run.EMULATOR else ""
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
    """A judge with the reference open, and a bench to verify whole candidates on.

    Args:
        device: ``cpu``, where the emulator judges, or ``cuda:0``, where a GPU does and no emulator helps.
        builds: the cache of nvcc's builds; None: one beside the folder.
    """

    def __init__(
        self, folder: Path, model: str = MODEL, device: str = "cpu", builds: Path | None = None
    ) -> None:
        self.folder, self.model, self.device = folder, model, device
        self.builds = builds or folder.parent / "builds"
        self._loop = asyncio.Runner()
        self._judge = Judge(sys.executable, folder)
        self._loop.run(self._open())

    async def _open(self) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "model.py").write_text(self.model)
        await self._judge.start()
        options = reference.ReferenceOptions(path="model.py", device=self.device)
        self.notes = tuple(note.text for note in (await reference.open_reference(self._judge, options)).notes)
        self.graph = (await reference.graph(self._judge)).graph
        emulator = Emulator(self.folder / "cache") if self.device == "cpu" else None
        cuda = None if emulator else await self._cuda()
        self.bench = Bench(self._judge, emulator, python=sys.executable, cuda=cuda, deadline_s=20.0)

    async def _cuda(self) -> Cuda:
        gpu, toolkit = devices()[0], await find_toolkit()
        timing = {"baselines": ["eager"], "blocks": 6}
        return Cuda(gpu.name, gpu.arch, toolkit, self.builds, uuid=gpu.uuid, timing=timing)

    def module(
        self, path: Path, *, small_shapes: bool = True, time_it: bool = False, beside: bool = False
    ) -> Found:
        """A ``ModelNew`` file, judged as a program; `beside` the reference."""
        if beside:
            path = Path(shutil.copy(path, self.folder))
        return self._said(verify_program(self.bench, path, small_shapes=small_shapes, time_it=time_it))

    def kernel(self, path: Path, output: int = 0, *, time_it: bool = False) -> Found:
        """A ``.cu``, judged against the nodes behind one output."""
        return self._said(verify_region(self.bench, path, self._region(output), time_it=time_it))

    def numbered(self, number: int) -> Found:
        """``device.cu`` with one hack, judged against the whole reference."""
        source = self.folder / f"hack_{number:02}.cu"
        source.write_text(device_source(number))
        whole = region_of(self.graph, self.graph.node)
        return self._said(verify_region(self.bench, source, whole, time_it=False))

    def pinned(self, path: Path) -> Found:
        """A ``.cu`` with and without PINNED, timed in the same blocks: does pinning gain anything?"""
        return self._loop.run(self._pinned(path))

    async def _pinned(self, path: Path) -> Found:
        cuda = self.bench.cuda
        assert cuda
        runners = {}
        for name, head in (("pinned", "#define PINNED 1\n"), ("plain", "")):
            source = self.folder / f"{name}.cu"
            source.write_text(head + path.read_text())
            build = await build_cuda(source, arch=cuda.arch, toolkit=cuda.toolkit, cache=cuda.cache)
            assert build.ok, build.diagnostics
            runners[name] = launches.on_gpu(self.bench, build)
        target = {"kind": "region", "region": self._region(0).model_dump(mode="json")}
        params = {
            "target": target,
            "runner": runners["pinned"],
            "rivals": {"plain": runners["plain"]},
            "options": {"baselines": []},
        }
        report = await self._judge.call("time", params, timeout=120)
        if report["category"] != "correct":
            return _found(report | {"output": "", "numbers": {}})
        blocks = report["blocks"]
        found = speedup(medians(blocks["plain"]), medians(blocks["candidate"]))
        words = f"{found.value:.3f}x with pinned weights: {found.verdict}"
        gains = "gains nothing, " if found.verdict != "faster" else ""
        return Found("correct", words, (gains + words,))

    def _region(self, output: int) -> Region:
        wanted, nodes = {self.graph.outputs[output]}, []
        for node in reversed(self.graph.nodes):
            if node.id in wanted:
                nodes.append(node.id)
                wanted |= set(node.operands)
        return region_of(self.graph, nodes[::-1])

    def _said(self, verification: Any) -> Found:
        verdict: Verdict = self._loop.run(verification)
        return Found(
            str(verdict.category),
            verdict.summary,
            (*verdict.numbers.get("questions", ()), *self.notes),
            str(verdict.numbers.get("output", "")),
            verdict.numbers,
        )

    def close(self) -> None:
        self._loop.run(self._judge.close())
        self._loop.close()
