"""Python and CUDA source put into another file: renamed, quoted, and kept from clashing."""

import ast
import io
import tokenize
from collections.abc import Iterator

from stitch_tui.tools.errors import UsageError


def raw(text: str) -> str:
    """`text` as a literal that reads as it is: a raw triple-quoted string where that is possible."""
    plain = all(character.isprintable() or character in "\n\t" for character in text)
    for quote in ("'''", '"""'):
        if plain and quote not in text and not text.endswith((quote[0], "\\")):
            return f"r{quote}{text}{quote}"
    return repr(text)


def rename(source: str, old: str, new: str) -> str:
    """Rename a class in Python source: every use of the name, but no attribute and no keyword argument."""
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for index in range(len(tokens) - 1, -1, -1):
        token = tokens[index]
        if token.type != tokenize.NAME or token.string != old:
            continue
        before = tokens[index - 1].string if index else ""
        after = tokens[index + 1].string
        if before == "." or (after == "=" and before in ("(", ",")):
            continue
        row, column = token.start
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines)


def refuse_clashes(reference: str, loader: str) -> None:
    """Raise where the reference defines a name that the loader uses: both share one namespace.

    Raises:
        UsageError: with the names.
    """
    ours = {name for statement in ast.parse(loader).body for name in _binds(statement)}
    theirs = {
        name
        for statement in ast.parse(reference).body
        if not isinstance(statement, (ast.Import, ast.ImportFrom))
        for name in _binds(statement)
    }
    if clash := sorted(theirs & (ours | {"aten", "torch", "nn", "ModelNew"})):
        raise UsageError(
            f"the reference defines {', '.join(clash)}, which the single-file form needs",
            advice="rename it, or export the folder form",
        )


def _binds(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def futures_first(text: str) -> str:
    """``from __future__`` lines of the embedded reference belong at the top of the file."""
    tree = ast.parse(_without_futures(text))
    futures = [line for line in text.splitlines() if line.startswith("from __future__ import ")]
    if not futures:
        return text
    assert isinstance(tree.body[0], ast.Expr)
    lines = _without_futures(text).splitlines()
    end = tree.body[0].end_lineno or 1
    return "\n".join([*lines[:end], "", *dict.fromkeys(futures), *lines[end:]]) + "\n"


def _without_futures(text: str) -> str:
    return "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith("from __future__ import ")
    )
