"""One candidate under examination: placed, called, compared with the reference; the trials so far."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from . import conditioning, downgrade, numerics
from .candidate_fault import CandidateFault
from .distributions import EXACT, REPAIRED, TASK
from .launch import Launch
from .module_lines import ModuleLines
from .reference import seed_everything
from .report import LARGEST, Report, Trials
from .rig import Border, Rig
from .slots import Slot, Target
from .variants import FULL

LATE = "the results were written after the call had returned: work that nobody waits for, nor times"
TELLING = (TASK, REPAIRED, EXACT)
"""Trials of which an output must pass one: the others may have a result that is trivial, such as zeros."""
DOWNGRADE_ERROR = 0.3
"""Relative error above which no lower precision explains a result."""


def border_of(target: Target) -> Border:
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


class Examination:
    """One candidate in its rig, and the trials so far; the first wrong result raises."""

    def __init__(
        self,
        target: Target,
        launch: Launch,
        trials: Trials,
        progress: Callable[[str, dict[str, Any]], None],
        module: ModuleLines | None,
    ) -> None:
        self.target, self.trials, self._progress, self.module = target, trials, progress, module
        self.border = border_of(target)
        self.rig = Rig(self.border, launch, module.preface() if module else ())
        self.report = Report()
        self.variant = FULL
        self.report.numbers = {
            "reference_factor": numerics.REFERENCE_FACTOR,
            "epsilon_factor": numerics.EPSILON_FACTOR,
            "condition_factor": numerics.CONDITION_FACTOR,
            "largest_limit": numerics.LARGEST_LIMIT,
            "torch": torch.__version__,
        }
        self.previous: list[Tensor] = []
        self._decided = set[str]()
        """Outputs that a telling trial has found right."""
        self._undecided: dict[str, dict[str, numerics.Comparison]] = {}
        """Output -> the trials that could not tell."""

    def close(self) -> None:
        for output, trials in self._undecided.items():
            names = ", ".join(list(trials)[:3]) + (", ..." if len(trials) > 3 else "")
            self.report.unchecked.append(
                f"output {output}: rounding is too large to tell right from wrong in {names}"
            )
        self.report.protections = self.rig.protections
        self.rig.close()
        self.report.output = self.rig.output
        self.report.notes += self.rig.notes
        self.report.raw += self.rig.warnings
        if self.target.narrowed:
            narrowed = ", ".join(sorted(self.target.narrowed))
            self.report.notes.append(f"no float64 kernel for {narrowed}: the highest precision there is")

    def place(self, variant: str, seed: int, shift: int = 0) -> list[Tensor]:
        """Lay out and bind the variant's tensors under `seed`; `shift` bytes move every address."""
        self.variant = variant
        tensors = self.draw(variant, seed)
        outputs = self.own(tensors, seed)
        count = sum(tensor.numel() for tensor in (*tensors, *outputs))
        self.report.numbers.setdefault("elements", {})[variant] = count
        if self.module:
            self.rig.arguments = self.module.arguments(variant)
        self.rig.place(tensors, outputs, shift)
        done = self.rig.bind(tensors)
        self.report.numbers["bind_us"] = done.event_us if done.rc == 0 else None
        return tensors

    def own(self, tensors: list[Tensor], seed: int) -> list[Tensor]:
        """The reference's result; of a random one, the result under `seed`."""
        if self.target.random:
            seed_everything(seed)
            self.rig.seed = seed
        return self.target.evaluate(tensors, "own", self.variant)

    def _truth(self, tensors: list[Tensor], own: list[Tensor]) -> list[Tensor]:
        """The result in float64; a random one has no other truth than its own result."""
        if self.target.random:
            return [t.double() if t.is_floating_point() else t for t in own]
        return self.target.evaluate(tensors, "f64", self.variant)

    def draw(self, variant: str, seed: int) -> list[Tensor]:
        return [tensor.detach().contiguous() for tensor in self.target.draw(variant, seed)]

    def trial(
        self,
        name: str,
        seed: int,
        tensors: list[Tensor],
        *,
        own: list[Tensor] | None = None,
        quiet: bool = False,
    ) -> list[Tensor]:
        """One call against the reference; the results when they are right.

        Args:
            own: the reference's result, when it is known.
            quiet: one of many: told only when it fails.
        """
        own = own or self.own(tensors, seed)
        try:
            got, done = self.rig.run(tensors)
        except CandidateFault as fault:
            fault.where = ", ".join(part for part in (name, fault.where) if part)
            raise
        truth = self._truth(tensors, own)
        compared = self._compare(got, own, truth, tensors, 0.0)
        note = ""
        if any(not c.passed for c in compared) and self.rig.changes_late(got):
            raise CandidateFault("hack_suspected", LATE, where=name)
        if not self.target.random and any(c.category == "numerics" for c in compared):
            exact = partial(self.target.evaluate, precision="f64", variant=self.variant)
            reduction = self._reduction(tensors)
            allowance = conditioning.allowance(exact, tensors, truth, reduction, seed)
            compared = self._compare(got, own, truth, tensors, allowance)
            note = f"ill-conditioned input: rounding it changes the result by {allowance:.2g}"
        if any(c.category == "numerics" for c in compared) and not self.target.random:
            compared = [
                self._named(index, comparison, got[index], truth[index], tensors)
                for index, comparison in enumerate(compared)
            ]
        self._record(name, seed, compared, note, quiet)
        if not quiet:
            self.report.numbers.setdefault("event_us", {})[name] = done.event_us
        self.previous = got
        return got

    def _named(
        self, index: int, found: numerics.Comparison, got: Tensor, truth: Tensor, tensors: list[Tensor]
    ) -> numerics.Comparison:
        """A failed comparison with the lower precision that explains it, where one does."""
        if found.category != "numerics" or not found.error < DOWNGRADE_ERROR:
            return found
        words, cosine = downgrade.named(
            index,
            got.to(truth.device),
            truth,
            tensors,
            lambda t: self.target.evaluate(t, "f64", self.variant),
        )
        if not words:
            return found
        message = f"silent precision downgrade, the errors are those of {words}: {found.message}"
        detail = {**found.detail, "downgrade": words, "likeness": round(cosine, 3)}
        return replace(found, message=message, detail=detail)

    def _compare(
        self,
        got: list[Tensor],
        own: list[Tensor],
        truth: list[Tensor],
        tensors: list[Tensor],
        allowance: float,
    ) -> list[numerics.Comparison]:
        reduction = self._reduction(tensors)
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

    def _reduction(self, tensors: list[Tensor]) -> int:
        weights = [not activation for activation in self.border.activations]
        known = self.trials.reduction or self.target.reduction(self.variant)
        length = known or numerics.default_reduction(tensors, weights)
        self.report.numbers["reduction"] = length
        return length

    def _lookalikes(self, index: int, own: list[Tensor], tensors: list[Tensor]) -> dict[str, Tensor]:
        known = {
            f"output {name}": tensor
            for position, (name, tensor) in enumerate(zip(self.border.outputs, own, strict=True))
            if position != index
        }
        if self.previous:
            known["the previous call's result"] = self.previous[index]
        return known | {f"input {n}": t for n, t in zip(self.border.inputs, tensors, strict=True)}

    def _record(
        self, name: str, seed: int, compared: list[numerics.Comparison], note: str, quiet: bool
    ) -> None:
        decided = [comparison for comparison in compared if not comparison.undecided]
        for output, comparison in zip(self.border.outputs, compared, strict=True):
            if comparison.undecided:
                self._undecided.setdefault(output, {})[name] = comparison
            elif comparison.passed and name.partition("/")[0] in TELLING:
                self._decided.add(output)
        if decided:
            self._told(name, seed, decided, note, quiet)
        for output, comparison in zip(self.border.outputs, compared, strict=True):
            if comparison.category:
                raise CandidateFault(
                    comparison.category,
                    comparison.message,
                    where=f"{name}, output {output}",
                    detail=comparison.detail,
                )

    def _told(
        self, name: str, seed: int, compared: list[numerics.Comparison], note: str, quiet: bool
    ) -> None:
        worst = max(compared, key=lambda c: (not c.passed, c.error / c.limit if c.limit else c.error))
        passed = all(c.passed for c in compared)
        if quiet and passed:
            return
        trial = {
            "name": name,
            "seed": seed,
            "passed": passed,
            "error": min(worst.error, LARGEST),
            "limit": worst.limit,
            "reference_error": worst.reference_error,
            "kernelbench": all(c.kernelbench for c in compared),
            "note": note if passed else "",
        }
        self.report.trials.append(trial)
        self._progress("trial", trial)

    def require_decided(self) -> None:
        """Raise for an output that no telling trial could decide: rounding is as large as the result.

        Raises:
            CandidateFault: nothing is held against the candidate, and nothing speaks for it.
        """
        for output, trials in self._undecided.items():
            if output not in self._decided:
                name, found = next(iter(trials.items()))
                raise CandidateFault(
                    "unsupported",
                    f"not decidable: output {output} is of the size of its rounding errors (the reference"
                    f" errs by {found.reference_error:.2g} of its scale, the candidate by {found.error:.2g});"
                    " inputs or weights with a larger result, or float64, would tell",
                    where=name,
                )
