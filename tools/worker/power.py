"""How wrong may a candidate be before a check notices?  Wrong candidates against a reference's own data.

A wrong candidate is made from the reference itself: constants, another input's result, its input, a lost
tile, a lower precision, a layer with flipped weights.  Two rules are asked, KernelBench's and ours, on the
task's own data; ours once more on repaired data (`repair`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from . import numerics
from .faults import Fault
from .reference import Reference, cast, seed_everything
from .repair import repaired_state, signed_arguments, with_inputs
from .template import tensor_leaves

DRAWS = 2
"""Inputs that a wrong candidate has to get past."""
TILE = 16
MOST_LAYERS = 60
"""Layers whose weights are flipped, evenly spread where there are more."""
SAME = 1e-6
"""Relative difference below which two results are the same: what one rounding explains."""
NOISE = 0.1
"""A reference's own error above which its results are noise: they tell nothing from anything."""
CANCELS = 1e-12
"""The same in float64, where a weak influence would still show."""

State = dict[str, Tensor]
Wrong = Callable[["Trial"], Sequence[Tensor] | None]


@dataclass
class Trial:
    """One input with the reference's result, and what a wrong candidate may know."""

    args: list[Any]
    state: State
    own: list[Tensor]
    truth: list[Tensor]
    other: list[Tensor]
    """The result on another draw: whoever caches results knows it."""


@dataclass
class Power:
    """Names of wrong candidates that each check accepts."""

    candidates: list[str] = field(default_factory=list)
    kernelbench: list[str] = field(default_factory=list)
    task: list[str] = field(default_factory=list)
    """Ours on the task's own data."""
    repaired: list[str] = field(default_factory=list)
    provable: dict[str, str] = field(default_factory=dict)
    """Those that no data could tell apart, and why: they are not wrong."""
    notes: list[str] = field(default_factory=list)

    @property
    def unexplained(self) -> list[str]:
        """Accepted by repaired trials, and not for a reason that can be proved."""
        return [name for name in self.repaired if name not in self.provable]


def power_of(reference: Reference, seed: int) -> Power:
    """Ask every check about every wrong candidate of a deterministic reference.

    Raises:
        Fault: the reference does not run.
    """
    found = Power()
    own = [_trial(reference, seed + 10 * n, None) for n in range(DRAWS)]
    repaired = _repaired(reference, seed, found)
    for name, wrong in wrong_candidates(reference, own[0]):
        found.candidates.append(name)
        if _accepted(reference, wrong, own, _kernelbench):
            found.kernelbench.append(name)
        if _accepted(reference, wrong, own, _ours):
            found.task.append(name)
        if repaired and _accepted(reference, wrong, repaired, _ours):
            found.repaired.append(name)
            if why := _proof(reference, name, repaired, seed):
                found.provable[name] = why
    return found


