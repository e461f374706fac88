"""Views of a CUDA source by its syntax tree: calls, includes, kernels; comments never count."""

from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

_LANGUAGE = Language(tree_sitter_cuda.language())


@dataclass(frozen=True)
class Mention:
    """A name or text at a line (from 1) of the source."""

    text: str
    line: int


@dataclass(frozen=True)
class CudaSource:
    """What one ``.cu`` text says; tuples in the order of the source."""

    calls: tuple[Mention, ...]
    """Functions called by a plain or qualified name: ``std::exit`` as ``exit``."""
    includes: tuple[Mention, ...]
    strings: tuple[Mention, ...]
    """Contents of string literals, quotes removed."""
    functions: frozenset[str]
    """Names that the source itself defines."""
    kernels: tuple[str, ...]
    """Names of ``__global__`` functions."""


def read_source(text: str) -> CudaSource:
    """Parse a source; broken text is read as far as it makes sense."""
    tree = Parser(_LANGUAGE).parse(text.encode())
    nodes = list(_walk(tree.root_node))
    definitions = [node for node in nodes if node.type == "function_definition"]
    names = {id(node): _defined_name(node) for node in definitions}
    return CudaSource(
        calls=tuple(_calls(nodes)),
        includes=tuple(
            Mention(_text(path).strip('<>"'), node.start_point[0] + 1)
            for node in nodes
            if node.type == "preproc_include" and (path := node.child_by_field_name("path"))
        ),
        strings=tuple(
            Mention(_text(node), node.start_point[0] + 1) for node in nodes if node.type == "string_content"
        ),
        functions=frozenset(name for name in names.values() if name),
        kernels=tuple(
            names[id(node)] for node in definitions if _text(node).lstrip().find("__global__") >= 0 and names[id(node)]
        ),
    )


def _walk(root: Node) -> Iterator[Node]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.children))


def _calls(nodes: list[Node]) -> Iterator[Mention]:
    for node in nodes:
        if node.type != "call_expression":
            continue
        function = node.child_by_field_name("function")
        if function is not None and function.type == "qualified_identifier":
            function = function.child_by_field_name("name")
        if function is not None and function.type == "identifier":
            yield Mention(_text(function), node.start_point[0] + 1)


def _defined_name(definition: Node) -> str:
    declarator = definition.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    return _text(name) if name is not None else ""


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")
