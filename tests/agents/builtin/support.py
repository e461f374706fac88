"""Graphs from modules, and candidates of the built-in Coder run on the emulator against float64."""

import asyncio
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from stitch_tui.agents.builtin import coder
from stitch_tui.agents.builtin.ir import Subtask, Tune
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.agents.builtin.variants import variants
from stitch_tui.tools.emulator import Emulator, Mode
from stitch_tui.tools.graph import Graph, Region, region_of
from stitch_tui.tools.verdict import Finding
from stitch_tui.tools.worker.export import Exported, export
from stitch_tui.tools.worker.faults import Located
from stitch_tui.tools.worker.interpreter import run_nodes
from stitch_tui.tools.worker.loading import Loaded
from stitch_tui.tools.worker.numerics import relative_error, same_kind
from stitch_tui.tools.worker.reference import Options, Reference
from tests.tools.emulator.judge import Call, Ended, running

Tensor = torch.Tensor


@dataclass(frozen=True)
class Traced:
    """A module's graph in both forms, and the values of everything that is not computed."""

    graph: Graph
    exported: Exported
    values: dict[str, Tensor]

    def everything(self) -> Region:
        return region_of(self.graph, self.graph.node)

    def values_at(self, region: Region) -> list[Tensor]:
        """The region's inputs as the module itself meets them."""
        values: dict[str, Any] = dict(self.values)
        run_nodes(self.exported.graph["nodes"], values, torch.device("cpu"), keep=region.inputs)
        return [values[v] for v in region.inputs]

    def truth(self, region: Region, inputs: Sequence[Tensor], *, widen: bool = True) -> list[Tensor]:
        """What the region's nodes make of `inputs`, in float64 or in the module's own precision."""
        wide = [t.double() if widen and t.is_floating_point() else t for t in inputs]
        values: dict[str, Any] = dict(zip(region.inputs, wide, strict=True))
        nodes = [self.exported.nodes[n] for n in region.nodes]
        run_nodes(nodes, values, torch.device("cpu"), widen=widen, keep=region.outputs)
        return [values[v] for v in region.outputs]


def traced(module: torch.nn.Module, *args: Tensor) -> Traced:
    here = Path(__file__)
    loaded = Loaded(here, "Model", type(module), list, list, None, "", "", Located(here.parent))
    reference = Reference(Options(here.parent, here.name), loaded, module)
    exported = export(reference, args)
    state = {**reference.parameters, **reference.buffers}
    graph = Graph.model_validate(exported.graph)
    inputs = iter(args)
    values = {
        s.id: next(inputs) if s.kind == "input" else state.get(s.target, exported.constants.get(s.id))
        for s in graph.sources
    }
    return Traced(graph, exported, values)


def outputs_like(traced: Traced, region: Region, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Empty results of the right shapes and dtypes."""
    shapes = [t.shape for t in traced.truth(region, inputs)]
    dtypes = [t.dtype for t in traced.truth(region, inputs, widen=False)]
    return [torch.empty(s, dtype=d) for s, d in zip(shapes, dtypes, strict=True)]


@dataclass
class Outcome:
    rc: int
    outputs: list[Tensor]
    findings: list[Finding]


def run_source(
    emulator: Emulator,
    folder: Path,
    source: str,
    calls: Sequence[Call],
    mode: Mode = Mode.CHECK,
    order: int = 0,
) -> list[Outcome]:
    """Each call on one build of `source`."""
    path = folder / "candidate.cu"
    path.write_text(source)

    async def run() -> list[Outcome]:
        build = await emulator.build(path, mode)
        assert build.ok, (build.diagnostics, build.log[:2000])
        outcomes = []
        async with running(emulator, build, order=order) as runner:
            for call in calls:
                try:
                    sizes = await runner.call("sizes", call)
                    call.workspace, call.bound = max(0, sizes.workspace), max(0, sizes.bound)
                    if "stitch_bind" in source:
                        assert (await runner.call("bind", call)).rc == 0
                    answer = await runner.call("run", call)
                except Ended as ended:
                    return [*outcomes, Outcome(-1, [], await emulator.locate(build, ended.raw))]
                outcomes.append(Outcome(answer.rc, answer.outputs, await emulator.locate(build, answer.raw)))
        return outcomes

    return asyncio.run(run())


def check(
    emulator: Emulator,
    folder: Path,
    traced: Traced,
    cases: Sequence[Sequence[Tensor]],
    *,
    region: Region | None = None,
    tunes: Sequence[str] = (),
    mode: Mode = Mode.CHECK,
    device: str = "",
) -> Subtask:
    """Every strategy on every case is as exact as PyTorch, by the Verifier's rule.

    Args:
        tunes: names of variants; empty: all strategies.
    """
    region = region or traced.everything()
    subtask = lower(traced.graph, region)
    strategies = coder.strategies(subtask, device)
    for tune in variants(subtask, strategies) if tunes else strategies:
        if not tunes or tune.name in tunes:
            _check_one(emulator, folder, traced, region, subtask, tune, cases, mode)
    return subtask


def _check_one(
    emulator: Emulator,
    folder: Path,
    traced: Traced,
    region: Region,
    subtask: Subtask,
    tune: Tune,
    cases: Sequence[Sequence[Tensor]],
    mode: Mode,
) -> None:
    source = coder.emit_source(traced.graph, subtask, tune)
    calls = [Call(list(case), outputs_like(traced, region, case)) for case in cases]
    outcomes = run_source(emulator, folder, source, calls, mode)
    for case, outcome in zip(cases, outcomes, strict=True):
        at = f"{subtask.title} {tune.name} {[tuple(t.shape) for t in case]}"
        assert not outcome.findings, (at, outcome.findings, source)
        assert outcome.rc == 0, (at, outcome.rc, source)
        wide, own = traced.truth(region, case), traced.truth(region, case, widen=False)
        for got, exact, eager in zip(outcome.outputs, wide, own, strict=True):
            require_close(got, exact, eager, subtask.reduction_length, at)


def require_close(got: Tensor, exact: Tensor, eager: Tensor, length: int, at: str) -> None:
    """``err <= max(4 err(eager), 8 eps sqrt(length))``, errors as the Verifier measures them."""
    assert got.dtype == eager.dtype, at
    assert got.shape == eager.shape, at
    if not got.numel():
        return
    if not got.is_floating_point():
        assert torch.equal(got, eager), (at, got, eager)
        return
    assert same_kind(got, eager, exact).all(), (at, got, eager)
    if not exact.isfinite().any():
        return
    error, eager_error = (relative_error(x, exact) for x in (got, eager))
    limit = max(4 * eager_error, 8 * torch.finfo(got.dtype).eps * length**0.5)
    assert error <= limit, (at, error, limit)


def can_compile(source: str) -> bool:
    """Does nvcc find the libraries' headers that a source includes?  A toolkit may come without them."""
    return all(map(_is_found, re.findall(r"#include <(cu\w+\.h)>", source)))


@cache
def _is_found(header: str) -> bool:
    command = ["nvcc", "-x", "cu", "-E", "-", "-o", "/dev/null"]
    done = subprocess.run(
        command, input=f"#include <{header}>\n", capture_output=True, text=True, check=False
    )
    return done.returncode == 0
