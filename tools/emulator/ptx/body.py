"""The statements of one PTX function, line by line, as C++ statements."""

import re

from stitch_tui.tools.emulator.ptx import arithmetic, control, matrix, memory
from stitch_tui.tools.emulator.ptx.instruction import TRANSLATORS, Instruction
from stitch_tui.tools.emulator.ptx.module import Function, Module
from stitch_tui.tools.emulator.ptx.operands import Operands
from stitch_tui.tools.emulator.ptx.vocabulary import UnknownPtx, identifier, size_of, split_operands

FAMILIES = (arithmetic, control, matrix, memory)
"""Importing them fills `TRANSLATORS`."""

PIECE = re.compile(r"(;|\{|\}|\n)")
INLINED_AT = re.compile(r"inlined_at\s+(\d+)\s+(\d+)")
LABEL = re.compile(r"^([$\w.%]+):\s*(?!:)")
PREDICATE = re.compile(r"@(!?)(%?\w+)\s+(.*)", re.S)
OPCODE = re.compile(r"([\w.:]+)\s*(.*)", re.S)
REGISTERS = re.compile(r"\.reg\s*\.(\w+)\s+(.*)", re.S)
MEMORY = re.compile(
    r"\.(?P<space>local|param)\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>\w+)\s+(?P<name>[\w$.]+)(?:\[(?P<count>\d+)\])?"
)
STACK_ALIGNMENT = 16


class Body:
    """Translates a function; ``unknown`` collects what it could not.

    Args:
        line: C++ for the source line where no ``.loc`` has said one.
    """

    def __init__(self, module: Module, function: Function, line: str = "0") -> None:
        self.scope = Operands(module, function)
        self.lines: list[str] = []
        self.unknown: list[str] = []
        self.line = line
        self._statement = ""
        self._braces = 0
        """Open braces inside the statement: of a vector operand."""

    def translate(self) -> list[str]:
        for piece in PIECE.split(self.scope.function.body):
            if piece == "\n":
                self._line_end()
            elif piece in ("{", "}"):
                self._brace(piece)
            elif piece == ";":
                statement, self._statement = self._statement.strip(), ""
                self._labelled(statement)
            else:
                self._statement += piece
        return self.lines

    def _line_end(self) -> None:
        """``.loc``, ``.pragma`` and labels end with their line, not with a semicolon."""
        text = self._statement.strip()
        if text.startswith(".loc"):
            self.line = _source_line(text, self.scope.module.files)
        elif label := re.fullmatch(r"([$\w.%]+):", text):
            self.lines.append(f"{identifier(label[1])}:;")
        elif not text.startswith((".pragma", "@@")):
            self._statement += " " if text else ""
            return
        self._statement = ""

    def _brace(self, brace: str) -> None:
        text = self._statement.strip()
        opens_operand = brace == "{" and text and not text.endswith(":")
        if opens_operand or (brace == "}" and self._braces):
            self._braces += 1 if brace == "{" else -1
            self._statement += brace
        else:
            self.lines.append(brace)

    def _labelled(self, statement: str) -> None:
        while label := LABEL.match(statement):
            self.lines.append(f"{identifier(label[1])}:;")
            statement = statement[label.end() :]
        if statement.startswith("."):
            self._directive(statement)
        elif statement:
            self._instruction(statement)

    def _directive(self, text: str) -> None:
        if registers := REGISTERS.match(text):
            self.lines.append(self.scope.declare_registers(registers[1], registers[2]))
        elif memory_found := MEMORY.match(text):
            name = memory_found["name"]
            size = size_of(memory_found["type"]) * int(memory_found["count"] or 1)
            align = max(STACK_ALIGNMENT, int(memory_found["align"] or 1))
            (self.scope.locals if memory_found["space"] == "local" else self.scope.parameters).add(name)
            self.lines.append(f"alignas({align}) char {identifier(name)}[{max(STACK_ALIGNMENT, size)}];")

    def _instruction(self, text: str) -> None:
        guard = ""
        if predicate := PREDICATE.match(text):
            guard, text = f"if ({predicate[1]}{identifier(predicate[2])}) ", predicate[3]
        found = OPCODE.match(text)
        name = found[1] if found else text
        operands = split_operands(found[2]) if found else []
        try:
            code = self._code(Instruction(name, operands, self.line, self.scope))
        except UnknownPtx as unknown:
            self.unknown.append(str(unknown))
            code = f'ptx_unimplemented("{name}", {self.line});'
        self.lines.append(f"{guard}{{ {code} }}")

    def _code(self, one: Instruction) -> str:
        if one.opcode not in TRANSLATORS:
            raise UnknownPtx(one.name)
        try:
            return TRANSLATORS[one.opcode](one)
        except (KeyError, IndexError) as form:  # a suffix that no table of the translator has
            raise UnknownPtx(one.name) from form


def _source_line(loc: str, files: dict[int, str]) -> str:
    """The line of a ``.loc``; of code inlined from a header the candidate's own line."""
    _, file, line, *_ = loc.split()
    caller = INLINED_AT.search(loc)
    if caller and not files.get(int(file), "").endswith((".cu", ".cuh")):
        return caller[2]
    return line
