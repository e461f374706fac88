"""What a Coder's host program may be: the launches, order, buffers and streams of the stitched program.

A host program is all of a ``model_new.py`` below the parts that stitch ships.  It orchestrates; it computes
nothing that the program stitch writes does not leave to PyTorch.  Pure; what the text does not show is the
Verifier's to find.
"""

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import partial

from stitch_tui.agents.code_answer import LONGEST_SOURCE, Form, is_elision

BASE = "StitchModule"
FREE = frozenset({"offset", "arena_bytes"})
"""Facts of the program that are the buffer plan, a Coder's to change."""
TORCH = {
    *("empty", "empty_like", "empty_strided", "_foreach_copy_", "no_grad", "inference_mode"),
    *("device", "Size", "cuda.device", "cuda.current_device", "cuda.is_current_stream_capturing"),
    *("cuda.Stream", "cuda.Event", "cuda.CUDAGraph", "cuda.graph", "cuda.stream", "cuda.synchronize"),
    *("cuda.current_stream", "cuda.default_stream", "cuda.graph_pool_handle"),
}
METHODS = {
    *("copy_", "view", "view_as", "reshape", "contiguous", "clone", "detach", "record_stream", "data_ptr"),
    *("numel", "size", "stride", "dim", "element_size", "is_contiguous", "is_inference", "new_empty"),
    *("wait_stream", "wait_event", "record_event", "record", "synchronize", "query", "replay", "reset"),
    *("pool", "capture_begin", "capture_end", "enter", "invalidate", "__init__"),
    *("append", "clear", "copy", "extend", "get", "items", "keys", "pop", "setdefault", "update", "values"),
}
"""Methods that order, place or copy, and those of containers."""
ATTRIBUTES = {
    *("shape", "dtype", "device", "type", "index", "ndim", "itemsize", "nbytes", "is_cuda", "T", "mT"),
    *("cuda_stream", "_stitch", "stitch_program", "training"),
}
NAMES = {
    *("torch", "aten", "nn", "Path", "__file__", "super", "property", "staticmethod"),
    *("isinstance", "type", "id", "float", "int", "bool", "str", "tuple", "list", "dict", "set"),
    *("len", "range", "zip", "enumerate", "sorted", "reversed", "any", "all", "min", "max", "next", "iter"),
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
    except (SyntaxError, ValueError) as error:
        return [f"it is no Python: {error}"]
    wanted = ast.parse(own)
    return list(dict.fromkeys([*_left_out(text, tree), *_shape(tree, wanted), *_uses(tree, wanted)]))


def _left_out(text: str, tree: ast.Module) -> Iterator[str]:
    lines = io.StringIO(text).readline
    comments = [token.string for token in tokenize.generate_tokens(lines) if token.type == tokenize.COMMENT]
    dots = any(isinstance(n, ast.Expr) and ast.unparse(n) == "..." for n in ast.walk(tree))
    if elided := next(filter(is_elision, comments), "..." if dots else ""):
        yield f"something is left out ({elided[:60]!r}): give the whole text, or edits"


def _shape(tree: ast.Module, wanted: ast.Module) -> Iterator[str]:
    """Is it a ``ModelNew`` with the facts and the weights of the program, and are all kernels called?"""
    model, own = _model(tree), _model(wanted)
    if model is None or own is None or [ast.unparse(base) for base in model.bases] != [BASE]:
        yield f"there is no `class ModelNew({BASE})`"
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
    chained = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield f"it imports ({ast.unparse(node)}): torch, aten and nn are there already"
        elif isinstance(node, ast.Try):
            yield "it catches errors: what fails must be seen to fail"
        elif isinstance(node, ast.MatMult):
            yield "it multiplies matrices with `@`: that is a kernel's work"
        elif isinstance(node, ast.Name) and not _is_known(node.id, defined | bound):
            yield f"`{node.id}` is not for a host program"
        elif isinstance(node, ast.Attribute):
            whole = id(node) not in chained
            yield from _refused(node, own, defined | bound | _stored_on_self(tree), whole=whole)


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
        and not (first == "self" and node.attr in local)
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
    return name in NAMES or name in local or name.startswith(("Stitch", "stitch_"))


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
                call.keywords = [keyword for keyword in call.keywords if keyword.arg not in FREE]
            return ast.unparse(statement.value)
    return ""


def _weights(model: ast.ClassDef) -> str:
    """The statement by which the module takes the reference's weights: the first of its ``__init__``."""
    made = [n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    return ast.unparse(made[0].body[0]) if len(made) == 1 else ""


def _launched(tree: ast.AST) -> set[str]:
    """Ids of the kernels that are called: ``kernel("s01", x)``, by whatever name."""
    named = [call for call in _calls(tree) if isinstance(call.func, ast.Name) and call.args]
    first = [call.args[0] for call in named if not _dotted(call.func).lower().startswith("stitch")]
    return {a.value for a in first if isinstance(a, ast.Constant) and isinstance(a.value, str)}
