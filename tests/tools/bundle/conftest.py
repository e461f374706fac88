"""References exported by the judge's own code, bundles written to disk, and kernels on the emulator."""

import asyncio
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from stitch_tui.tools.bundle import Kernel, Program, ReferenceSource, read_bundle, render
from stitch_tui.tools.bundle.emulation import emulated
from stitch_tui.tools.emulator import Emulator, Mode
from stitch_tui.tools.graph import Graph, region_of
from stitch_tui.tools.worker.export import export
from stitch_tui.tools.worker.reference import Options, Reference
from stitch_tui.tools.worker.structure import arguments_of, constants_of, structure_of

KERNELS = Path(__file__).parent / "kernels"
GAINED = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(5))
    def forward(self, x):
        return torch.tanh(F.relu(x) * self.gain)
def get_inputs():
    return [torch.randn(3, 5)]
"""
CHAIN = """
class Model(nn.Module):
    def forward(self, x):
        y = torch.sin(torch.neg(torch.exp(torch.relu(x.t()))))
        return y, torch.cos(y).t()
def get_inputs():
    return [torch.randn(3, 5)]
"""

_numbers = count()


@dataclass
class Case:
    """A reference on disk, its module as the judge has it, and its graph."""

    folder: Path
    source: ReferenceSource
    reference: Reference
    graph: Graph
    inputs: dict[str, Any]
    outputs: Any
    constants: dict[str, Any]

    def program(self, kernels: Sequence[Kernel] = (), **more: Any) -> Program:
        return Program(
            graph=self.graph,
            kernels=tuple(kernels),
            reference=self.source,
            inputs=self.inputs,
            outputs=self.outputs,
            constants=self.constants,
            **more,
        )

    def kernel(self, name: str, ops: Sequence[str], source: str, **more: Any) -> Kernel:
        """A kernel for the nodes of these operators, ``relu`` for ``aten.relu.default``."""
        nodes = [node.id for node in self.graph.nodes if node.op.rpartition(".")[0].rpartition(".")[2] in ops]
        return Kernel(
            id=name, title=" + ".join(ops), region=region_of(self.graph, nodes), source=source, **more
        )

    def model(self, *args: Any) -> torch.nn.Module:
        """The reference, freshly seeded."""
        torch.manual_seed(0)
        return self.reference.loaded.build(*args).train(self.source.mode == "train")


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Case]:
    """Export a reference's source, once for each source and mode."""

    @cache
    def make(source: str, mode: str = "train") -> Case:
        folder = tmp_path_factory.mktemp("case")
        text = f"import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\n{source.strip()}\n"
        (folder / "reference.py").write_text(text)
        reference = Reference.open(Options(project=folder, path="reference.py", mode=mode))
        args = reference.draw_inputs(0)
        exported = export(reference, args)
        by_target = {s["id"]: s["target"] for s in exported.graph["sources"]}
        constants = {by_target[k]: v for k, v in exported.constants.items() if k in by_target}
        reference.set_flags()
        with torch.no_grad():
            result = reference.module(*args)
        return Case(
            folder=folder,
            source=ReferenceSource(text=text, class_name=reference.loaded.class_name, mode=mode),
            reference=reference,
            graph=Graph.model_validate(exported.graph),
            inputs=arguments_of(reference.module, args),
            outputs=structure_of(result),
            constants=constants_of(reference.module, constants),
        )

    return make


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[[Mapping[str, bytes]], Any]]:
    """Write a bundle to disk and import its ``model_new.py``."""
    names = []

    def write(files: Mapping[str, bytes]) -> Any:
        folder = tmp_path / f"stitched{next(_numbers)}"
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        name = f"model_new_{next(_numbers)}"
        spec = importlib.util.spec_from_file_location(name, folder / "model_new.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        names.append(name)
        spec.loader.exec_module(module)
        return module

    yield write
    for name in names:
        del sys.modules[name]


@pytest.fixture
def stitched(load: Callable[[Mapping[str, bytes]], Any]) -> Callable[..., torch.nn.Module]:
    """``ModelNew`` of a case with these kernels, with the weights of `Case.model`."""

    def make(case: Case, kernels: Sequence[Kernel] = (), init: Sequence[Any] = ()) -> torch.nn.Module:
        torch.manual_seed(0)
        model: torch.nn.Module = load(render(case.program(kernels))).ModelNew(*init)
        return model

    return make


@pytest.fixture
def assert_same() -> Callable[[Any, Any], None]:
    """Equal structure and equal tensors, bit for bit unless a tolerance is given."""

    def compare(got: Any, expected: Any, rtol: float = 0.0, atol: float = 0.0) -> None:
        got_leaves, got_spec = pytree.tree_flatten(got)
        leaves, spec = pytree.tree_flatten(expected)
        assert got_spec == spec
        for mine, theirs in zip(got_leaves, leaves, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=rtol, atol=atol)

    return compare


@pytest.fixture
def on_emulator(
    load: Callable[..., Any], emulator: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Mapping[str, bytes]], Any]:
    """The module of a bundle, its kernels built for the emulator from what `read_bundle` finds."""

    def make(files: Mapping[str, bytes]) -> Any:
        sources = {kernel.file: kernel.source for kernel in read_bundle(files).kernels if kernel.source}
        for name, source in sources.items():
            (tmp_path / name).write_text(source)
        paths = {name: tmp_path / name for name in sources}
        ready = asyncio.run(emulated(paths, emulator, tmp_path, mode=Mode.CHECK, front_end="source"))
        assert all(build.ok for build in ready.builds), ready.builds[-1].diagnostics
        for name, value in ready.environment.items():
            monkeypatch.setenv(name, value)
        return load(files)

    return make


@pytest.fixture(scope="session")
def unary() -> Callable[[str], str]:
    """Source of a kernel that computes an expression of ``v`` for each element."""
    text = (KERNELS / "unary.cu").read_text()
    return lambda expression: text.replace("EXPRESSION", expression)


@pytest.fixture(scope="session")
def gained(case: Callable[..., Case]) -> tuple[Case, Program]:
    """One kernel with a weight, workspace, bound memory and attributes, and one node of PyTorch."""
    exported = case(GAINED)
    kernel = exported.kernel("s01", ["relu", "mul"], (KERNELS / "gain.cu").read_text())
    region = kernel.region.model_copy(update={"ints": (7,), "floats": (1.0,)})
    return exported, exported.program([kernel.model_copy(update={"region": region})])


@pytest.fixture(scope="session")
def chain(case: Callable[..., Case], unary: Callable[[str], str]) -> tuple[Case, Program]:
    """A program of kernels that read each other's results."""
    exported = case(CHAIN)
    bodies = {"relu": "v > 0 ? v : 0", "exp": "expf(v)", "neg": "-v", "sin": "sinf(v)", "cos": "cosf(v)"}
    return exported, exported.program(
        [exported.kernel(f"k-{op}", [op], unary(b)) for op, b in bodies.items()]
    )
