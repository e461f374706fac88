"""The sentences below the fields of a class, read from its source when somebody wants them.

Pydantic can read them too, while it makes the class; that costs each start of stitch 40 ms.
"""

import ast
import inspect
from functools import cache
from itertools import pairwise
from textwrap import dedent


@cache
def sentences(described: type) -> dict[str, str]:
    """Field -> the string below its annotation, for the fields that have one, inherited ones too."""
    found: dict[str, str] = {}
    for owner in reversed(described.__mro__):
        if owner.__module__ == described.__module__:
            found |= _own(owner)
    return found


def _own(described: type) -> dict[str, str]:
    (parsed,) = ast.parse(dedent(inspect.getsource(described))).body
    assert isinstance(parsed, ast.ClassDef)
    found = {}
    for field, below in pairwise(parsed.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match below:
                case ast.Expr(ast.Constant(str(text))):
                    found[field.target.id] = inspect.cleandoc(text)
    return found
