"""``stitch verify``: the Verifier alone, on any candidate, against a reference."""

import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from stitch_tui.agents.settings import Settings
from stitch_tui.tools.bundle import read_bundle
from stitch_tui.tools.devices import gpus
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.errors import EnvironmentFault, ExitCode, UsageError
from stitch_tui.tools.graph import Graph, Region, region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.paths import cache_dir
from stitch_tui.tools.reference import ReferenceOptions, graph, open_reference
from stitch_tui.tools.toolkit import find_toolkit
from stitch_tui.tools.verdict import Category, Flag, Verdict
from stitch_tui.tools.verification import Bench, Cuda, verify_program, verify_region

OnEvent = Callable[[str, dict[str, Any]], None]


async def verify_file(
    project: Path, settings: Settings, candidate: Path, reference: str, on_event: OnEvent | None = None
) -> Verdict:
    """Judge a ``.cu`` or a Python file with ``ModelNew``.

    A ``.cu`` in a bundle's ``kernels/`` is held against the nodes that the bundle's plan gives it, any
    other one against the whole reference.  A ``model_new.py`` in a bundle brings its kernels.

    Raises:
        UsageError: the candidate is neither, or is not there.
        StitchError: the reference or this machine is at fault.
    """
    if candidate.suffix not in (".cu", ".py") or not candidate.is_file():
        raise UsageError("no such candidate", where=str(candidate), advice="a .cu, or a .py with ModelNew")
    python = settings.reference.python or sys.executable
    cuda = await _cuda(settings)
    emulator = _emulator(needed=cuda is None)
    async with Judge(python, project) as judge:
        await open_reference(judge, _options(settings, reference, bool(cuda)), on_event)
        bench = Bench(judge, emulator, python=python, cuda=cuda)
        whole = (await graph(judge)).graph
        if candidate.suffix == ".cu":
            region = _region(candidate, whole)
            return await verify_region(
                bench, candidate, region, flops=_flops(whole, region.nodes), on_event=on_event
            )
        kernels = _kernels(candidate)
        flops = _flops(whole, tuple(whole.node))
        return await verify_program(
            bench, candidate, kernels, flops=flops, small_shapes=not kernels, on_event=on_event
        )


def exit_code(verdict: Verdict) -> ExitCode:
    """What a script learns from a verdict: 0 only for a candidate that was judged correct and believed."""
    if verdict.category is Category.ENVIRONMENT:
        return ExitCode.ENVIRONMENT
    if verdict.category is Category.UNSUPPORTED or Flag.QUARANTINED in verdict.flags:
        return ExitCode.UNPROVEN
    return ExitCode.GOAL_MET if verdict.correct else ExitCode.GOAL_NOT_MET


async def _cuda(settings: Settings) -> Cuda | None:
    """The chosen GPU, or None for the emulator.

    Raises:
        EnvironmentFault: a GPU is asked for and there is none, or nvcc is missing.
    """
    device = settings.device
    devices, reason = gpus() if device.kind != "emulator" else ([], "")
    if not devices and device.kind != "cuda":
        return None
    if device.index >= len(devices):
        raise EnvironmentFault(
            f"no CUDA device {device.index}",
            why=reason,
            advice="see `stitch doctor`, or use --device emulator",
        )
    gpu, toolkit = devices[device.index], await find_toolkit(settings.reference.python)
    toolkit.require_nvcc()
    return Cuda(name=gpu.name, arch=device.arch or gpu.arch, toolkit=toolkit, cache=cache_dir("builds"))


def _emulator(needed: bool) -> Emulator | None:
    with suppress(EnvironmentFault):
        return Emulator(cache_dir("emulator"))
    return Emulator(cache_dir("emulator")) if needed else None


def _options(settings: Settings, reference: str, cuda: bool) -> ReferenceOptions:
    shared = settings.reference.model_dump(mode="json", exclude={"path", "python"})
    device = f"cuda:{settings.device.index}" if cuda else "cpu"
    return ReferenceOptions.model_validate({**shared, "path": reference, "device": device})


def _region(candidate: Path, whole: Graph) -> Region:
    """The nodes that the candidate claims; its bundle's plan says which, if it is in one."""
    plan = candidate.resolve().parent.parent / "plan.toml"
    row: dict[str, Any] = {}
    if candidate.resolve().parent.name == "kernels" and plan.is_file():
        rows = tomllib.loads(plan.read_text(encoding="utf-8")).get("subtask", [])
        row = next((r for r in rows if r.get("kernel") == f"kernels/{candidate.name}"), {})
    region = region_of(whole, row.get("nodes", whole.node))
    return region.model_copy(
        update={"ints": tuple(row.get("ints", ())), "floats": tuple(row.get("floats", ()))}
    )


def _kernels(module: Path) -> dict[str, Path]:
    """The kernels of the bundle that `module` is the program of; none for a file that stands alone."""
    folder = module.resolve().parent
    if not (folder / "plan.toml").is_file() or module.name != "model_new.py":
        return {}
    return {k.file: folder / "kernels" / k.file for k in read_bundle(folder).kernels if k.source}


def _flops(whole: Graph, nodes: tuple[str, ...]) -> float:
    return sum(whole.node[name].flops for name in nodes)
