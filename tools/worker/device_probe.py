"""Does the device still compute?  Asked before each job: an error of an earlier one may have hurt it."""

import torch

from .faults import Fault

_COUNT = 1024
_SUM = _COUNT * (_COUNT - 1) // 2


def require_device(device: torch.device) -> None:
    """Run a small kernel with a known answer.

    Raises:
        Fault: of kind ``device``, when it fails or is wrong: this process is of no more use.
    """
    if why := lost(device):
        raise Fault("device", f"{device} does not compute any more", why=why)


def lost(device: torch.device) -> str:
    """Why the device does not compute; empty when it does."""
    try:
        found = int(torch.arange(_COUNT, device=device).sum())
    except RuntimeError as error:  # a context that a sticky error has ended raises at every call
        return " ".join(str(error).split())[:300]
    return "" if found == _SUM else f"the sum of {_COUNT} numbers is {found} there, not {_SUM}"
