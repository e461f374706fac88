"""What a Coder's host program may be: the launches, order, buffers and streams of the stitched program.

A host program is all of a ``model_new.py`` below the parts that stitch ships.  It orchestrates; it computes
nothing that the program stitch writes does not leave to PyTorch.  Pure; what the text does not show is the
Verifier's to find.
"""

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import partial

from stitch_tui.agents.code_answer import LONGEST_SOURCE, Form, is_elision
from stitch_tui.agents.host.names import (
    ATTRIBUTES,
    INNER,
    LEFT,
    METHODS,
    MODULE,
    MODULES,
    NAMES,
    ONCE,
    STITCH,
    TORCH,
)
from stitch_tui.agents.host.values import Values

BASE = "StitchModule"
FREE = frozenset({"offset", "arena_bytes"})
"""Facts of the program that are the buffer plan, a Coder's to change."""
REFUSED = {
    ast.Try: "it catches errors: what fails must be seen to fail",
    ast.TryStar: "it catches errors: what fails must be seen to fail",
    ast.MatMult: "it multiplies matrices with `@`: that is a kernel's work",
    ast.Match: "it looks into values with `match`",
    ast.Global: "it sets what is not its own with `global`",
}


def form_of(own: str) -> Form:
    """How a Coder's answer with a host program is read.

    Args:
        own: the host program that stitch writes for the same kernels.
    """
    return Form(
        fence="python",
        kinds=frozenset({"python", "py", "python3", ""}),
        entry="class ModelNew",
        mark="def forward",
        openings=("aten", "class", "def", "#", '"""'),
        contract=partial(contract, own=own),
    )


def contract(text: str, own: str) -> list[str]:
    """What keeps a text from being a host program at all; empty when it may be judged."""
    if len(text) > LONGEST_SOURCE:
        return [f"the text has {len(text):,} characters"]
    try:
        tree = ast.parse(text)
        return list(dict.fromkeys([*_left_out(text, tree), *_reasons(tree, ast.parse(own))]))
    except (SyntaxError, ValueError, tokenize.TokenError) as error:
        return [f"it is no Python: {error}"]
    except (RecursionError, MemoryError):
        return ["it is nested too deeply"]


def _reasons(tree: ast.Module, wanted: ast.Module) -> Iterator[str]:
    yield from _shape(tree, wanted)
    yield from _uses(tree, wanted)
    yield from _bound(tree, wanted)
    stated = {ast.unparse(node) for node in Values(wanted).computed(wanted)}
    for node in Values(tree).computed(tree):
        if (text := ast.unparse(node)) not in stated:
            yield f"it computes (`{text[:60]}`) what may be a tensor: that is a kernel's work"


def _left_out(text: str, tree: ast.Module) -> Iterator[str]:
    lines = io.StringIO(text).readline
    comments = [token.string for token in tokenize.generate_tokens(lines) if token.type == tokenize.COMMENT]
    dots = any(isinstance(n, ast.Expr) and ast.unparse(n) == "..." for n in ast.walk(tree))
    if elided := next(filter(is_elision, comments), "..." if dots else ""):
        yield f"something is left out ({elided[:60]!r}): give the whole text, or edits"


def _shape(tree: ast.Module, wanted: ast.Module) -> Iterator[str]:
    """Is it a ``ModelNew`` with the facts and the weights of the program, and are all kernels called?"""
    model, own = _model(tree), _model(wanted)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    bases = [ast.unparse(each) for each in (*model.bases, *model.keywords)] if model else []
    if model is None or own is None or bases != [BASE] or len(classes) != 1:
        yield f"there is no `class ModelNew({BASE})`, or another class beside it"
        return
    others = [statement for statement in tree.body if not _stands_at_the_top(statement)]
    yield from (
        f"line {each.lineno} belongs into `ModelNew`: only it and `aten` stand at the top" for each in others
    )
    if _facts(model) != _facts(own) or len(_stored(tree, "stitch_program")) != 1:
        yield f"`stitch_program` differs in more than {' and '.join(sorted(FREE))}: leave it as it is"
    if _weights(model) != _weights(own):
        yield f"`__init__` does not begin with `{_weights(own)}`"
    missing = sorted(_launched(own) - _launched(tree))
    yield from (f"the kernel {name} is never called" for name in missing)


