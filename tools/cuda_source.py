"""A view of CUDA C++ through its syntax tree: kernels, launches, includes, calls, exports."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

from stitch_tui.tools.cuda_mask import mask
from stitch_tui.tools.cuda_tokens import Token, tokens

_LANGUAGE = Language(tree_sitter_cuda.language())


@dataclass(frozen=True)
class Function:
    """A function that the source defines; lines count from 1, both ends included."""

    name: str
    first_line: int
    last_line: int
    is_kernel: bool
    """``__global__``."""
    is_exported: bool
    """``extern "C"``, outside unnamed namespaces and not static."""


@dataclass(frozen=True)
class Call:
    """A call, as it is written: ``std::sort``, ``handle.get``, ``tile<3>``."""

    name: str
    line: int
    function: str
    """The function whose body it stands in; empty at file scope: it runs when the library is loaded."""


@dataclass(frozen=True)
class Launch:
    """A kernel launch ``name<<<grid, block, shared, stream>>>``."""

    kernel: str
    """Without template arguments and namespaces."""
    configuration: tuple[str, ...]
    line: int
    function: str


@dataclass(frozen=True)
class Include:
    """An ``#include``; `system` with angle brackets."""

    path: str
    system: bool
    line: int


class CudaSource:
    """One source, parsed once; every view is computed when it is first asked for."""

    def __init__(self, source: str | bytes) -> None:
        self.source = source.encode() if isinstance(source, str) else source
        self._root = Parser(_LANGUAGE).parse(mask(self.source)).root_node

    @cached_property
    def errors(self) -> tuple[int, ...]:
        """Lines that the parser did not understand."""
        return tuple(_line(node) for node in _walk(self._root) if node.is_error or node.is_missing)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Functions and methods with a body."""
        return tuple(_function(node) for node in self._of("function_definition") if _name(node))

    @property
    def kernels(self) -> tuple[Function, ...]:
        return tuple(function for function in self.functions if function.is_kernel)

    @property
    def exports(self) -> tuple[Function, ...]:
        """Functions that the built library offers by their plain names."""
        return tuple(function for function in self.functions if function.is_exported)

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """Calls of functions and methods; launches are not among them."""
        found = []
        for node in self._of("call_expression"):
            callee = node.child_by_field_name("function")
            if callee and not _configuration(node):
                found.append(Call(_text(callee), _line(node), _enclosing(node)))
        return tuple(found)

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(_launches(self._of("call_expression")))

    @cached_property
    def includes(self) -> tuple[Include, ...]:
        found = []
        for node in self._of("preproc_include"):
            if path := node.child_by_field_name("path"):
                text = _text(path)
                found.append(Include(text.strip('<>"'), text.startswith("<"), _line(node)))
        return tuple(found)

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The source's tokens without comments and contents of strings."""
        return tuple(tokens(self.source.decode("utf-8", errors="replace")))

    @cached_property
    def kernel_bodies(self) -> tuple[int, ...]:
        """Byte offsets just inside the opening brace of every kernel."""
        return tuple(
            body.start_byte + 1
            for node in self._of("function_definition")
            if "__global__" in _words(node) and (body := node.child_by_field_name("body"))
        )

    def _of(self, kind: str) -> Iterator[Node]:
        return (node for node in _walk(self._root) if node.type == kind)


def _walk(root: Node) -> Iterator[Node]:
    """All nodes in source order, without recursion: sources nest as deep as they like."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.children))


def _ancestors(node: Node) -> Iterator[Node]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", errors="replace")


def _line(node: Node) -> int:
    return node.start_point.row + 1


def _name(node: Node) -> str:
    """The name that a definition or declarator declares."""
    inner: Node | None = node
    while inner is not None:
        if inner.type.endswith(("identifier", "_name")) or inner.type == "template_function":
            return _text(inner)
        inner = inner.child_by_field_name("declarator") or _wrapped(inner)
    return ""


def _wrapped(node: Node) -> Node | None:
    """A reference's or bracketed declarator's inside, which the grammar does not name."""
    named = [child for child in node.named_children if child.type.endswith(("declarator", "identifier"))]
    return named[-1] if node.type.endswith("declarator") and named else None


def _words(node: Node) -> set[str]:
    """Specifiers before a definition's or declaration's name."""
    declarator = node.child_by_field_name("declarator")
    before = [c for c in node.children if declarator is None or c.start_byte < declarator.start_byte]
    return {_text(leaf) for child in before for leaf in _walk(child) if not leaf.children}


def _function(node: Node) -> Function:
    words = _words(node)
    outer = list(_ancestors(node))
    template = outer[0] if outer and outer[0].type == "template_declaration" else node
    return Function(
        name=_name(node),
        first_line=_line(template),
        last_line=node.end_point.row + 1,
        is_kernel="__global__" in words,
        is_exported="static" not in words and _has_c_linkage(outer),
    )


def _has_c_linkage(outer: list[Node]) -> bool:
    unnamed = any(n.type == "namespace_definition" and not n.child_by_field_name("name") for n in outer)
    linkage = [n.child_by_field_name("value") for n in outer if n.type == "linkage_specification"]
    return not unnamed and bool(linkage) and linkage[0] is not None and _text(linkage[0]) == '"C"'


def _enclosing(node: Node) -> str:
    return next((_name(n) or "?" for n in _ancestors(node) if n.type == "function_definition"), "")


def _configuration(call: Node) -> Node | None:
    return next((child for child in call.children if child.type == "kernel_call_syntax"), None)


def _launches(calls: Iterator[Node]) -> Iterator[Launch]:
    for call in calls:
        callee, configuration = call.child_by_field_name("function"), _configuration(call)
        if callee and configuration:
            plain = _text(callee).partition("<")[0].rpartition("::")[2].strip()
            arguments = tuple(_text(child) for child in configuration.named_children)
            yield Launch(plain, arguments, _line(call), _enclosing(call))