def wrong_candidates(reference: Reference, trial: Trial) -> Iterator[tuple[str, Wrong]]:
    """What a lazy or mistaken program would return."""
    yield "zeros", lambda t: [torch.zeros_like(result) for result in t.own]
    yield "constant", lambda t: [_constant(result) for result in t.other]
    yield "another input's result", lambda t: t.other
    if _identity(trial) is not None:
        yield "its input", _identity
    yield "a lost tile", lambda t: [_without_tile(result) for result in t.own]
    matrices = [n for n, p in reference.parameters.items() if p.is_floating_point() and p.dim() >= 2]
    if matrices or len([t for t in tensor_leaves(trial.args) if t.is_floating_point()]) > 1:
        for dtype in (torch.float16, torch.bfloat16):
            yield f"{str(dtype).removeprefix('torch.')} operands", _rounded(reference, dtype)
    step = max(1, -(-len(matrices) // MOST_LAYERS))
    for name in matrices[::step]:
        yield f"flipped {name}", _flipped(reference, name)


def _trial(reference: Reference, seed: int, state: State | None) -> Trial:
    """The reference's result on one draw, on the task's data or (with `state`) on repaired data."""
    drawn, others = (reference.draw_inputs(s) for s in (seed, seed + 1))
    if state is not None:
        drawn, others = signed_arguments(drawn, seed), signed_arguments(others, seed + 1)
    values = state or {**reference.parameters, **reference.buffers}
    own = _run(reference, drawn, values)
    return Trial(drawn, values, own, _exact(reference, drawn, values), _run(reference, others, values))


def _repaired(reference: Reference, seed: int, found: Power) -> list[Trial]:
    """Trials on repaired data; none where those tell nothing, and a note why."""
    try:
        args = signed_arguments(reference.draw_inputs(seed), seed)
        state = repaired_state(reference, args, seed)
        trials = [_trial(reference, seed + 10 * n + 5, state) for n in range(DRAWS)]
    except Fault as fault:
        found.notes.append(f"repaired data: {fault.what}: {fault.why}")
        return []
    error = max(numerics.relative_error(r, e) for t in trials for r, e in zip(t.own, t.truth, strict=True))
    if error > NOISE:
        found.notes.append(
            f"repaired data not tried: the reference itself is {error:.2g} from its float64 result, random or"
            " with rounding errors of its own size"
        )
        return []
    if not all(bool(torch.isfinite(r).all()) for t in trials for r in t.own if r.is_floating_point()):
        found.notes.append("repaired data: some results are not finite")
    return trials


def _run(
    reference: Reference, args: Sequence[Any], state: State, dtype: torch.dtype | None = None
) -> list[Tensor]:
    reference.set_flags()
    seed_everything(0)
    return reference.forward(args, state, dtype).outputs


def _exact(reference: Reference, args: Sequence[Any], state: State) -> list[Tensor]:
    """In float64; in the reference's own precision where it does not run so."""
    wide = with_inputs(args, [cast(t, torch.float64) for t in tensor_leaves(list(args))])
    usual = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        return _run(reference, wide, state, torch.float64)
    except Fault:
        torch.set_default_dtype(usual)
        own = _run(reference, args, state)
        return [r.double() if r.is_floating_point() else r for r in own]
    finally:
        torch.set_default_dtype(usual)


def _accepted(
    reference: Reference,
    wrong: Wrong,
    trials: Sequence[Trial],
    rule: Callable[[Reference, Trial, Sequence[Tensor]], bool],
) -> bool:
    for trial in trials:
        try:
            got = wrong(trial)
        except Fault:
            return False
        if got is None or not rule(reference, trial, got):
            return False
    return True


def _kernelbench(reference: Reference, trial: Trial, got: Sequence[Tensor]) -> bool:
    return all(map(numerics.kernelbench_rule, got, trial.own))


def _ours(reference: Reference, trial: Trial, got: Sequence[Tensor]) -> bool:
    tensors = [*tensor_leaves(trial.args), *trial.state.values()]
    weights = [False] * len(tensor_leaves(trial.args)) + [True] * len(trial.state)
    reduction = numerics.default_reduction(tensors, weights)
    return all(
        numerics.compare(result, own, exact, reduction=reduction).passed
        for result, own, exact in zip(got, trial.own, trial.truth, strict=True)
    )


def _proof(reference: Reference, name: str, trials: Sequence[Trial], seed: int) -> str:
    """Why no data could show that candidate to be wrong; empty when there is no such reason.

    Asked in float64: the reference's own rounding errors would hide that a result is always the same.
    """
    first = trials[0]
    if name.startswith("flipped "):
        layer = name.removeprefix("flipped ")
        fresh = repaired_state(reference, first.args, seed + 77)[layer]
        replaced = _exact(reference, first.args, first.state | {layer: fresh})
        if _same(replaced, first.truth):
            return "the layer has no influence on the result"
        flipped = [_exact(reference, t.args, t.state | {layer: -t.state[layer]}) for t in trials]
        cancels = all(_same(f, t.truth, CANCELS) for f, t in zip(flipped, trials, strict=True))
        return "the layer's sign cancels" if cancels else ""
    if name in ("zeros", "constant", "another input's result"):
        far = _exact(reference, signed_arguments(first.args, seed + 99), first.state)
        return "the result does not depend on the input" if _same(far, first.truth) else ""
    if name.endswith("operands"):
        rounded = _exact(reference, *_narrowed(first, torch.float16))
        return "rounding the operands changes nothing" if _same(rounded, first.truth) else ""
    if name == "a lost tile":
        state = repaired_state(reference, first.args, seed + 77)
        far = _run(reference, signed_arguments(first.args, seed + 99), state)
        kept = [r for results in (*(t.own for t in trials), far) for r in results]
        return "the result is zero there" if all(torch.equal(_without_tile(r), r) for r in kept) else ""
    return ""


def _same(one: Sequence[Tensor], other: Sequence[Tensor], within: float = SAME) -> bool:
    return all(
        numerics.relative_error(a, b.double()) <= within if a.is_floating_point() else torch.equal(a, b)
        for a, b in zip(one, other, strict=True)
    )


def _constant(result: Tensor) -> Tensor:
    if not result.is_floating_point():
        return torch.zeros_like(result)
    return torch.full_like(result, float(result.double().nan_to_num().mean()) if result.numel() else 0.0)


def _identity(trial: Trial) -> Sequence[Tensor] | None:
    """An input for each output of its shape and dtype."""
    leaves = tensor_leaves(trial.args)
    found = [
        next((t for t in leaves if t.shape == own.shape and t.dtype == own.dtype), None) for own in trial.own
    ]
    return None if any(t is None for t in found) else [t for t in found if t is not None]


def _without_tile(result: Tensor) -> Tensor:
    """Right, but for the last tile of the last two dimensions in the last sample."""
    lost = result.clone()
    if lost.numel():
        room = lost.reshape(-1, *lost.shape[-2:])[-1] if lost.dim() >= 2 else lost.reshape(1, -1)
        room[-TILE:, -TILE:] = 0
    return lost


def _rounded(reference: Reference, dtype: torch.dtype) -> Wrong:
    """All floating operands rounded to `dtype`, sums as ever: what tensor cores do."""
    return lambda trial: _run(reference, *_narrowed(trial, dtype))


def _narrowed(trial: Trial, dtype: torch.dtype) -> tuple[list[Any], State]:
    """The trial's arguments and state with floating values rounded to `dtype`."""

    def narrow(tensor: Tensor) -> Tensor:
        return tensor.to(dtype).to(tensor.dtype) if tensor.is_floating_point() else tensor

    args = with_inputs(trial.args, [narrow(t) for t in tensor_leaves(trial.args)])
    return args, {name: narrow(value) for name, value in trial.state.items()}


def _flipped(reference: Reference, name: str) -> Wrong:
    return lambda trial: _run(reference, trial.args, trial.state | {name: -trial.state[name]})
