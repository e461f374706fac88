"""Building scalar programs: expressions that append to a list of `Instr`, equal ones shared."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Union

from stitch_tui.agents.builtin.ir import Instr, Register

Number = float | int | bool
Operand = Union["Expr", Number]


@dataclass
class Program:
    """A scalar program under construction."""

    instrs: list[Instr] = field(default_factory=list)
    _index: dict[Instr, int] = field(default_factory=dict)

    def add(self, op: str, register: Register, *args: "Expr", literal: Number = 0) -> "Expr":
        """Append one value, or return the equal one that is already there."""
        instr = Instr(op, register, tuple(a.index for a in args), literal)
        key = Instr(f"{op} {type(literal).__name__} {literal!r}", register, instr.args)
        if key not in self._index:
            self._index[key] = len(self.instrs)
            self.instrs.append(instr)
        return Expr(self, self._index[key])

    def constant(self, value: Number, register: Register) -> "Expr":
        kinds: dict[Register, Callable[[Number], Number]] = {
            Register.F32: float,
            Register.I64: int,
            Register.BOOL: bool,
        }
        return self.add("const", register, literal=kinds[register](value))


@dataclass(frozen=True)
class Expr:
    """A value of a `Program`; arithmetic on it appends instructions."""

    program: Program
    index: int

    @property
    def register(self) -> Register:
        return self.program.instrs[self.index].register

    def _lift(self, other: Operand) -> "Expr":
        return other if isinstance(other, Expr) else self.program.constant(other, self.register)

    def _with(self, op: str, other: Operand, register: Register | None = None) -> "Expr":
        return self.program.add(op, register or self.register, self, self._lift(other))

    def apply(self, op: str) -> "Expr":
        """A function of one argument: exp, tanh, erf ..."""
        return self.program.add(op, self.register, self)

    def to(self, register: Register) -> "Expr":
        if self.register is register:
            return self
        return self.program.add("cast", register, self)

    def rounded(self, op: str) -> "Expr":
        """Rounded to a narrower type and back: ``round_f16``, ``round_bf16``, ``wrap_i32`` ..."""
        return self.apply(op)

    def select(self, yes: Operand, no: Operand) -> "Expr":
        """``self ? yes : no`` for a boolean `self`."""
        model = yes if isinstance(yes, Expr) else no
        if not isinstance(model, Expr):
            raise TypeError("one branch of a select must be an expression")
        return self.program.add("select", model.register, self, model._lift(yes), model._lift(no))

    def compare(self, op: str, other: Operand) -> "Expr":
        """``lt``, ``le``, ``gt``, ``ge``, ``eq`` or ``ne``."""
        return self._with(op, other, Register.BOOL)

    def maximum(self, other: Operand) -> "Expr":
        """NaN when either is NaN, as in PyTorch."""
        return self._with("max", other)

    def minimum(self, other: Operand) -> "Expr":
        """NaN when either is NaN, as in PyTorch."""
        return self._with("min", other)

    def power(self, other: Operand) -> "Expr":
        return self._with("pow", other)

    def logic(self, op: str, other: Operand) -> "Expr":
        """``and``, ``or`` or ``xor``, bitwise on integers."""
        return self._with(op, other)

    def __add__(self, other: Operand) -> "Expr":
        return self._with("add", other)

    def __sub__(self, other: Operand) -> "Expr":
        return self._with("sub", other)

    def __mul__(self, other: Operand) -> "Expr":
        return self._with("mul", other)

    def __truediv__(self, other: Operand) -> "Expr":
        return self._with("div", other)

    def __radd__(self, other: Number) -> "Expr":
        return self._lift(other) + self

    def __rsub__(self, other: Number) -> "Expr":
        return self._lift(other) - self

    def __rmul__(self, other: Number) -> "Expr":
        return self._lift(other) * self

    def __rtruediv__(self, other: Number) -> "Expr":
        return self._lift(other) / self

    def __neg__(self) -> "Expr":
        return self.apply("neg")
