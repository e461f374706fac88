"""A candidate on several sets of inputs at once, so that timed launches rotate through buffers."""

from collections.abc import Sequence

from torch import Tensor

from .abi import Call
from .answers import Done
from .arena import fill_guards, poison
from .channel import Channel
from .rig import Rig


class TimedRig(Rig):
    """A `Rig` whose bursts rotate; weights, workspace and bound memory are shared by all sets."""

    def prepare(self, sets: Sequence[Sequence[Tensor]], outputs: Sequence[Tensor]) -> Done:
        """Place every set, bind the weights of the first, define the sets; the answer is that of bind."""
        self.place(sets[0], outputs)
        self._rotation = [(self._ins, self._outs)]
        for number in range(1, len(sets)):
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
        bound = self.bind(sets[0])
        self._given = list(sets)
        for number in range(len(sets)):
            self._channel.define(number, self._turned(number))
        return bound

    def _turned(self, number: int) -> Call:
        """Make one set the current one; returns its description."""
        self._ins, self._outs = self._rotation[number]
        self._write(self._given[number])
        return self.description()

    def burst(self, count: int, *, cold: bool) -> Done:
        """`count` launches after every set's outputs were poisoned."""
        return self._poisoned().burst(count, cold=cold)

    def watch(self, count: int, library: str) -> Done:
        """As a warm `burst`, under CUPTI."""
        return self._poisoned().watch(count, library)

    def _poisoned(self) -> Channel:
        assert self._arena
        assert self._channel
        for _, outs in self._rotation:
            for slot in outs:
                poison(self._arena, slot)
        self._synchronise()
        return self._channel

    def delivered(self, number: int) -> list[Tensor]:
        """What the last burst wrote for one set; raises for guard zones or inputs that it touched."""
        self._ins, self._outs = self._rotation[number]
        self._search(self._given[number])
        return self.results()

    @property
    def rotations(self) -> int:
        return len(self._rotation)
