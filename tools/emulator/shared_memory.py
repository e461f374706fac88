"""``__shared__`` declarations as references into the block's window of emulated shared memory."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stitch_tui.tools.emulator.tokens import Cursor, SourceError, Token

ALIGNERS = ("__align__", "alignas", "__builtin_align__", "__attribute__")
DROPPED = ("static", "__shared__", "extern")
DECLARATION_STARTS_AFTER = (";", "{", "}", ":")


@dataclass(frozen=True)
class Declaration:
    """``[extern] __shared__ TYPE name[dims], ...;`` without its qualifiers."""

    line: int
    external: bool
    alignment: str
    type: str
    declarators: list[list[Token]]


def rewrite_shared(cursor: Cursor, i: int, in_function: bool) -> int:
    """Replace the declaration around the ``__shared__`` at `i`; returns where it starts.

    Raises:
        SourceError: a form that CUDA does not allow, or that we cannot read.
    """
    first, last = _extent(cursor, i)
    found = _parse(cursor.tokens[first:last], cursor.tokens[i].line)
    cursor.replace(first, last, " ".join(_declared(found, one, in_function) for one in found.declarators))
    return first


def _extent(cursor: Cursor, i: int) -> tuple[int, int]:
    first = i
    while (k := cursor.before(first)) >= 0:
        if cursor.text(k) in DECLARATION_STARTS_AFTER or cursor.kind(k) == "gen":
            break
        first = k
    last = i
    while cursor.text(last) != ";":
        if cursor.text(last) in ("(", "[", "{"):
            last = cursor.closing(last)
        last = cursor.after(last)
        if last >= len(cursor.tokens):
            raise SourceError(cursor.tokens[i].line, "__shared__ declaration without ';'")
    return first, last


def _parse(tokens: Sequence[Token], line: int) -> Declaration:
    body = [token for token in tokens if token.kind not in ("ws", "com")]
    external = any(token.text == "extern" for token in body)
    rest, alignment = _without_qualifiers(body)
    name_at = _declarator(rest)
    if not name_at:
        raise SourceError(line, "cannot read this __shared__ declaration")
    type_name = " ".join(token.text for token in rest[:name_at])
    return Declaration(line, external, alignment, type_name, _split(rest[name_at:]))


def _without_qualifiers(body: Sequence[Token]) -> tuple[list[Token], str]:
    rest: list[Token] = []
    alignment, k = "0", 0
    while k < len(body):
        if body[k].text in ALIGNERS:
            end = Cursor(list(body)).closing(k + 1)
            inside = " ".join(token.text for token in body[k + 2 : end])
            aligned = re.search(r"aligned\s*\(?\s*(\w+)", inside)
            alignment = aligned[1] if aligned else inside
            k = end
        elif body[k].text not in DROPPED:
            rest.append(body[k])
        k += 1
    return rest, alignment


def _declarator(rest: Sequence[Token]) -> int:
    """Index of the first declared name: the last identifier outside template arguments before ``[ , = {``."""
    angle = name_at = 0
    for k, token in enumerate(rest):
        angle += (token.text == "<") - (token.text == ">")
        if angle:
            continue
        called = token.text == "(" and k > 1 and rest[k - 1].kind == "id"
        if token.text in ("[", ",", "=", "{") or called:
            break
        if token.kind == "id":
            name_at = k
    return name_at


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[", "{", "<")) - (token.text in (")", "]", "}", ">"))
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _declared(found: Declaration, declarator: list[Token], in_function: bool) -> str:
    stars = ""
    while declarator and declarator[0].text in ("*", "&"):
        stars += "*"
        declarator = declarator[1:]
    name, dims = declarator[0].text, " ".join(token.text for token in declarator[1:])
    if "=" in dims or "{" in dims:
        raise SourceError(found.line, "initialisers are not allowed on __shared__ variables")
    element = found.type + stars
    if found.external:
        return _dynamic(element, name, in_function)
    if not in_function:
        raise SourceError(found.line, "__shared__ at file scope")
    return (
        f"typedef {element} stitch_t_{name} {dims}; "
        f"static const unsigned stitch_o_{name} = ::stitch_emu::shared_site(sizeof(stitch_t_{name}), "
        f'::std::max<size_t>(alignof(stitch_t_{name}), {found.alignment}), "{name}", STITCH_HERE); '
        f"stitch_t_{name}& {name} = ::stitch_emu::shared_at<stitch_t_{name}>(stitch_o_{name});"
    )


def _dynamic(element: str, name: str, in_function: bool) -> str:
    if in_function:
        return f"{element}* {name} = reinterpret_cast<{element}*>(::stitch_emu::dyn_smem(STITCH_HERE));"
    plain = re.sub(r"\bvolatile\b", "", element)
    return f"static ::stitch_emu::DynShared<{plain}> {name};"
