"""Is a candidate correct?  Trials on small and full shapes, changed inputs, changed weights; cheapest first.

The first failure ends the check.  Nothing here trusts what the candidate says: results are read from
memory that the judge owns and compared with the reference's.
"""

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from . import numerics
from .candidate_fault import CandidateFault, Unsupported
from .distributions import DISTRIBUTIONS, TASK, Distribution, nudged, replaced, reweighted, touched
from .module_call import ModuleCall
from .reference import seed_everything
from .rig import Border, Launch, Rig
from .session import Emit, Json, Session
from .target import Slot, target_of

FULL = "full"
LARGEST = 1e308
"""Stands for an infinite error: JSON has no infinity."""
DETERMINISM_RUNS = 3


class Checked(Protocol):
    """What a check needs of a `target.Target`."""

    inputs: list[Slot]
    outputs: list[Slot]
    ints: list[int]
    floats: list[float]
    random: list[str]
    narrowed: set[str]

    def draw(self, variant: str, seed: int) -> list[Tensor]: ...
    def evaluate(self, tensors: Sequence[Tensor], precision: str, variant: str = FULL) -> list[Tensor]: ...


@dataclass(frozen=True)
class Trials:
    """Which trials to run: the ``trials`` of the method ``check``."""

    small: tuple[str, ...] = ()
    """Names of the small variants."""
    full: int = 2
    """Trials at full size, on the task's own inputs; 0 leaves the full size out (emulator)."""
    distributions: bool = True
    metamorphic: bool = True
    reduction: int = 0
    """Longest sum behind one output element; 0: guessed from the operands' shapes."""


@dataclass
class Report:
    """What a check found, as JSON; see `verdict.Verdict` for the words."""

    category: str = "correct"
    trials: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    raw: list[dict[str, Any]] = field(default_factory=list)
    """The emulator's findings as it wrote them."""
    unchecked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    protections: list[str] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    output: str = ""


