"""A PTX module: its variables, its functions with their bodies, its file table."""

import re
from dataclasses import dataclass, field

from stitch_tui.tools.emulator.ptx.vocabulary import UnknownPtx, size_of, split_operands

DYNAMIC_SHARED_AT = 64
STATIC_SHARED_AT = 256 * 1024
"""Offsets in a block's window; the runtime's ``kDynSmemOff`` and ``kStaticBase``."""
RED_ZONE = 64

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]+)"', re.M)
ITEM = re.compile(r"(?:\.visible|\.weak|\.extern|\.common|\s)*\.(entry|func|global|const|shared)\b")
VARIABLE = re.compile(
    r"\s*(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+(?P<align>\d+)\s*)?(?:\.attribute\([^)]*\)\s*)?\.(?P<type>\w+)\s+"
    r"(?P<name>[\w$.]+)(?P<array>\[(?P<count>\d*)\])?(?:\s*=\s*(?P<value>.*))?$",
    re.S,
)
LOCAL_SHARED = re.compile(
    r"\.shared\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>\w+)\s+(?P<name>[\w$.]+)(?:\[(?P<count>\d+)\])?\s*;"
)
PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>\w+)(?:\s+\.ptr.*?\s)?\s*(?:\.align\s+\d+\s+)?"
    r"(?P<name>[\w$.]+)(?:\[(?P<count>\d+)\])?$"
)
REGISTER_PARAMETER = re.compile(r"\.reg\s+\.(\w+)\s+([%\w$.]+)")
FUNCTION_NAME = re.compile(r"([\w$.]+)\s*(?:\(|$)")


@dataclass(frozen=True)
class Variable:
    """``space`` is global, const or shared; ``offset`` counts for shared ones only."""

    name: str
    space: str
    size: int
    align: int
    offset: int = 0
    initial: bytes = b""


@dataclass(frozen=True)
class Parameter:
    name: str
    size: int
    align: int


@dataclass(frozen=True)
class Function:
    name: str
    entry: bool
    parameters: list[Parameter]
    results: list[Parameter]
    body: str

    def offsets(self) -> list[int]:
        """Where each parameter lies in the kernel's parameter block, then the block's size."""
        found, at = [], 0
        for one in self.parameters:
            at = _aligned(at, one.align)
            found.append(at)
            at += one.size
        return [*found, at]


@dataclass
class Module:
    functions: list[Function] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
    _shared_at: int = STATIC_SHARED_AT

    def add_shared(self, name: str, size: int, align: int) -> None:
        """Give a static shared variable its place in the window, a red zone behind it."""
        if name in self.variables:
            return
        offset = _aligned(self._shared_at, max(align, 16))
        self._shared_at = offset + size + RED_ZONE
        self.variables[name] = Variable(name, "shared", size, align, offset)


def parse(text: str) -> Module:
    """Read a module's text.

    Raises:
        UnknownPtx: a declaration cannot be read.
    """
    text = COMMENT.sub("", text)
    module = Module(files={int(number): path for number, path in FILE.findall(text)})
    at = 0
    while item := ITEM.search(text, at):
        if item[1] in ("entry", "func"):
            at = _function(module, text, item.end(), item[1] == "entry")
        else:
            end = text.index(";", item.end())
            _variable(module, item[1], text[item.end() : end], ".extern" in item[0])
            at = end + 1
    for function in module.functions:
        for found in LOCAL_SHARED.finditer(function.body):
            size = size_of(found["type"]) * int(found["count"] or 1)
            module.add_shared(found["name"], size, int(found["align"] or 1))
    return module


def _variable(module: Module, space: str, text: str, external: bool) -> None:
    found = VARIABLE.match(text.strip())
    if not found:
        raise UnknownPtx(f"variable {text.strip()[:100]}")
    element = size_of(found["type"])
    count = int(found["count"] or 0) if found["array"] else 1
    name, size, align = found["name"], count * element, int(found["align"] or element)
    if space != "shared":
        module.variables[name] = Variable(
            name, space, size, align, 0, _initial(found["value"] or "", element)
        )
    elif external or not size:
        module.variables[name] = Variable(name, space, size, align, DYNAMIC_SHARED_AT)
    else:
        module.add_shared(name, size, align)


def _initial(text: str, element: int) -> bytes:
    if "0f" in text or "0d" in text:
        values = [int(bits[2:], 16) for bits in re.findall(r"0[fd][0-9a-fA-F]+", text)]
    else:
        values = [int(number, 0) for number in re.findall(r"0[xX][0-9a-fA-F]+|-?\d+", text)]
    return b"".join((value % (1 << 8 * element)).to_bytes(element, "little") for value in values)


def _function(module: Module, text: str, at: int, entry: bool) -> int:
    """Read one function (a declaration alone is skipped); returns where it ends."""
    end = min(found for found in (text.find("{", at), text.find(";", at)) if found >= 0)
    signature = text[at:end]
    if text[end] == ";":
        return end + 1
    groups = [_parameters(group) for group in re.findall(r"\(([^()]*)\)", signature)]
    results = groups.pop(0) if re.match(r"\s*\(", signature) else []
    name = FUNCTION_NAME.search(re.sub(r"^\s*\([^()]*\)", "", signature).strip())
    if not name:
        raise UnknownPtx(f"function {signature.strip()[:100]}")
    close = _closing(text, end)
    module.functions.append(
        Function(name[1], entry, groups[0] if groups else [], results, text[end + 1 : close])
    )
    return close + 1


def _parameters(text: str) -> list[Parameter]:
    found = []
    for part in split_operands(text):
        if one := PARAMETER.match(part.strip()):
            element = size_of(one["type"])
            found.append(
                Parameter(one["name"], element * int(one["count"] or 1), int(one["align"] or element))
            )
        elif register := REGISTER_PARAMETER.match(part.strip()):
            found.append(Parameter(register[2], size_of(register[1]), size_of(register[1])))
    return found


def _closing(text: str, at: int) -> int:
    depth = 0
    while True:
        depth += (text[at] == "{") - (text[at] == "}")
        if text[at] == '"':
            at = text.index('"', at + 1)
        if depth == 0:
            return at
        at += 1


def _aligned(at: int, align: int) -> int:
    return (at + align - 1) // align * align
