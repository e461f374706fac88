"""One call of a candidate on disk, so that a process without the judge can repeat it under a tool."""

import math
import secrets
from pathlib import Path

import torch

from . import abi
from .arena import ALIGNMENT, Slot
from .examination import border_of
from .report import FULL
from .rig import FLAGS, placed
from .session import Emit, Json, Session
from .target import target_of

CALL, DATA = "call.txt", "data.bin"
MOST_ELEMENTS = 1 << 20
"""Of inputs, on the shape that is chosen."""


def specimen(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``specimen``: the task's own inputs on a small shape, in a folder.

    The largest of the small shapes that tools a hundred times slower can do: a shape of one element has no
    races.

    Params: ``target``, ``folder``.  Writes the description of the call, in the runner protocol's lines with
    offsets into a file of bytes beside it; results have a place and no bytes.  The result has ``variant``.
    """
    task, folder = session.task, Path(params["folder"])
    sizes = {name: sum(math.prod(spec["shape"]) for spec in v.inputs) for name, v in task.variants.items()}
    small = {name: size for name, size in sizes.items() if name != FULL and size <= MOST_ELEMENTS}
    variant = max(small, key=small.__getitem__) if small else min(sizes, key=sizes.__getitem__)
    seed = secrets.randbits(31)
    target = target_of(task, params["target"])
    tensors = [tensor.detach().contiguous().cpu() for tensor in target.draw(variant, seed)]
    outputs = target.evaluate(target.draw(variant, seed), "own", variant)
    border = border_of(target)
    call = abi.Call(ints=list(border.ints), floats=list(border.floats), rng=(seed if target.random else 0, 0))
    room, end = bytearray(sum(_padded(tensor) for tensor in tensors)), 0
    bytes_of = torch.frombuffer(room, dtype=torch.uint8) if room else torch.empty(0, dtype=torch.uint8)
    for name, kind, tensor in zip(border.inputs, border.kinds, tensors, strict=True):
        slot = Slot(name, end, tensor.numel() * tensor.dtype.itemsize)
        call.ins.append(placed(name, FLAGS.get(kind, 0), slot, tensor))
        bytes_of[slot.offset : slot.end] = tensor.view(-1).view(torch.uint8)
        end += _padded(tensor)
    results = len(outputs) - border.mutated
    for index, (name, like) in enumerate(zip(border.outputs, outputs, strict=True)):
        slot = Slot(name, end, like.numel() * like.dtype.itemsize)
        call.outs.append(placed(name, abi.BUFFER if index >= results else 0, slot, like))
    (folder / DATA).write_bytes(room)
    (folder / CALL).write_text("".join(f"{line}\n" for line in call.lines()))
    return {"variant": variant}


def _padded(tensor: torch.Tensor) -> int:
    """Bytes of the tensor, up to the next aligned one."""
    return -(-tensor.numel() * tensor.dtype.itemsize // ALIGNMENT) * ALIGNMENT
