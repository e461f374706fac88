"""The built-in Coder: the next strategy for a region as CUDA C++ text, no model involved."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from stitch_tui.agents.builtin import (
    cost,
    emit,
    emit_conv,
    emit_cublas,
    emit_gemm,
    emit_index,
    emit_pointwise,
    emit_pool,
    emit_rows,
    emit_scan,
    emit_tensor_cores,
    library_products,
)
from stitch_tui.agents.builtin.advised import ordered
from stitch_tui.agents.builtin.ir import Kind, NotFusable, Subtask, Tune
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.agents.builtin.variants import left_after, variants
from stitch_tui.agents.state import Disease
from stitch_tui.tools.graph import Graph, Region
from stitch_tui.tools.race import Race


class Writer(Protocol):
    """A module that writes kernels."""

    def source(self, graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str: ...


class Emitter(Writer, Protocol):
    """What a kind of kernel brings: a module with these two functions."""

    def strategies(self, subtask: Subtask) -> list[Tune]: ...


_EMITTER: dict[Kind, Emitter] = {
    Kind.POINTWISE: emit_pointwise,
    Kind.ROWS: emit_rows,
    Kind.GEMM: emit_gemm,
    Kind.CONV: emit_conv,
    Kind.POOL: emit_pool,
    Kind.SCAN: emit_scan,
    Kind.INDEX: emit_index,
}
_LIBRARY: dict[str, Writer] = {emit_cublas.NAME: emit_cublas, emit_tensor_cores.NAME: emit_tensor_cores}


@dataclass(frozen=True)
class Candidate:
    """One attempt at a subtask."""

    source: str
    """Text of the `.cu`."""
    strategy: str
    """Short name, ``tile-64x64x16``."""
    note: str
    """The strategy in a sentence."""


def strategies(subtask: Subtask, device: str = "", *, tf32: bool = False) -> list[Tune]:
    """Every strategy for a subtask, the most promising first.

    Args:
        device: on one whose name begins with ``cuda``, libraries are tried as well, first where they are
            likely to win.
        tf32: the user lets f32 products be computed in TF32.
    """
    own = _EMITTER[subtask.kind].strategies(subtask)
    if subtask.kind is not Kind.GEMM or not device.startswith("cuda"):
        return own
    found = [None if tf32 else emit_tensor_cores.tune(subtask), emit_cublas.tune(subtask, tf32=tf32)]
    libraries = [tune for tune in found if tune]
    return [*libraries, *own] if library_products.is_large(subtask) else [*own, *libraries]


def emit_source(graph: Graph, subtask: Subtask, tune: Tune) -> str:
    """The `.cu` of one strategy; the same arguments give the same bytes."""
    emitter: Writer = _LIBRARY.get(tune.name, _EMITTER[subtask.kind])
    return emit.without_unused(emitter.source(graph, subtask, tune, cost.sentence(graph, subtask.region)))


def reduction_length(graph: Graph, region: Region) -> int:
    """Longest sum behind one element of the result, for the tolerance.

    Raises:
        NotFusable: the region is not one that this Coder writes.
    """
    return lower(graph, region).reduction_length


class BuiltinCoder:
    """Attempts are the strategies of the region's kind, or what a race left; there is nothing to remember."""

    def variants(self, graph: Graph, region: Region, *, device: str = "", most: int) -> list[Candidate]:
        """Up to `most` candidates that differ in their parameters, the likeliest first."""
        try:
            subtask = lower(graph, region)
        except NotFusable:
            return []
        tunes = variants(subtask, strategies(subtask, device))
        return [_candidate(graph, subtask, tune) for tune in tunes[:most]]

    def attempt(
        self,
        graph: Graph,
        region: Region,
        n: int = 0,
        *,
        device: str = "",
        tried: Collection[str] = (),
        disease: Disease | None = None,
        race: Race | None = None,
        found: bool = False,
    ) -> Candidate | None:
        """Candidate number `n` (from 0) of those left, or None when no strategy or no template is left.

        Args:
            device: as for `strategies`.
            tried: names of strategies that had their turn.
            disease: what slows the best one down: strategies that act on it come first.
            race: of the region's variants; unless nobody was timed, attempts are made of its contestants.
            found: one of those that it timed is correct.
        """
        try:
            subtask = lower(graph, region)
        except NotFusable:
            return None
        every = strategies(subtask, device)
        if race is not None and race.times:
            every = left_after(race, variants(subtask, every), found=found)
        tunes = ordered([tune for tune in every if tune.name not in tried], disease)
        return _candidate(graph, subtask, tunes[n]) if n < len(tunes) else None


def _candidate(graph: Graph, subtask: Subtask, tune: Tune) -> Candidate:
    return Candidate(emit_source(graph, subtask, tune), tune.name, tune.sentence)
