"""The trials in order, cheapest first: small shapes, made-up inputs, changed state, full size."""

import secrets
import time
from collections.abc import Sequence

import torch
from torch import Tensor

from .candidate_fault import CandidateFault, Unsupported
from .distributions import DISTRIBUTIONS, REPAIRED, TASK, Distribution, replaced
from .exactness import exact_integers
from .examination import Examination
from .faults import Fault
from .metamorphic import metamorphic
from .variants import FULL

WRONG_RESULTS = ("numerics", "nonfinite")
MORE_CALLS, MORE_CALLS_S = 32, 2.0
"""Calls without kernels ahead of a second trial: at least so many and up to twice as many, within so long."""


def perform(exam: Examination) -> None:
    """Every trial that was asked for.

    Raises:
        CandidateFault: at the first that fails.
    """
    if exam.trials.decorative:
        _without_kernels(exam, exam.trials.small[0] if exam.trials.small else FULL)
        return
    usable = [variant for variant in exam.trials.small if _starts(exam, variant)]
    if not exam.trials.small:
        exam.report.unchecked.append("small shapes: only the full size was tried")
    if not usable and not exam.trials.full:
        raise CandidateFault("unsupported", "the candidate handles none of the small shapes")
    for variant in usable:
        _distributions(exam, variant, usable)
    if usable:
        exam.place(usable[0], secrets.randbits(31))
        metamorphic(exam, usable[0])
        if exam.trials.distributions:
            exact_integers(exam, usable[0])
            _repaired(exam, usable[0])
    if exam.trials.full:
        _full_size(exam, alone=not usable)
    else:
        exam.report.unchecked.append("full size: not run on this device")
    if exam.trials.distributions:
        exam.require_decided()


def _starts(exam: Examination, variant: str) -> bool:
    """The first trial on a variant; False when the candidate does not support its extents."""
    try:
        seed = secrets.randbits(31)
        tensors = exam.place(variant, seed)
        exam.trial(f"{TASK}/{variant}", seed, tensors)
    except Unsupported:
        exam.report.unchecked.append(f"{variant}: the candidate does not support these extents")
        return False
    except CandidateFault as fault:
        # Python code has no way to say that it is made for one shape, other than to raise.
        if exam.module is None or fault.category != "launch_error" or not exam.rig.started:
            raise
        exam.report.unchecked.append(f"{variant}: {fault.message}")
        return False
    return True


def _without_kernels(exam: Examination, variant: str) -> None:
    """At its first call, and after nobody knows how many: who used the kernels once may go on without.

    Raises:
        CandidateFault: neither result is right, as it should be.
    """
    try:
        _starts(exam, variant)
    except CandidateFault as fault:
        if fault.category not in WRONG_RESULTS:
            raise
    else:
        return
    seed, until = secrets.randbits(31), time.monotonic() + MORE_CALLS_S
    tensors = exam.draw(variant, seed)
    for _ in range(secrets.randbelow(MORE_CALLS) + MORE_CALLS):
        exam.rig.run(tensors)
        if time.monotonic() > until:
            break
    exam.trial(f"{TASK}/{variant} later", seed, tensors)


def _distributions(exam: Examination, variant: str, usable: Sequence[str]) -> None:
    """This variant's share of the made-up inputs."""
    mine = [
        distribution
        for position, distribution in enumerate(DISTRIBUTIONS)
        if exam.trials.distributions and usable[position % len(usable)] == variant
    ]
    if not mine:
        return
    base = exam.place(variant, secrets.randbits(31))
    for distribution in mine:
        _made_up(exam, distribution, variant, base)


def _made_up(exam: Examination, distribution: Distribution, variant: str, base: list[Tensor]) -> None:
    seed = secrets.randbits(31)
    tensors = replaced(base, exam.border.activations, distribution, seed)
    own = exam.own(tensors, seed)
    name = f"{distribution.name}/{variant}"
    if distribution.ties and any(not t.is_floating_point() for t in own):
        exam.report.notes.append(f"{name} left out: equal elements make an integer result ambiguous")
    elif not any(torch.isfinite(t).any() for t in own if t.is_floating_point() and t.numel()):
        exam.report.notes.append(f"{name} left out: the reference's result is not finite anywhere")
    else:
        exam.trial(name, seed, tensors, own=own)


def _repaired(exam: Examination, variant: str) -> None:
    """One trial on weights and inputs that let a wrong layer show; the task's own may hide it."""
    seed = secrets.randbits(31)
    exam.place(variant, seed)
    try:
        tensors = [tensor.detach().contiguous() for tensor in exam.target.repaired(variant, seed)]
        own = exam.own(tensors, seed)
    except (Fault, ArithmeticError, IndexError, RuntimeError, ValueError) as error:
        # The reference's own demands on its values (probabilities, labels): nothing of the candidate's.
        exam.report.notes.append(f"{REPAIRED}/{variant} left out: the reference does not run on it: {error}")
        return
    if not any(torch.isfinite(t).any() for t in own if t.is_floating_point() and t.numel()):
        exam.report.notes.append(
            f"{REPAIRED}/{variant} left out: the reference's result is not finite anywhere"
        )
        return
    exam.rig.bind(tensors)
    exam.trial(f"{REPAIRED}/{variant}", seed, tensors, own=own)


def _full_size(exam: Examination, *, alone: bool) -> None:
    try:
        seed = secrets.randbits(31)
        tensors = exam.place(FULL, seed)
        exam.trial(f"{TASK}/{FULL}", seed, tensors)
        for _ in range(exam.trials.full - 1):
            seed = secrets.randbits(31)
            exam.trial(f"{TASK}/{FULL}", seed, exam.draw(FULL, seed))
        if alone:
            for distribution in DISTRIBUTIONS if exam.trials.distributions else ():
                _made_up(exam, distribution, FULL, tensors)
            metamorphic(exam, FULL)
            if exam.trials.distributions:
                exact_integers(exam, FULL)
                _repaired(exam, FULL)
    except Unsupported:
        raise CandidateFault("unsupported", "the candidate does not support the full-size extents") from None
