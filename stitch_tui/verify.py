"""``stitch verify``: the Verifier alone, on any candidate, against a reference."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stitch_tui.agents.bench import open_bench
from stitch_tui.agents.builtin.roles import work_of
from stitch_tui.agents.diagnosis import Work
from stitch_tui.agents.settings import Settings
from stitch_tui.tools import foreign_toml
from stitch_tui.tools.bundle import read_bundle
from stitch_tui.tools.errors import ExitCode, UsageError
from stitch_tui.tools.graph import Graph, Region, region_of
from stitch_tui.tools.judge import OnEvent
from stitch_tui.tools.paths import cache_dir
from stitch_tui.tools.portability import OnArch, Outcome, across
from stitch_tui.tools.toolkit import find_toolkit
from stitch_tui.tools.verdict import Category, Flag, Verdict
from stitch_tui.tools.verification import verify_program, verify_region


@dataclass(frozen=True)
class Judged:
    """A verdict, and what was judged."""

    verdict: Verdict
    work: Work
    """What the candidate computes, for the rules that diagnose its profile."""


async def verify_file(
    project: Path,
    settings: Settings,
    candidate: Path,
    reference: str,
    on_event: OnEvent | None = None,
    *,
    profile: bool = False,
) -> Judged:
    """Judge a ``.cu`` or a Python file with ``ModelNew``.

    A ``.cu`` in a bundle's ``kernels/`` is held against the nodes that the bundle's plan gives it, any
    other one against the whole reference.  A ``model_new.py`` in a bundle brings its kernels.

    Args:
        profile: look for the bottleneck of a ``.cu`` too, after compute-sanitizer has had its say; of a
            bundle's program, see where its time goes.

    Raises:
        UsageError: the candidate is neither, or is not there.
        StitchError: the reference or this machine is at fault.
    """
    if candidate.suffix not in (".cu", ".py") or not candidate.is_file():
        raise UsageError("no such candidate", where=str(candidate), advice="a .cu, or a .py with ModelNew")
    kernels = _kernels(candidate)
    async with open_bench(project, settings, reference, on_event) as opened:
        bench, whole = opened.bench, opened.exported.graph
        if candidate.suffix == ".cu":
            region = _region(candidate, whole)
            verdict = await verify_region(
                bench,
                candidate,
                region,
                flops=sum(whole.node[name].flops for name in region.nodes),
                bound_us=opened.least_us(region),
                becomes_best=(lambda _: True) if profile else None,
                on_event=on_event,
            )
            return Judged(verdict, work_of(whole, region))
        everything = region_of(whole, whole.node)
        verdict = await verify_program(
            bench,
            candidate,
            kernels,
            flops=sum(node.flops for node in whole.nodes),
            bound_us=opened.least_us(everything),
            small_shapes=not kernels,
            traced_as=opened.options if profile and kernels else None,
            on_event=on_event,
        )
        return Judged(verdict, work_of(whole, everything))


async def verify_across(settings: Settings, candidate: Path, archs: Sequence[str]) -> list[OnArch]:
    """Build a ``.cu``, or the kernels of a bundle's ``model_new.py``, for other architectures.

    Needs nvcc, and neither a GPU nor the reference.

    Raises:
        UsageError: no such candidate, no kernels, or not the names of architectures.
        EnvironmentFault: there is no nvcc.
    """
    if wrong := [arch for arch in archs if not re.fullmatch(r"sm_\d{2,3}[af]?", arch)]:
        raise UsageError(f"{wrong[0] or 'nothing'} is no architecture", advice="such as sm_80,sm_90")
    if not candidate.is_file():
        raise UsageError(
            "no such candidate", where=str(candidate), advice="a .cu, or a bundle's model_new.py"
        )
    sources = [candidate] if candidate.suffix == ".cu" else list(_kernels(candidate).values())
    if not sources:
        raise UsageError("no kernels here to build", where=str(candidate), advice="a .cu, or a model_new.py")
    return await across(sources, archs, await find_toolkit(settings.reference.python), cache_dir("builds"))


def exit_code_across(found: Sequence[OnArch]) -> ExitCode:
    """0: builds everywhere; 1: somewhere not; unproven: the compiler here cannot tell."""
    outcomes = {one.outcome for one in found}
    if Outcome.FALLBACK in outcomes:
        return ExitCode.GOAL_NOT_MET
    return ExitCode.UNPROVEN if Outcome.NOT_RUN in outcomes else ExitCode.GOAL_MET


def exit_code(verdict: Verdict) -> ExitCode:
    """What a script learns from a verdict: 0 only for a candidate that was judged correct and believed."""
    if verdict.category is Category.ENVIRONMENT:
        return ExitCode.ENVIRONMENT
    if verdict.category is Category.UNSUPPORTED or Flag.QUARANTINED in verdict.flags:
        return ExitCode.UNPROVEN
    return ExitCode.GOAL_MET if verdict.correct else ExitCode.GOAL_NOT_MET


def _region(candidate: Path, whole: Graph) -> Region:
    """The nodes that the candidate claims; its bundle's plan says which, if it is in one.

    Raises:
        UsageError: the plan is broken or belongs to another reference.
    """
    plan = candidate.resolve().parent.parent / "plan.toml"
    row: dict[str, Any] = {}
    try:
        if candidate.resolve().parent.name == "kernels" and plan.is_file():
            rows = foreign_toml.loads(plan.read_text(encoding="utf-8")).get("subtask", [])
            row = next((r for r in rows if r.get("kernel") == f"kernels/{candidate.name}"), {})
        region = region_of(whole, row.get("nodes", whole.node))
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(
            "the candidate's nodes are not in this reference",
            where=str(plan if row else candidate),
            why=str(error),
        ) from error
    return region.model_copy(
        update={"ints": tuple(row.get("ints", ())), "floats": tuple(row.get("floats", ()))}
    )


def _kernels(module: Path) -> dict[str, Path]:
    """The kernels of the bundle that `module` is the program of; none for a file that stands alone."""
    folder = module.resolve().parent
    if not (folder / "plan.toml").is_file() or module.name != "model_new.py":
        return {}
    return {k.file: folder / "kernels" / k.file for k in read_bundle(folder).kernels if k.source}
