"""Operands of one function: registers, immediates, addresses, as C++ expressions."""

import re

from stitch_tui.tools.emulator.ptx.module import Function, Module
from stitch_tui.tools.emulator.ptx.vocabulary import (
    REGISTER_TYPES,
    SPECIAL,
    VALUE_TYPES,
    VECTORS,
    UnknownPtx,
    identifier,
    size_of,
    split_operands,
    value_type,
)

FLOAT_BITS = re.compile(r"^-?0[fF]([0-9a-fA-F]{8})$")
DOUBLE_BITS = re.compile(r"^-?0[dD]([0-9a-fA-F]{16})$")
INTEGER = re.compile(r"^-?(0[xX][0-9a-fA-F]+|\d+)U?$")
NAME_AND_OFFSET = re.compile(r"^([\w$.]+)(?:\+(-?\d+))?$")
ADDRESS = re.compile(r"^(%?[\w$.]+|-?\d+)\s*(?:\+\s*(-?\w+))?$")
COUNTED = re.compile(r"(%?[\w$]+)<(\d+)>")


class Operands:
    """Names that are in scope while a function is translated."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module, self.function = module, function
        self.registers: dict[str, str] = {}
        self.locals: set[str] = set()
        self.parameters = {one.name for one in (*function.parameters, *function.results)}

    def declare_registers(self, kind: str, names: str) -> str:
        """``.reg .b32 %r<9>`` as a C++ declaration."""
        declared: list[str] = []
        for name in split_operands(names):
            counted = COUNTED.match(name)
            declared += [f"{counted[1]}{k}" for k in range(int(counted[2]))] if counted else [name]
        if kind not in REGISTER_TYPES:
            raise UnknownPtx(f"register type .{kind}")
        self.registers.update(dict.fromkeys(declared, kind))
        return f"{REGISTER_TYPES[kind]} {', '.join(map(identifier, declared))};" if declared else ""

    def storage(self, register: str) -> str:
        """The C++ type that a register is stored in."""
        if register not in self.registers:
            raise UnknownPtx(f"destination {register}")
        return REGISTER_TYPES[self.registers[register]]

    def read(self, operand: str, kind: str) -> str:
        """An operand's value in the C++ type of `kind`."""
        operand = operand.strip()
        if operand.startswith("-%"):
            return f"(-{self.read(operand[1:], kind)})"
        if operand.startswith("!"):
            return f"(!{self.read(operand[1:], kind)})"
        if operand in self.registers:
            return self._register(operand, kind)
        found = self._special(operand, kind) or _immediate(operand, kind) or self._symbol(operand, kind)
        if found is None:
            raise UnknownPtx(f"operand {operand}")
        return found

    def write(self, register: str, value: str, kind: str) -> str:
        """A statement that stores a value of `kind` into a register."""
        register = register.strip()
        if register == "_":
            return f"(void)({value});"
        storage = self.storage(register)
        if storage == "bool" or kind not in VALUE_TYPES:
            return f"{identifier(register)} = {value};"
        return f"{identifier(register)} = ({storage})bits<{VALUE_TYPES[kind]}>({value});"

    def write_loaded(self, register: str, kind: str, at: int) -> str:
        """Store what lies `at` bytes behind ``a_``; a narrow signed value widens with its sign."""
        loaded = f"raw<{value_type(kind)}>(a_+{at})"
        storage = self.storage(register)
        if kind[0] == "s" and size_of(kind) < 8 and storage != f"uint{8 * size_of(kind)}_t":
            return f"{identifier(register)} = ({storage})(int64_t){loaded};"
        return f"{identifier(register)} = ({storage})bits<{value_type(kind)}>({loaded});"

    def address(self, operand: str, space: str) -> str:
        """``[%rd1+8]`` as a pointer expression."""
        inner = operand.strip()[1:-1].strip()
        found = ADDRESS.match(inner)
        if not found:
            raise UnknownPtx(f"address {operand}")
        base, offset = found[1], f"{int(found[2], 0):+d}" if found[2] else ""
        if base in self.registers:
            start = identifier(base)
        elif base in self.module.variables or base in self.locals:
            start = self._address_of(base)
        elif base in self.parameters:
            return f"((char*){identifier(base)}{offset})"
        elif re.match(r"^-?\d+$", base):
            start = base
        else:
            raise UnknownPtx(f"address {operand}")
        if space == "shared":
            return f"(stitch_emu::t_smem+(uint32_t)({start}{offset}))"
        return f"((char*)(uintptr_t)({start}{offset}))"

    def _register(self, name: str, kind: str) -> str:
        plain = kind == "pred" or value_type(kind) == self.storage(name)
        return identifier(name) if plain else f"as<{value_type(kind)}>({identifier(name)})"

    def _special(self, operand: str, kind: str) -> str | None:
        if operand in SPECIAL:
            return f"(({value_type(kind)})({SPECIAL[operand]}))"
        vector, _, axis = operand.partition(".")
        return f"(({value_type(kind)}){VECTORS[vector]}.{axis})" if axis and vector in VECTORS else None

    def _symbol(self, operand: str, kind: str) -> str | None:
        found = NAME_AND_OFFSET.match(operand)
        if found and (found[1] in self.module.variables or found[1] in self.locals):
            offset = f"+{found[2]}" if found[2] else ""
            return f"(({value_type(kind)})({self._address_of(found[1])}{offset}))"
        if any(function.name == operand for function in self.module.functions):
            return f"(({value_type(kind)})(uintptr_t)&{identifier(operand)})"
        return None

    def _address_of(self, name: str) -> str:
        variable = self.module.variables.get(name)
        if variable and variable.space == "shared" and name not in self.locals:
            return str(variable.offset)
        return f"(uintptr_t){identifier(name)}"


def _immediate(text: str, kind: str) -> str | None:
    if bits := FLOAT_BITS.match(text):
        return f"as<float>(0x{bits[1]}u)" if kind == "f32" else f"0x{bits[1]}u"
    if bits := DOUBLE_BITS.match(text):
        return f"as<double>(0x{bits[1]}ull)" if kind == "f64" else f"0x{bits[1]}ull"
    if not INTEGER.match(text):
        return None
    value = int(text.rstrip("U"), 0)
    if kind[0] not in "sub" or kind == "bf16":
        return f"({value})"
    return f"({value_type(kind)}){value}{'ll' if value < 2**63 else 'ull'}"
