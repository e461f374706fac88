"""One PTX instruction, and the table of what is known about each opcode."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stitch_tui.tools.emulator.ptx.operands import Operands
from stitch_tui.tools.emulator.ptx.vocabulary import UnknownPtx


@dataclass(frozen=True)
class Instruction:
    """``name`` is the opcode with its suffixes, ``operands`` are text, ``line`` is C++ for the line."""

    name: str
    operands: list[str]
    line: str
    scope: Operands

    @property
    def parts(self) -> list[str]:
        return self.name.split(".")

    @property
    def opcode(self) -> str:
        return self.parts[0]

    @property
    def type(self) -> str:
        """The last suffix: of most instructions the operand type."""
        return self.parts[-1]

    def has(self, *suffixes: str) -> bool:
        return any(suffix in self.parts for suffix in suffixes)

    def first_of(self, suffixes: Iterable[str], otherwise: str | None = None) -> str:
        """The first suffix that is one of these.

        Raises:
            UnknownPtx: none is, and there is no `otherwise`.
        """
        wanted = set(suffixes)
        found = next((part for part in self.parts[1:] if part in wanted), otherwise)
        if found is None:
            raise UnknownPtx(self.name)
        return found

    def operand(self, k: int) -> str:
        if k >= len(self.operands):
            raise UnknownPtx(f"{self.name} with {len(self.operands)} operands")
        return self.operands[k]

    def read(self, k: int, kind: str | None = None) -> str:
        return self.scope.read(self.operand(k), kind or self.type)

    def write(self, value: str, kind: str | None = None) -> str:
        """Into operand 0."""
        return self.scope.write(self.operand(0), value, kind or self.type)

    def address(self, k: int, space: str) -> str:
        return self.scope.address(self.operand(k), space)


Translator = Callable[[Instruction], str]
TRANSLATORS: dict[str, Translator] = {}
"""Opcode to the function that writes its C++; filled by `translates` when `instructions` are imported."""


def translates(*opcodes: str) -> Callable[[Translator], Translator]:
    """Register a function for these opcodes."""

    def register(translator: Translator) -> Translator:
        TRANSLATORS.update(dict.fromkeys(opcodes, translator))
        return translator

    return register
