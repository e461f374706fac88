"""Composite operators that the graph shows as the simpler ones they are made of."""

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch._export.utils

Tensor = torch.Tensor

_COMPOSITE = (
    *("einsum", "broadcast_tensors", "pairwise_distance", "kl_div", "cosine_embedding_loss"),
    *("cross_entropy_loss", "smooth_l1_loss", "huber_loss", "triplet_margin_loss", "mse_loss", "l1_loss"),
    *("margin_ranking_loss", "hinge_embedding_loss", "soft_margin_loss", "poisson_nll_loss"),
    *("binary_cross_entropy", "binary_cross_entropy_with_logits"),
)
"""Taken apart by PyTorch's own definitions."""

_CONVOLUTIONS = (
    *(f"conv{d}d.{overload}" for d in (1, 2, 3) for overload in ("default", "padding")),
    *("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input"),
)
_MEAN, _SUM = 1, 2
"""``at::Reduction``; 0 is none."""


def table(device: torch.device) -> dict[Any, Callable[..., Any]]:
    """Decompositions for ``ExportedProgram.run_decompositions``; operators without one stay whole.

    Args:
        device: on a GPU PyTorch itself adds a convolution's bias by a kernel of its own, so the graph shows
            that it can join what follows.
    """
    return {
        **_by_pytorch(),
        torch.ops.aten.nll_loss_nd.default: _negative_likelihood,
        **(_biases_apart() if device.type == "cuda" else {}),
    }


@functools.cache
def _by_pytorch() -> Mapping[Any, Callable[..., Any]]:
    """PyTorch's own definitions of the composite operators: found once, as that looks at every operator."""
    known = torch.export.default_decompositions()
    operators = [getattr(torch.ops.aten, name).default for name in _COMPOSITE]
    return {op: known[op] for op in operators if op in known}


@contextmanager
def operators_listed_once() -> Iterator[None]:
    """Inside, PyTorch asks its dispatcher once for all composite operators.

    It asks anew for each of its namespaces, some 25: half of what a small graph's export takes.  A PyTorch
    without that function is left as it is.
    """
    owner, name = torch._export.utils, "_materialize_cpp_cia_ops"
    listing = getattr(owner, name, None)
    if listing is None:
        yield
        return
    setattr(owner, name, functools.cache(listing))
    try:
        yield
    finally:
        setattr(owner, name, listing)


def _biases_apart() -> dict[Any, Callable[..., Any]]:
    def apart(convolution: Any) -> Callable[..., Any]:
        def decomposed(
            x: Tensor, weight: Tensor, bias: Tensor | None = None, *more: Any, **named: Any
        ) -> Any:
            if bias is None or x.dim() == weight.dim() - 1:
                return NotImplemented
            shape = (1, -1, *[1] * (weight.dim() - 2))
            return convolution(x, weight, None, *more, **named) + bias.reshape(shape)

        return decomposed

    packets = (name.split(".") for name in _CONVOLUTIONS)
    operators = [getattr(getattr(torch.ops.aten, name), overload) for name, overload in packets]
    return {operator: apart(operator) for operator in operators}


def _negative_likelihood(
    x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = _MEAN, ignore_index: int = -100
) -> Tensor:
    """``nll_loss_nd`` as a look-up, a selection and a reduction; `x` is (N, C, ...), `target` (N, ...)."""
    channels = 1 if x.dim() > 1 else 0
    counted = target != ignore_index
    index = torch.where(counted, target, 0)
    losses = -x.gather(channels, index.unsqueeze(channels)).squeeze(channels)
    if weight is not None:
        losses = losses * weight[index]
    losses = torch.where(counted, losses, 0.0)
    if reduction == _SUM:
        return losses.sum()
    if reduction != _MEAN:
        return losses
    weights = counted.to(x.dtype) if weight is None else torch.where(counted, weight[index], 0.0)
    return losses.sum() / weights.sum()
