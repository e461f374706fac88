"""Which expressions of a host program are plain values: numbers, strings, containers of Python's.

Whatever is not known to be one may be a tensor, and arithmetic on tensors is a kernel's work.  Pure.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from enum import StrEnum

COUNTS = {"numel", "stride", "dim", "element_size", "data_ptr", "is_contiguous", "query", "is_inference"}
COUNTED = {"ndim", "itemsize", "nbytes", "index", "cuda_stream", "is_cuda", "type", "training"}
NUMBERS = {"int", "float", "bool", "str", "len", "id", "isinstance", "stitch_version", "stitch_stream"}
CONTAINERS = {"tuple", "list", "dict", "set", "range", "zip", "enumerate", "sorted", "reversed"}
VIEWS = {"keys", "values", "items"}
READERS = {"int", "float", "max", "min", "sorted", "any", "all"}
"""Functions that compute with what they are given."""
ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Kind(StrEnum):
    """What a plain value is."""

    NUMBER = "number"
    """Or a string: nothing with elements that could be tensors."""
    CONTAINER = "container"


class Values:
    """The plain values of one text.

    Args:
        tree: it, parsed.
    """

    def __init__(self, tree: ast.AST) -> None:
        self._bound: dict[str, list[Kind | ast.expr | None]] = defaultdict(list)
        self._known: dict[str, Kind | None] = {}
        for node in ast.walk(tree):
            for name, value in _bindings(node):
                self._bound[name].append(value)

    def computed(self, tree: ast.AST) -> Iterator[ast.AST]:
        """Where something is computed from what may be a tensor."""
        for node in ast.walk(tree):
            match node:
                case ast.BinOp(left=left, right=right):
                    operands = [left, right]
                case ast.AugAssign(target=target, value=value):
                    operands = [target, value]
                case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert(), operand=operand):
                    operands = [operand]
                case ast.Compare(left=left, ops=ops, comparators=others):
                    operands = [left, *others] if any(isinstance(op, ORDER) for op in ops) else []
                case ast.Subscript(slice=index):
                    operands = [index]
                case ast.Call(func=ast.Name(id=name), args=args):
                    operands = [arg for arg in args if name in READERS]
                case _:
                    continue
            if any(self.kind(operand) is None for operand in operands):
                yield node

    def kind(self, node: ast.expr) -> Kind | None:
        """What an expression is; None: perhaps a tensor."""
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.UnaryOp(op=ast.Not()):
                return Kind.NUMBER
            case ast.List() | ast.Set() | ast.Dict() | ast.ListComp() | ast.SetComp() | ast.DictComp():
                return Kind.CONTAINER
            case ast.GeneratorExp():
                return Kind.CONTAINER
            case ast.Tuple(elts=elements):
                # As an index a tuple is all of its parts.
                return Kind.CONTAINER if all(map(self.kind, elements)) else None
            case ast.Slice(lower=lower, upper=upper, step=step):
                return self._all([part for part in (lower, upper, step) if part])
            case ast.UnaryOp(operand=operand):
                return self.kind(operand)
            case ast.BinOp(left=left, right=right):
                return self._all([left, right])
            case ast.BoolOp(values=values):
                return self._all(values)
            case ast.IfExp(body=body, orelse=other):
                return self._all([body, other])
            case ast.NamedExpr(value=value):
                return self.kind(value)
            case ast.Compare(left=left, ops=ops, comparators=others):
                alike = all(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in ops)
                return Kind.NUMBER if alike or self._all([left, *others]) else None
            case ast.Subscript(value=ast.Attribute(attr="shape")):
                return Kind.NUMBER
            case ast.Call(func=func, args=args):
                return self._called(func, args)
            case ast.Attribute(attr="shape"):
                return Kind.CONTAINER
            case ast.Attribute(attr=attr) if attr in COUNTED:
                return Kind.NUMBER
            case ast.Name() | ast.Attribute():
                return self._named(ast.unparse(node))
        return None

    def _called(self, func: ast.expr, args: list[ast.expr]) -> Kind | None:
        match func:
            case ast.Name(id=name) if name in NUMBERS:
                return Kind.NUMBER
            case ast.Name(id=name) if name in CONTAINERS:
                return Kind.CONTAINER
            case ast.Name(id="max" | "min"):
                return self._all(args)
            case ast.Attribute(attr="size"):
                return Kind.NUMBER if args else Kind.CONTAINER
            case ast.Attribute(attr=name) if name in COUNTS:
                return Kind.NUMBER
            case ast.Attribute(attr=name) if name in VIEWS:
                return Kind.CONTAINER
        return None

    def _all(self, nodes: list[ast.expr]) -> Kind | None:
        kinds = {self.kind(node) for node in nodes}
        if None in kinds:
            return None
        return Kind.CONTAINER if Kind.CONTAINER in kinds else Kind.NUMBER

    def _named(self, name: str) -> Kind | None:
        """What every value of a variable or of an attribute of ``self`` is."""
        if name not in self._known:
            self._known[name] = Kind.NUMBER  # while it is looked at: ``n = n + 1`` says nothing new
            found = {
                v if isinstance(v, Kind) or v is None else self.kind(v) for v in self._bound.get(name, [None])
            }
            self._known[name] = None if None in found else max(found, key=[*Kind].index)
        return self._known[name]


def _bindings(node: ast.AST) -> Iterator[tuple[str, Kind | ast.expr | None]]:
    """Names that a node binds, and to what; None: to anything."""
    match node:
        case ast.arg(arg=name):
            yield name, None
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _bound(target, value)
        case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            yield from _bound(target, value)
        case ast.AugAssign(target=target, value=value):
            yield from _bound(target, value)
        case ast.For(target=target, iter=iterable) | ast.comprehension(target=target, iter=iterable):
            yield from _looped(target, iterable)
        case ast.withitem(optional_vars=ast.expr() as target):
            yield from _bound(target, None)


def _bound(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    match target, value:
        case (
            (ast.Tuple(elts=targets) | ast.List(elts=targets)),
            (ast.Tuple(elts=parts) | ast.List(elts=parts)),
        ) if len(targets) == len(parts):
            for each, part in zip(targets, parts, strict=True):
                yield from _bound(each, part)
        case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), _):
            for each in targets:
                yield from _bound(each, None)
        case ast.Starred(value=inner), _:
            yield from _bound(inner, None)
        case ((ast.Name() | ast.Attribute()), _):
            yield ast.unparse(target), value


def _looped(target: ast.expr, iterable: ast.expr) -> Iterator[tuple[str, Kind | ast.expr | None]]:
    match target, iterable:
        case ast.Name(id=name), ast.Call(func=ast.Name(id="range") | ast.Attribute(attr="keys")):
            yield name, Kind.NUMBER
        case ast.Name(id=name), (ast.Tuple(elts=parts) | ast.List(elts=parts)):
            for part in parts:
                yield name, part
        case (
            ast.Tuple(elts=[ast.Name(id=name), *rest]),
            ast.Call(func=ast.Name(id="enumerate") | ast.Attribute(attr="items")),
        ):
            yield name, Kind.NUMBER
            for each in rest:
                yield from _bound(each, None)
        case _:
            yield from _bound(target, None)