def _uses(tree: ast.Module, wanted: ast.Module) -> Iterator[str]:
    """Does it use anything but what orders, places and copies, and what is left to PyTorch?"""
    own = {_dotted(node) for node in ast.walk(wanted) if isinstance(node, ast.Attribute)}
    defined = {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    names = {node.id for node in ast.walk(wanted) if isinstance(node, ast.Name)}
    chained = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield f"it imports ({ast.unparse(node)}): torch, aten and nn are there already"
        elif type(node) in REFUSED:
            yield REFUSED[type(node)]
        elif isinstance(node, ast.Name) and not _is_known(node.id, defined | bound | names):
            yield f"`{node.id}` is not for a host program"
        elif isinstance(node, ast.Attribute):
            whole = id(node) not in chained
            yield from _refused(node, own, defined | bound | _stored_on_self(tree), whole=whole)
        if isinstance(node, ast.Name) and node.id in MODULES and id(node) not in chained and _is_read(node):
            yield f"`{node.id}` goes by another name"
        if isinstance(node, ast.FunctionDef):
            marks = {_dotted(getattr(each, "func", each)).rpartition(".")[2] for each in node.decorator_list}
            yield from (f"`@{mark}` is not for a host program" for mark in sorted(marks - LEFT))
    for name in sorted(ONCE):
        if _count(tree, name) > _count(wanted, name):
            yield f"`{name}` leads to the reference or to files: only `__init__` and the facts use it"


def _bound(tree: ast.Module, wanted: ast.Module) -> Iterator[str]:
    """Does it set, define or delete what is not its own?"""
    for name in sorted((_bindings(tree) - _bindings(wanted)).keys()):
        if name in NAMES | MODULE or name.startswith(("Stitch", "stitch_", *INNER)):
            yield f"`{name}` is not its own to bind"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not _is_read(node):
            stored = isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
            if not stored or node.attr in MODULE | {"forward"} or node.attr.startswith(INNER):
                yield f"`{ast.unparse(node)}` is not its own to set or delete"


def _bindings(tree: ast.Module) -> Counter[str]:
    """How often names are bound: variables, arguments, functions, classes."""
    found = Counter[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not _is_read(node):
            found[node.id] += 1
        elif isinstance(node, ast.arg):
            found[node.arg] += 1
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] += 1
    return found


def _is_read(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _count(tree: ast.Module, name: str) -> int:
    return sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _refused(node: ast.Attribute, own: set[str], local: set[str], *, whole: bool) -> Iterator[str]:
    """Why an attribute is not for a host program, called or not: a function may go by another name.

    Args:
        own: dotted names in the program that stitch writes.
        local: names that the text itself defines.
        whole: it is no part of a longer dotted name.
    """
    dotted = _dotted(node)
    first, _, rest = dotted.partition(".")
    if first in ("aten", "nn"):
        if whole and dotted not in own:
            yield f"`{dotted}` is not among the operators that are left to PyTorch: call the kernel"
    elif first == "torch":
        if whole and dotted not in own and rest not in TORCH:
            yield f"`{dotted}` is not for a host program"
    elif (
        dotted not in own
        and node.attr not in METHODS | ATTRIBUTES
        and not (ast.unparse(node.value) == "self" and node.attr in local)
    ):
        yield f"the attribute `{node.attr}` is not for a host program"


def _stored(tree: ast.Module, name: str) -> list[ast.AST]:
    """Where something of that name is assigned, as a variable or as an attribute."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Store)
        and (node.id if isinstance(node, ast.Name) else node.attr) == name
    ]


def _stored_on_self(tree: ast.Module) -> set[str]:
    stored = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
    return {node.attr for node in stored if ast.unparse(node.value) == "self"}


def _is_known(name: str, local: set[str]) -> bool:
    return name in NAMES | STITCH | local


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _dotted(node: ast.expr) -> str:
    """``torch.cuda.graph``; what is not a name at its beginning is left out: ``.resolve``."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id if isinstance(node, ast.Name) else "", *reversed(parts)])


def _stands_at_the_top(statement: ast.stmt) -> bool:
    """The single-file form shares its names with the reference: whatever else there is may clash."""
    text = ast.unparse(statement)
    remark = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return remark or text == "aten = torch.ops.aten" or text.startswith("class ModelNew(")


def _model(tree: ast.Module) -> ast.ClassDef | None:
    return next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ModelNew"), None)


def _facts(model: ast.ClassDef) -> str:
    """The program's facts without the buffer plan."""
    for statement in model.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "stitch_program":
            for call in _calls(statement):
                call.keywords = [k for k in call.keywords if k.arg not in FREE or not _is_number(k.value)]
            return ast.unparse(statement.value)
    return ""


def _is_number(value: ast.expr) -> bool:
    """Is it written in figures alone?"""
    parts = (ast.Constant, ast.BinOp, ast.operator)
    return all(isinstance(node, parts) for node in ast.walk(value))


def _weights(model: ast.ClassDef) -> str:
    """The statement by which the module takes the reference's weights: the first of its ``__init__``."""
    made = [n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    return ast.unparse(made[0].body[0]) if len(made) == 1 else ""


def _launched(tree: ast.AST) -> set[str]:
    """Ids of the kernels that are called: ``kernel("s01", x)``, by whatever name."""
    named = [call for call in _calls(tree) if isinstance(call.func, ast.Name) and call.args]
    first = [call.args[0] for call in named if not _dotted(call.func).lower().startswith("stitch")]
    return {a.value for a in first if isinstance(a, ast.Constant) and isinstance(a.value, str)}