def check(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``check``.

    Params: ``target`` (`target.target_of`), ``runner`` (fields of `Launch`), ``trials`` (fields of
    `Trials`; ``small`` left out: every small variant of the reference, or the ``smallest`` so many).
    Event ``trial`` after each.
    """
    wanted = dict(params.get("trials") or {})
    if "small" not in wanted:
        wanted["small"] = _small_variants(session, wanted.pop("smallest", None))
    trials = Trials(**{**wanted, "small": tuple(wanted["small"])})
    launch = Launch.of(params["runner"]).on(session.task.reference.device)
    module = ModuleCall(session.task) if launch.module else None
    return examine(target_of(session.task, params["target"]), launch, trials, emit, module)


def _small_variants(session: Session, count: int | None) -> list[str]:
    """Names of the small variants, all of them or those with the fewest elements."""
    small = {name: variant for name, variant in session.task.variants.items() if name != FULL}
    if count is None:
        return list(small)
    elements = {
        name: sum(math.prod(spec["shape"]) for spec in variant.inputs) for name, variant in small.items()
    }
    return sorted(small, key=elements.__getitem__)[:count]


def examine(
    target: Checked,
    launch: Launch,
    trials: Trials,
    progress: Callable[[str, dict[str, Any]], None],
    module: ModuleCall | None = None,
) -> dict[str, Any]:
    """Run the trials until one fails; returns `Report` as JSON."""
    examination = _Examination(target, launch, trials, progress, module)
    try:
        examination.perform()
    except CandidateFault as fault:
        report = examination.report
        report.category = fault.category
        report.findings.append(fault.as_finding())
        report.raw += fault.raw
    finally:
        examination.close()
    return asdict(examination.report)


def border_of(target: Checked) -> Border:
    """The target's slots as a call's border; state goes by its name in ``state_dict``."""
    return Border(
        inputs=tuple(_name(slot) for slot in target.inputs),
        kinds=tuple(slot.kind for slot in target.inputs),
        outputs=tuple(_name(slot) for slot in target.outputs),
        ints=tuple(target.ints),
        floats=tuple(target.floats),
        mutated=sum(slot.kind == "buffer" for slot in target.outputs),
    )


def _name(slot: Slot) -> str:
    return slot.target if slot.target and slot.kind != "activation" else slot.name


class _Examination:
    def __init__(
        self,
        target: Checked,
        launch: Launch,
        trials: Trials,
        progress: Callable[[str, dict[str, Any]], None],
        module: ModuleCall | None,
    ) -> None:
        self.target, self.trials, self._progress, self._module = target, trials, progress, module
        self.border = border_of(target)
        self.rig = Rig(self.border, launch, module.preface() if module else ())
        self.report = Report()
        self._variant = FULL
        self.report.numbers = {
            "reference_factor": numerics.REFERENCE_FACTOR,
            "epsilon_factor": numerics.EPSILON_FACTOR,
            "condition_factor": numerics.CONDITION_FACTOR,
            "torch": torch.__version__,
        }
        self._previous: list[Tensor] = []
        self._reduction = trials.reduction

    def perform(self) -> None:
        usable = [variant for variant in self.trials.small if self._starts(variant)]
        if not self.trials.small:
            self.report.unchecked.append("small shapes: only the full size was tried")
        if not usable and not self.trials.full:
            raise CandidateFault("unsupported", "the candidate handles none of the small shapes")
        for variant in usable:
            self._distributions(variant, usable)
        if usable:
            self._place(usable[0], secrets.randbits(31))
            self._metamorphic(usable[0])
        if self.trials.full:
            self._full_size(alone=not usable)
        else:
            self.report.unchecked.append("full size: not run on this device")

    def close(self) -> None:
        self.report.protections = self.rig.protections
        self.rig.close()
        self.report.output = self.rig.output
        self.report.notes += self.rig.notes
        self.report.raw += self.rig.warnings
        if self.target.narrowed:
            narrowed = ", ".join(sorted(self.target.narrowed))
            self.report.notes.append(f"no float64 kernel for {narrowed}: the highest precision there is")

    def _starts(self, variant: str) -> bool:
        """The first trial on a variant; False when the candidate does not support its extents."""
        try:
            seed = secrets.randbits(31)
            tensors = self._place(variant, seed)
            self._trial(f"{TASK}/{variant}", seed, tensors)
        except Unsupported:
            self.report.unchecked.append(f"{variant}: the candidate does not support these extents")
            return False
        except CandidateFault as fault:
            # Python code has no way to say that it is made for one shape, other than to raise.
            if self._module is None or fault.category != "launch_error":
                raise
            self.report.unchecked.append(f"{variant}: {fault.message}")
            return False
        return True

    def _place(self, variant: str, seed: int) -> list[Tensor]:
        self._variant = variant
        tensors = self._draw(variant, seed)
        outputs = self._own(tensors, seed)
        if self._module:
            self.rig.arguments = self._module.arguments(variant)
        self.rig.place(tensors, outputs)
        done = self.rig.bind(tensors)
        self.report.numbers["bind_us"] = done.event_us if done.rc == 0 else None
        return tensors

    def _own(self, tensors: list[Tensor], seed: int) -> list[Tensor]:
        """The reference's result; of a random one, the result under `seed`."""
        if self.target.random:
            seed_everything(seed)
            self.rig.seed = seed
        return self.target.evaluate(tensors, "own", self._variant)

    def _truth(self, tensors: list[Tensor], own: list[Tensor]) -> list[Tensor]:
        """The result in float64; a random one has no other truth than its own result."""
        if self.target.random:
            return [t.double() if t.is_floating_point() else t for t in own]
        return self.target.evaluate(tensors, "f64", self._variant)

    def _draw(self, variant: str, seed: int) -> list[Tensor]:
        return [tensor.detach().contiguous() for tensor in self.target.draw(variant, seed)]

    def _distributions(self, variant: str, usable: Sequence[str]) -> None:
        """This variant's share of the made-up inputs."""
        mine = [
            distribution
            for position, distribution in enumerate(DISTRIBUTIONS)
            if self.trials.distributions and usable[position % len(usable)] == variant
        ]
        if not mine:
            return
        base = self._place(variant, secrets.randbits(31))
        for distribution in mine:
            self._made_up(distribution, variant, base)

    def _made_up(self, distribution: Distribution, variant: str, base: list[Tensor]) -> None:
        seed = secrets.randbits(31)
        tensors = replaced(base, self.border.activations, distribution, seed)
        own = self._own(tensors, seed)
        name = f"{distribution.name}/{variant}"
        if distribution.ties and any(not t.is_floating_point() for t in own):
            self.report.notes.append(f"{name} left out: equal elements make an integer result ambiguous")
        elif not any(torch.isfinite(t).any() for t in own if t.is_floating_point() and t.numel()):
            self.report.notes.append(f"{name} left out: the reference's result is not finite anywhere")
        else:
            self._trial(name, seed, tensors, own=own, made_up=True)

    def _metamorphic(self, variant: str) -> None:
        """Changed inputs and weights at the same addresses; the same inputs again and again."""
        seed = secrets.randbits(31)
        tensors = self._draw(variant, seed)
        self._spread(self._trial(f"{TASK}/{variant} again", seed, tensors), tensors)
        if not self.trials.metamorphic:
            return
        changed = [
            touched(tensor, seed) if activation and tensor.is_floating_point() else tensor
            for tensor, activation in zip(tensors, self.border.activations, strict=True)
        ]
        self._trial(f"a few elements changed in place/{variant}", seed, changed, made_up=True)
        if not all(self.border.activations):
            heavier = [
                tensor if activation else reweighted(tensor, kind == "buffer", seed)
                for tensor, activation, kind in zip(
                    tensors, self.border.activations, self.border.kinds, strict=True
                )
            ]
            self.rig.bind(heavier)
            self._trial(f"weights changed in place/{variant}", seed, heavier, made_up=True)

    def _full_size(self, *, alone: bool) -> None:
        try:
            seed = secrets.randbits(31)
            tensors = self._place(FULL, seed)
            self._trial(f"{TASK}/{FULL}", seed, tensors)
            for _ in range(self.trials.full - 1):
                seed = secrets.randbits(31)
                self._trial(f"{TASK}/{FULL}", seed, self._draw(FULL, seed))
            if alone:
                for distribution in DISTRIBUTIONS if self.trials.distributions else ():
                    self._made_up(distribution, FULL, tensors)
                self._metamorphic(FULL)
        except Unsupported:
            raise CandidateFault(
                "unsupported", "the candidate does not support the full-size extents"
            ) from None

    def _trial(
        self,
        name: str,
        seed: int,
        tensors: list[Tensor],
        *,
        own: list[Tensor] | None = None,
        made_up: bool = False,
    ) -> list[Tensor]:
        """One call against the reference; the results when they are right."""
        own = own or self._own(tensors, seed)
        try:
            got, done = self.rig.run(tensors)
        except CandidateFault as fault:
            fault.where = ", ".join(part for part in (name, fault.where) if part)
            raise
        truth = self._truth(tensors, own)
        compared = self._compare(got, own, truth, tensors, 0.0)
        note = ""
        if made_up and not self.target.random and any(c.category == "numerics" for c in compared):
            allowance = self._conditioning(tensors, truth, seed)
            compared = self._compare(got, own, truth, tensors, allowance)
            note = f"ill-conditioned input: rounding it changes the result by {allowance:.2g}"
        self._record(name, seed, compared, note)
        self.report.numbers.setdefault("event_us", {})[name] = done.event_us
        self._previous = got
        return got

    def _compare(
        self,
        got: list[Tensor],
        own: list[Tensor],
        truth: list[Tensor],
        tensors: list[Tensor],
        allowance: float,
    ) -> list[numerics.Comparison]:
        weights = [not activation for activation in self.border.activations]
        reduction = self._reduction or numerics.default_reduction(tensors, weights)
        self.report.numbers["reduction"] = reduction
        return [
            numerics.compare(
                result.to(reference.device),
                reference,
                exact,
                reduction=reduction,
                allowance=allowance,
                lookalikes=self._lookalikes(index, own, tensors),
            )
            for index, (result, reference, exact) in enumerate(zip(got, own, truth, strict=True))
        ]

    def _lookalikes(self, index: int, own: list[Tensor], tensors: list[Tensor]) -> dict[str, Tensor]:
        known = {
            f"output {name}": tensor
            for position, (name, tensor) in enumerate(zip(self.border.outputs, own, strict=True))
            if position != index
        }
        if self._previous:
            known["the previous call's result"] = self._previous[index]
        return known | {f"input {n}": t for n, t in zip(self.border.inputs, tensors, strict=True)}

    def _conditioning(self, tensors: list[Tensor], truth: list[Tensor], seed: int) -> float:
        """How far the exact result moves when every input is rounded once more."""
        moved = self.target.evaluate(nudged(tensors, seed), "f64", self._variant)
        errors = [
            numerics.relative_error(after, before)
            for after, before in zip(moved, truth, strict=True)
            if before.is_floating_point()
        ]
        return numerics.CONDITION_FACTOR * max(errors, default=0.0)

    def _record(self, name: str, seed: int, compared: list[numerics.Comparison], note: str) -> None:
        worst = max(compared, key=lambda c: (not c.passed, c.error / c.limit if c.limit else c.error))
        trial = {
            "name": name,
            "seed": seed,
            "passed": all(c.passed for c in compared),
            "error": min(worst.error, LARGEST),
            "limit": worst.limit,
            "reference_error": worst.reference_error,
            "kernelbench": all(c.kernelbench for c in compared),
            "note": note if all(c.passed for c in compared) else "",
        }
        self.report.trials.append(trial)
        self._progress("trial", trial)
        for output, comparison in zip(self.border.outputs, compared, strict=True):
            if not comparison.passed:
                raise CandidateFault(
                    comparison.category,
                    comparison.message,
                    where=f"{name}, output {output}",
                    detail=comparison.detail,
                )

    def _spread(self, first: list[Tensor], tensors: list[Tensor]) -> None:
        """Largest relative difference between runs on one input; 0 for a deterministic candidate."""
        spread = 0.0
        for _ in range(DETERMINISM_RUNS - 1):
            again, _done = self.rig.run(tensors)
            for one, other in zip(first, again, strict=True):
                if not one.is_floating_point():
                    spread = spread if torch.equal(one, other) else LARGEST
                else:
                    spread = max(spread, numerics.relative_error(other, one.double()))
        self.report.numbers["run_to_run_spread"] = spread
