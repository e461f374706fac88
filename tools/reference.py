"""The reference as the engine knows it: open it in a judge, read its graph, its shapes and its times."""

import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.graph import Graph, TensorSpec
from stitch_tui.tools.judge import Judge, OnEvent


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ReferenceTarget(NamedTuple):
    """Where a reference lies: a file or dotted module, and the class in it (empty: ``Model``)."""

    path: str
    name: str


class ReferenceOptions(_Data):
    """How a reference is opened; the fields that settings share have their names."""

    path: str
    """``file.py``, ``file.py:Class`` or ``pkg.mod:Class``."""
    mode: Literal["train", "eval"] = "train"
    dtype: Literal["f32", "f16", "bf16"] = "f32"
    matmul_precision: Literal["highest", "high", "medium"] = "highest"
    allow_tf32_conv: bool = True
    device: str = "cpu"
    """``cpu`` or ``cuda:N``."""
    load_seconds: float = 120.0
    forward_seconds: float = 120.0
    init_seed: int = 0
    """Seed of the parameters."""
    seed: int = Field(default_factory=lambda: secrets.randbelow(2**31))
    """Seed of the first inputs."""


class NamedSpec(_Data):
    """A tensor argument of forward."""

    name: str
    spec: TensorSpec


class Note(_Data):
    """Something about the reference that weakens a verdict."""

    kind: str
    """``reference``, ``empty``, ``nonfinite``, ``zero``, ``constant``, ``nondeterministic``, ``random``,
    ``independent``, ``fixed_inputs``, ``varying_shapes``, ``varying_numbers``, ``unexamined``."""
    text: str


class ReferenceSummary(_Data):
    """What opening a reference tells."""

    path: str
    class_name: str
    source: str
    sha256: str
    inputs: tuple[NamedSpec, ...]
    outputs: tuple[TensorSpec, ...]
    parameters: int
    """Number of parameter elements, shared ones once."""
    parameter_bytes: int
    mutated_buffers: tuple[str, ...]
    flags: dict[str, Any]
    """Mode, dtype and numeric flags in force."""
    environment: dict[str, Any]
    """Versions of Python and torch, device."""
    init_seed: int
    seed: int
    forward_seconds: float
    notes: tuple[Note, ...]


class Opaque(_Data):
    """Why a reference has no graph."""

    why: str
    where: str


class Exported(_Data):
    """The graph at full size; one node with ``op`` ``"opaque"`` when there is a reason for it."""

    graph: Graph
    opaque: Opaque | None = None


class ShapeVariant(_Data):
    """One set of input shapes and the graph for exactly these."""

    name: str
    inputs: tuple[TensorSpec, ...]
    graph: Graph


class ShapeVariants(_Data):
    """All shape variants, ``full`` first, and what could not be varied."""

    variants: tuple[ShapeVariant, ...]
    notes: tuple[str, ...] = ()


_TARGET = re.compile(r"(?P<path>.+?\.py|[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)(:(?P<name>[A-Za-z_]\w*))?")


def parse_target(text: str) -> ReferenceTarget:
    """Split ``file.py``, ``file.py:Class`` or ``pkg.mod:Class``.

    Raises:
        UsageError: it is none of these.
    """
    match = _TARGET.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text!r} does not name a reference",
            advice="file.py, file.py:Class or pkg.mod:Class",
        )
    return ReferenceTarget(match["path"], match["name"] or "")


async def open_reference(
    judge: Judge, options: ReferenceOptions, on_event: OnEvent | None = None
) -> ReferenceSummary:
    """Load, construct and run the reference in `judge`, which holds it from then on.

    Raises:
        ReferenceFault: one clear error for each way in which it can be unusable.
        EnvironmentFault: the device is not there.
    """
    params = parameters(options, judge.project)
    found = await judge.call("open", params, timeout=options.load_seconds, on_event=on_event)
    return ReferenceSummary.model_validate(found)


def parameters(options: ReferenceOptions, project: Path) -> dict[str, Any]:
    """What the judge's method ``open`` takes.

    Raises:
        UsageError: the path does not name a reference.
    """
    target = parse_target(options.path)
    return {
        **options.model_dump(exclude={"path"}),
        "path": target.path,
        "name": target.name,
        "project": str(project),
    }


async def graph(judge: Judge, timeout: float = 600.0) -> Exported:
    """The open reference's graph at full size."""
    return Exported.model_validate(await judge.call("graph", timeout=timeout))


async def variants(judge: Judge, timeout: float = 600.0) -> ShapeVariants:
    """The open reference's shape variants; found when first asked for."""
    return ShapeVariants.model_validate(await judge.call("variants", timeout=timeout))


async def measured(
    judge: Judge,
    graph: Graph,
    *,
    budget_s: float = 30.0,
    bandwidth: float | None = None,
    peak_flops: Mapping[str, float] | None = None,
    on_event: OnEvent | None = None,
) -> Graph:
    """`graph` with the time of each node, and its roofline bound where the device's peaks are given.

    Args:
        budget_s: measuring stops there; nodes not reached keep ``time_us`` None.
        bandwidth: of the device's memory, bytes/s.
        peak_flops: operations/s by dtype name.
    """
    params = {"budget_s": budget_s, "bandwidth": bandwidth, "peak_flops": dict(peak_flops or {})}
    found = await judge.call("measure", params, timeout=budget_s * 3 + 120, on_event=on_event)
    times, bounds = found["time_us"], found["bound_us"]
    nodes = tuple(
        node.model_copy(update={"time_us": times.get(node.id), "bound_us": bounds.get(node.id)})
        for node in graph.nodes
    )
    return graph.model_copy(update={"nodes": nodes})
