"""References exported by the judge's own code, bundles written to disk, and kernels on the emulator."""

import asyncio
import importlib.util
import json
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

from stitch_tui.tools import worker
from stitch_tui.tools.bundle import Kernel, Program, ReferenceSource, read_bundle, render
from stitch_tui.tools.emulator import Emulator, Mode
from stitch_tui.tools.graph import Graph, region_of
from stitch_tui.tools.worker.export import export
from stitch_tui.tools.worker.reference import Options, Reference
from stitch_tui.tools.worker.structure import arguments_of, constants_of, structure_of

HOST = Path(worker.__file__).parent / "kernel_host.py"

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


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    return Emulator(tmp_path_factory.mktemp("emulator"))


@pytest.fixture
def on_emulator(
    load: Callable[..., Any], emulator: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Mapping[str, bytes]], Any]:
    """The module of a bundle, its kernels built for the emulator from what `read_bundle` finds."""

    async def build(files: Mapping[str, bytes]) -> dict[str, Any]:
        table = {}
        for kernel in read_bundle(files).kernels:
            if kernel.source:
                path = tmp_path / kernel.file
                path.write_text(kernel.source)
                built = await emulator.build(path, Mode.CHECK, front_end="source")
                assert built.ok, built.log
                table[kernel.file] = {"argv": emulator.runner_argv(built), "env": emulator.runner_env()}
        return table

    def make(files: Mapping[str, bytes]) -> Any:
        (tmp_path / "kernels.json").write_text(json.dumps(asyncio.run(build(files))))
        monkeypatch.setenv("STITCH_KERNELS", str(tmp_path / "kernels.json"))
        monkeypatch.setenv("STITCH_HOST", str(HOST))
        return load(files)

    return make
