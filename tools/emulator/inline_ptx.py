"""Inline PTX of the source front end, through the instruction translator of the ptx front end."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stitch_tui.tools.emulator.ptx.body import Body
from stitch_tui.tools.emulator.ptx.module import Function, Module
from stitch_tui.tools.emulator.ptx.vocabulary import REGISTER_TYPES, UnknownPtx
from stitch_tui.tools.emulator.tokens import Cursor, Token

CONSTRAINTS = {"r": "b32", "l": "b64", "f": "f32", "h": "b16", "d": "f64", "n": "b32", "q": "b128"}


@dataclass(frozen=True)
class Operand:
    """``"+r"(expression)``, with the name of ``[name]`` if it has one."""

    constraint: str
    expression: str
    name: str

    @property
    def type(self) -> str:
        kind = CONSTRAINTS.get(self.constraint[-1])
        if not kind:
            raise UnknownPtx(f'constraint "{self.constraint}"')
        return kind


def translate_asm(tokens: Sequence[Token]) -> str:
    """The tokens between ``asm(`` and ``)`` as one C++ statement without its semicolon.

    Raises:
        UnknownPtx: an instruction or a form is not known; the text names it.
    """
    template, *sections = _sections(tokens)
    operands = [operand for section in sections[:2] for operand in _operands(section)]
    text = _with_registers(_template_text(template), operands)
    if not text.strip():
        return "do { } while (0)"
    code = text if text.rstrip()[-1] in ";}" else text + ";"
    body = Body(Module(), Function("asm", False, [], [], code), line="__LINE__")
    body.scope.registers.update({f"%stitch_{k}": operand.type for k, operand in enumerate(operands)})
    lines = body.translate()
    if body.unknown:
        raise UnknownPtx(body.unknown[0])
    before = [_declared(k, operand) for k, operand in enumerate(operands)]
    after = [f"out_({o.expression}, stitch_{k});" for k, o in enumerate(operands) if o.constraint[0] in "=+"]
    return "do { unsigned cc_ = 0; (void)cc_; " + " ".join((*before, *lines, *after)) + " } while (0)"


def _declared(k: int, operand: Operand) -> str:
    kind = REGISTER_TYPES[operand.type]
    initial = "" if operand.constraint.startswith("=") else f" = in_<{kind}>({operand.expression})"
    return f"{kind} stitch_{k}{initial};"


def _sections(tokens: Sequence[Token]) -> list[list[Token]]:
    """Template, outputs, inputs, clobbers: split at colons outside brackets."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.blank:
            continue
        if token.kind == "op":
            depth += (token.text in "([{") - (token.text in ")]}")
            if depth == 0 and token.text in (":", "::"):
                found += [[] for _ in token.text]
                continue
        found[-1].append(token)
    return found


def _template_text(tokens: Sequence[Token]) -> str:
    if any(token.kind not in ("str", "raw") for token in tokens):
        raise UnknownPtx("a template that is not a plain string")
    return "".join(_string(token) for token in tokens)


def _string(token: Token) -> str:
    if token.kind == "raw":
        return token.text.split("(", 1)[1].rsplit(")", 1)[0]
    return str(ast.literal_eval(token.text))


def _operands(tokens: Sequence[Token]) -> Iterator[Operand]:
    cursor, i = Cursor(list(tokens)), 0
    while i < len(tokens):
        name = ""
        if tokens[i].text == ",":
            i += 1
        if tokens[i].text == "[":
            name = tokens[i + 1].text
            i += 3
        end = cursor.closing(i + 1)
        yield Operand(_string(tokens[i]), " ".join(token.text for token in tokens[i + 2 : end]), name)
        i = end + 1


def _with_registers(text: str, operands: Sequence[Operand]) -> str:
    """``%0`` and ``%[name]`` become registers of ours, ``%%`` a percent sign."""
    for k, operand in enumerate(operands):
        if operand.name:
            text = text.replace(f"%[{operand.name}]", f"%{k}")
    return re.sub(r"%(\d+)", r"%stitch_\1", text.replace("%%", "\0")).replace("\0", "%")
