"""CUDA C++ as tokens: comments, strings and preprocessor lines stay opaque, and nothing is lost."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

TOKEN = re.compile(
    r"""(?P<ws>[ \t\r\n\f\v]+|\\\r?\n)
      |(?P<com>//(?:\\\n|[^\n])*|/\*.*?\*/)
      |(?P<raw>(?:u8|[uUL])?R"(?P<d>[^()\\ \t\n]{0,16})\(.*?\)(?P=d)")
      |(?P<str>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
      |(?P<chr>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
      |(?P<num>\.?\d(?:[eEpP][+-]|'(?=[0-9a-fA-F])|[\w.])*)
      |(?P<id>[A-Za-z_$][\w$]*)
      |(?P<op><<<|::|->|.)""",
    re.X | re.S,
)
DIRECTIVE = re.compile(r"[ \t]*#(?:\\\r?\n|/\*.*?\*/|[^\n])*", re.S)
BLANK = ("ws", "com", "pp")
CLOSES = {"(": ")", "[": "]", "{": "}"}


@dataclass
class Token:
    """``kind`` is a group of `TOKEN`, ``pp`` for a preprocessor line, or ``gen`` for generated text."""

    kind: str
    text: str
    line: int

    @property
    def blank(self) -> bool:
        return self.kind in BLANK


class SourceError(Exception):
    """The source cannot be understood; carries the line and one sentence."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line, self.message = line, message


def tokenize(source: str, line: int = 1) -> list[Token]:
    """Split source text; the texts of the tokens, joined, are the source again."""
    found: list[Token] = []
    at, line_start = 0, True
    while at < len(source):
        directive = DIRECTIVE.match(source, at) if line_start else None
        match = directive or TOKEN.match(source, at)
        assert match  # the last alternative of TOKEN takes any character
        kind = "pp" if directive else str(match.lastgroup)
        found.append(Token("raw" if kind == "d" else kind, match[0], line))
        line += match[0].count("\n")
        at = match.end()
        line_start = source[at - 1] == "\n" or (line_start and found[-1].kind in ("ws", "com"))
    return found


def text_of(tokens: Sequence[Token]) -> str:
    return "".join(token.text for token in tokens)


class Cursor:
    """Walks over and edits a list of tokens, blank ones skipped; newlines survive every edit."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens

    def text(self, i: int) -> str:
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def kind(self, i: int) -> str:
        return self.tokens[i].kind if 0 <= i < len(self.tokens) else ""

    def after(self, i: int) -> int:
        """Index of the next token that is not blank."""
        i += 1
        while i < len(self.tokens) and self.tokens[i].blank:
            i += 1
        return i

    def before(self, i: int) -> int:
        """Index of the previous token that is not blank, or -1."""
        i -= 1
        while i >= 0 and self.tokens[i].blank:
            i -= 1
        return i

    def closing(self, i: int) -> int:
        """Index of the bracket that closes token `i`."""
        waiting: list[str] = []
        for j in range(i, len(self.tokens)):
            token = self.tokens[j]
            if token.kind != "op":
                continue
            if token.text in CLOSES:
                waiting.append(CLOSES[token.text])
            elif token.text in CLOSES.values():
                if not waiting or waiting.pop() != token.text:
                    break
                if not waiting:
                    return j
        raise SourceError(self.tokens[i].line, f"unbalanced '{self.text(i)}'")

    def opening(self, i: int, opener: str, closer: str) -> int:
        """Index of the bracket that token `i` closes, or -1: over one kind of bracket, backwards."""
        depth = 0
        while i >= 0:
            depth += (self.text(i) == closer) - (self.text(i) == opener)
            if closer == ">" and self.text(i) == ")":
                i = self.opening(i, "(", ")")  # a ')' inside template arguments hides its own '<' and '>'
            if depth == 0:
                return i
            i = self.before(i)
        return -1

    def replace(self, first: int, last: int, text: str) -> None:
        """Tokens `first..last` become `text` on one line and then the newlines that they had."""
        lines = text_of(self.tokens[first : last + 1]).count("\n")
        line = self.tokens[first].line
        self.tokens[first : last + 1] = [Token("gen", text.replace("\n", " ") + "\n" * lines, line)]
