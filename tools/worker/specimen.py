"""One call of a candidate on disk, so that a process without the judge can repeat it under a tool."""

import math
import secrets
from pathlib import Path

import torch

from . import abi
from .arena import Slot, bytes_of
from .examination import border_of
from .rig import FLAGS, placed
from .session import Emit, Json, Session
from .solo import CALL, DATA, KEPT_BYTES
from .target import target_of
from .task import Task
from .variants import FULL

MOST_ELEMENTS = 1 << 20
"""Of inputs, on a small shape."""


def specimen(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``specimen``: the task's own inputs, in a folder.

    Params: ``target``, ``folder``; ``full``: at full size, else on a small shape.  Writes the description of
    the call, in the runner protocol's lines with offsets into a file of bytes beside it; of a tensor at most
    `KEPT_BYTES` are kept, and results have a place and no bytes.  The result has ``variant``.
    """
    task, folder = session.task, Path(params["folder"])
    variant = FULL if params.get("full") else _small(task)
    seed = secrets.randbits(31)
    target = target_of(task, params["target"])
    outputs = target.evaluate(target.draw(variant, seed), "own", variant)
    border = border_of(target)
    call = abi.Call(ints=list(border.ints), floats=list(border.floats), rng=(seed if target.random else 0, 0))
    with (folder / DATA).open("wb") as data:
        for name, kind, tensor in zip(border.inputs, border.kinds, target.draw(variant, seed), strict=True):
            call.ins.append(_placed(name, FLAGS.get(kind, 0), data.tell(), tensor))
            data.write(_kept(tensor))
        end = data.tell()
    results = len(outputs) - border.mutated
    call.outs = [
        _placed(name, abi.BUFFER if index >= results else 0, end, like)
        for index, (name, like) in enumerate(zip(border.outputs, outputs, strict=True))
    ]
    (folder / CALL).write_text("".join(f"{line}\n" for line in call.lines()))
    return {"variant": variant}


def _small(task: Task) -> str:
    """The largest of the small shapes that tools a hundred times slower can do.

    A shape of one element has no races.
    """
    sizes = {name: sum(math.prod(spec["shape"]) for spec in v.inputs) for name, v in task.variants.items()}
    small = {name: size for name, size in sizes.items() if name != FULL and size <= MOST_ELEMENTS}
    return max(small, key=small.__getitem__) if small else min(sizes, key=sizes.__getitem__)


def _placed(name: str, flags: int, offset: int, like: torch.Tensor) -> abi.Placed:
    return placed(name, flags, Slot(name, offset, like.nbytes), like)


def _kept(tensor: torch.Tensor) -> bytearray:
    """The tensor's first bytes."""
    flat = bytes_of(tensor.detach())[:KEPT_BYTES]
    room = bytearray(flat.numel())
    if room:
        torch.frombuffer(room, dtype=torch.uint8).copy_(flat)
    return room
