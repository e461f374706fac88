"""A candidate on several sets of inputs, so that timed launches rotate through buffers whose values change.

Before every burst each set gets new values at its old addresses, and the launches of a short burst come to
each set once, in an order that nobody knows before: a result that was kept from another launch, or computed
ahead between two, is the wrong one.
"""

import secrets
from collections.abc import Sequence

import torch
from torch import Tensor

from .abi import Call
from .answers import Done
from .arena import fill_guards, poison, view
from .channel import Channel
from .rig import Rig

MOVED_SHARE = 100
"""One element in so many moves half way to another of the tensor, beside all being moved: sums change too."""


class TimedRig(Rig):
    """A `Rig` whose bursts rotate; weights, workspace and bound memory are shared by all sets."""

    def prepare(
        self,
        tensors: Sequence[Tensor],
        outputs: Sequence[Tensor],
        sets: int = 1,
        others: Sequence[Sequence[Tensor]] = (),
    ) -> Done:
        """Place `sets` sets of inputs, define them, bind the weights; the answer is that of bind.

        Args:
            others: more draws of `tensors`: what cannot be mixed (`is_mixable`) comes from one of them.
        """
        self.place(tensors, outputs)
        self._rotation = [(self._ins, self._outs)]
        for number in range(1, sets):
            ins = [
                self._layout.add(f"input {name} ({number})", slot.nbytes) if activation else slot
                for name, slot, activation in zip(
                    self.border.inputs, self._ins, self.border.activations, strict=True
                )
            ]
            outs = [
                self._layout.add(f"output {name} ({number})", slot.nbytes)
                for name, slot in zip(self.border.outputs, self._outs, strict=True)
            ]
            self._rotation.append((ins, outs))
        self._reserve(self._layout.nbytes)
        assert self._arena
        assert self._channel
        fill_guards(self._arena, self._layout)
        self._given = [self._own(tensors) for _ in range(sets)]
        self._draws = [tensors, *others]
        self._mixed = [is_mixable(tensor) for tensor in tensors]
        # Ahead of bind: a runner that has to make room for them would move what was bound.
        for number in range(sets):
            self._channel.define(number, self._turned(number))
        self._ins, self._outs = self._rotation[0]
        return self.bind(tensors)

    def _own(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Activations of a set's own, the weights of all."""
        kinds = self.border.activations
        return [t.clone() if activation else t for t, activation in zip(tensors, kinds, strict=True)]

    def _turned(self, number: int) -> Call:
        """Make one set the current one; returns its description."""
        self._ins, self._outs = self._rotation[number]
        self._write(self._given[number])
        return self.description()

    def burst(self, count: int, *, cold: bool) -> Done:
        """`count` launches on new values: on a set each, in a random order, when there are as many sets."""
        channel = self._renewed()
        numbers = list(range(self.rotations))
        secrets.SystemRandom().shuffle(numbers)
        self.order = numbers[:count] if count <= self.rotations else list(range(self.rotations))
        return channel.burst(count, cold=cold, order=self.order if count <= self.rotations else ())

    def watch(self, count: int, library: str) -> Done:
        """As a warm `burst`, under CUPTI."""
        return self._renewed().watch(count, library)

    def _renewed(self) -> Channel:
        """Every set with new values and poisoned outputs."""
        assert self._arena
        assert self._channel
        moving = [place for place, activation in enumerate(self.border.activations) if activation]
        for given, (ins, outs) in zip(self._given, self._rotation, strict=True):
            draw = secrets.choice(self._draws)
            for place in moving:
                tensor = given[place]
                if self._mixed[place]:
                    renew(tensor)
                else:
                    tensor.copy_(draw[place])
                view(self._arena, ins[place], tensor.dtype, tuple(tensor.shape)).copy_(tensor)
            for slot in outs:
                poison(self._arena, slot)
        self._synchronise()
        return self._channel

    def given(self, number: int) -> list[Tensor]:
        """The inputs that one set's last launch had."""
        return self._given[number]

    def delivered(self, number: int) -> list[Tensor]:
        """What the last burst wrote for one set; raises for guard zones or inputs that it touched."""
        self._ins, self._outs = self._rotation[number]
        self._search(self._given[number])
        return self.results()

    @property
    def rotations(self) -> int:
        return len(self._rotation)


def is_mixable(tensor: Tensor) -> bool:
    """May its values change places?

    Not those of indices, offsets and masks, infinite ones among them: which of these are valid together, and
    in which order, the reference alone knows.
    """
    return tensor.is_floating_point() and bool(torch.isfinite(tensor).all())


def renew(tensor: Tensor) -> None:
    """Other values in place, within the range of the tensor's own; equal ones become no more frequent."""
    flat = tensor.view(-1)
    if not flat.numel():
        return
    moved = flat.roll(1 + secrets.randbelow(max(1, flat.numel() - 1)))
    count = 4 + flat.numel() // MOVED_SHARE
    source, target = torch.randint(flat.numel(), (2, count), device=flat.device)
    moved[target] = moved[target] * 0.5 + moved[source] * 0.5
    flat.copy_(moved)
