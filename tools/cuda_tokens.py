"""The tokens of CUDA C++, without comments and without what stands inside strings.

A lexer and not the syntax tree: macro bodies count, and so does what does not parse.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SPLICE = r"(?:\\\r?\n)"
TOKEN = re.compile(
    rf"""
      (?P<skip>   \s+ | {_SPLICE} | //(?:{_SPLICE}|[^\n])* | /\*.*?(?:\*/|\Z) )
    | (?P<raw>    (?:u8|[uUL])?R"(?P<mark>[^()\\\s]{{0,16}})\(.*?(?:\)(?P=mark)"|\Z) )
    | (?P<string> (?:u8|[uUL])?"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z) )
    | (?P<char>   (?:u8|[uUL])?'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z) )
    | (?P<number> \.?\d(?:[eEpP][+-]|'?[\w.])* )
    | (?P<name>   [^\W\d](?:{_SPLICE}|\w)* )
    | (?P<sign>   <<<|>>>|::|->\*?|\+\+|--|&&|\|\||[-+*/%&|^=!<>]=|\#\#|. )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """One token; a string or character literal is reduced to its empty quotes."""

    text: str
    line: int
    """From 1."""
    is_name: bool = False
    """An identifier or a keyword."""


def tokens(source: str) -> Iterator[Token]:
    """All tokens in order; anything at all lexes."""
    line = 1
    for match in TOKEN.finditer(source):
        kind = match.lastgroup
        text = match[0]
        if kind in ("raw", "string", "mark"):
            yield Token('""', line)
        elif kind == "char":
            yield Token("''", line)
        elif kind == "name":
            yield Token(re.sub(_SPLICE, "", text), line, is_name=True)
        elif kind != "skip":
            yield Token(text, line)
        line += text.count("\n")
