"""A view of Python through its syntax tree: calls by dotted name, imports, classes, handlers, assignments."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import tree_sitter_python
from tree_sitter import Language, Node, Parser

_LANGUAGE = Language(tree_sitter_python.language())


@dataclass(frozen=True)
class Name:
    """A dotted name where it stands, with aliases of imports resolved; lines count from 1."""

    text: str
    line: int
    scope: str
    """Dotted names of the classes and functions around it; empty at the top."""


@dataclass(frozen=True)
class Handler:
    """An ``except`` clause: the calls in it, and what is tried."""

    calls: tuple[Name, ...]
    line: int
    scope: str
    returns: bool
    """It returns or assigns a value, rather than raising or cleaning up."""


class PythonSource:
    """One source, parsed once."""

    def __init__(self, text: str) -> None:
        self._root = Parser(_LANGUAGE).parse(text.encode()).root_node

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Local name -> the dotted name that it was imported as."""
        found = {}
        for node in self._of("import_statement", "import_from_statement"):
            module = _field(node, "module_name")
            prefix = f"{_text(module)}." if module else ""
            for item in node.children_by_field_name("name"):
                target = _field(item, "name") if item.type == "aliased_import" else item
                local = _field(item, "alias") if item.type == "aliased_import" else None
                name = _text(target) if target else ""
                found[_text(local) if local else name.partition(".")[0]] = (
                    prefix + name if prefix or local else name.partition(".")[0]
                )
        return found

    @cached_property
    def imports(self) -> tuple[Name, ...]:
        """Every imported name, as ``module`` or ``module.name``."""
        found = []
        for node in self._of("import_statement", "import_from_statement"):
            module = _field(node, "module_name")
            for item in node.children_by_field_name("name"):
                target = _field(item, "name") if item.type == "aliased_import" else item
                name = _text(target) if target else ""
                found.append(Name(f"{_text(module)}.{name}" if module else name, _line(node), _scope(node)))
            if module and not node.children_by_field_name("name"):
                found.append(Name(f"{_text(module)}.*", _line(node), _scope(node)))
        return tuple(found)

    @cached_property
    def calls(self) -> tuple[Name, ...]:
        """Every call."""
        return tuple(self._calls_in(self._root))

    @cached_property
    def assigned(self) -> tuple[Name, ...]:
        """Attributes that are assigned to, as ``torch.cuda.Event``; ``setattr`` of a module among them."""
        found = []
        for node in self._of("assignment", "augmented_assignment"):
            left = _field(node, "left")
            if left is not None and left.type == "attribute":
                found.append(self._name(left))
        for node in self._of("call"):
            function, arguments = _field(node, "function"), _field(node, "arguments")
            if function is not None and _text(function) == "setattr" and arguments is not None:
                parts = arguments.named_children
                if len(parts) > 1:
                    dotted = f"{self.resolved(_text(parts[0]))}.{_text(parts[1]).strip(chr(34) + chr(39))}"
                    found.append(Name(dotted, _line(node), _scope(node)))
        return tuple(found)

    @cached_property
    def matrix_products(self) -> tuple[Name, ...]:
        """Uses of the operator ``@``."""
        found = []
        for node in self._of("binary_operator"):
            operator = _field(node, "operator")
            if operator is not None and operator.type == "@":
                found.append(Name("@", _line(node), _scope(node)))
        return tuple(found)

    @cached_property
    def classes(self) -> dict[str, tuple[str, ...]]:
        """Class -> its bases."""
        found = {}
        for node in self._of("class_definition"):
            bases = _field(node, "superclasses")
            found[_text(node.child_by_field_name("name"))] = tuple(
                self.resolved(_text(base)) for base in (bases.named_children if bases else ())
            )
        return found

    @cached_property
    def functions(self) -> dict[str, tuple[str, ...]]:
        """Dotted name of each function -> its decorators."""
        found: dict[str, tuple[str, ...]] = {}
        for node in self._of("function_definition"):
            name = ".".join(part for part in (_scope(node), _text(node.child_by_field_name("name"))) if part)
            around = node.parent
            marks = around.named_children if around and around.type == "decorated_definition" else []
            found[name] = tuple(
                self.resolved(_text(mark).lstrip("@").partition("(")[0].strip())
                for mark in marks
                if mark.type == "decorator"
            )
        return found

    @cached_property
    def bound(self) -> tuple[tuple[str, str], ...]:
        """What is assigned the result of a call: (name or dotted attribute, the call)."""
        found = []
        for node in self._of("assignment"):
            left, right = _field(node, "left"), _field(node, "right")
            function = _field(right, "function") if right is not None and right.type == "call" else None
            if left is not None and function is not None and left.type in ("identifier", "attribute"):
                found.append((_text(left), self.resolved(_text(function))))
        return tuple(found)

    @cached_property
    def mentions(self) -> dict[str, int]:
        """How often each identifier stands in the source, names of definitions left out."""
        found: dict[str, int] = {}
        for node in self._of("identifier"):
            around = node.parent
            defines = around is not None and around.type in ("function_definition", "class_definition")
            if not defines or (around and around.child_by_field_name("name") != node):
                found[_text(node)] = found.get(_text(node), 0) + 1
        return found

    @cached_property
    def handlers(self) -> tuple[Handler, ...]:
        return tuple(
            Handler(
                tuple(self._calls_in(node)),
                _line(node),
                _scope(node),
                any(inner.type in ("return_statement", "assignment") for inner in _walk(node)),
            )
            for node in self._of("except_clause")
        )

    def resolved(self, dotted: str) -> str:
        """A dotted name with its first part as it was imported."""
        first, dot, rest = dotted.replace(" ", "").partition(".")
        return self.aliases.get(first, first) + dot + rest

    def _calls_in(self, root: Node) -> Iterator[Name]:
        for node in _walk(root):
            function = _field(node, "function") if node.type == "call" else None
            if function is not None:
                yield self._name(function)

    def _name(self, node: Node) -> Name:
        return Name(self.resolved(_text(node)), _line(node), _scope(node))

    def _of(self, *types: str) -> Iterator[Node]:
        return (node for node in _walk(self._root) if node.type in types)


def _walk(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.children))


def _scope(node: Node) -> str:
    parts: list[str] = []
    around = node.parent
    while around is not None:
        if around.type in ("function_definition", "class_definition"):
            parts.append(_text(around.child_by_field_name("name")))
        around = around.parent
    return ".".join(reversed(parts))


def _field(node: Node, name: str) -> Node | None:
    return node.child_by_field_name(name)


def _text(node: Node | None) -> str:
    return node.text.decode(errors="replace") if node is not None and node.text else ""


def _line(node: Node) -> int:
    return int(node.start_point[0]) + 1
