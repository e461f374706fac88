"""C++ headers as chunks: each documented declaration, and the bare prototypes of headers without comments."""

import re
from collections.abc import Iterator

from stitch_tui.tools.docs.chunk import Chunk, Lines

_COMMENT = re.compile(
    r"/\*[*!](?!<)(?P<block>.*?)\*/|(?P<lines>(?:^[ \t]*//[/!](?!<)[^\n]*\n)+)", re.DOTALL | re.MULTILINE
)
_ANY_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)
_PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_STAR = re.compile(r"^[ \t]*(?:\*(?!/)|//[/!])[ \t]?", re.MULTILINE)
_PRIVATE = re.compile(r"[\\@](?:internal|cond)\b.*?[\\@](?:endinternal|endcond)\b", re.DOTALL)
_GROUPING = re.compile(
    r"^[ \t]*[\\@](?:ingroup|addtogroup|defgroup|name|rst|endrst|internal|notefnerr|note_\w+|[{}])[^\n]*$",
    re.MULTILINE,
)
_MARKUP = re.compile(
    r"[\\@](?:brief|details|p|c|e|b|ref|copydoc|link|endlink|endcode|code|sa)\b ?(?:\{\.\w+\})?"
)
_TAG = re.compile(r"[\\@](param|tparam|returns?|retval|note|warning|see|sa|remarks?)\b(?:\[[\w, ]+\])?")
_NOT_DOCUMENTATION = re.compile(r"Copyright|SPDX-License|^\W*$", re.IGNORECASE)
_OPENING_GROUP = re.compile(r"[\\@](?:defgroup|file|mainpage|page|namespace)\b")
_NAMED = re.compile(r"([A-Za-z_]\w*|operator\s*[^\s\w(]{1,3})\s*\(")
_TYPE = re.compile(r"\b(?:enum|struct|union|class)\s+(?:class\s+)?(?:__\w+__\s+)?(\w+)?")
_POINTER_TYPE = re.compile(r"\([\w\s]*\*\s*(\w+)\s*\)\s*\(")
"""Of functions: ``typedef void (CUDART_CB *cudaStreamCallback_t)(...)``."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_STATEMENT = re.compile(r"([^;{}]*+)([;{}]|\Z)")
_VALUE = re.compile(r"([A-Za-z_]\w*)[ \t]*(?:=[^,;{}]*)?(?:,|(?=\s*\}))")
_DEFINED = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+?)[ \t]*/\*[*!]<(.*?)\*/", re.MULTILINE | re.DOTALL
)
_DECORATION = re.compile(
    r"\b(?:__[a-z]\w*__|_?CCCL_\w+|CUB_RUNTIME_FUNCTION|_LIBCUDACXX_\w+|_*[A-Z0-9_]+_DECL(?:ARATION)?_*)\b"
)
_ENUMERATION = re.compile(
    r"^[ \t]*(?:typedef\s+enum\s*\w*\s*\{[^{}]*\}\s*(\w+)|enum\s+(?:class\s+)?(\w+)[^;{}]*\{[^{}]*\})\s*;",
    re.MULTILINE,
)
_LABEL = re.compile(r"^(?:public|protected|private)\s*:")
_NO_BODY = re.compile(r"__DEF_IF_HOST")
_NO_DECLARATION = {
    *("return", "if", "for", "while", "switch", "else", "asm", "typedef", "using", "do", "case", "default"),
    *("throw", "delete", "new", "static_assert", "friend"),
}
_KEYWORDS = {
    "extern",
    "const",
    "if",
    "for",
    "while",
    "switch",
    "sizeof",
    "decltype",
    "noexcept",
    "alignas",
    "defined",
    "requires",
}
MOST_BODY = 12_000
"""Characters of a type's body that are kept with it."""
MOST_SIGNATURE = 1500
"""Characters of a prototype, its indentation left out: what is longer is a body that was taken for one."""
MOST_OVERLOADS = 12


def chunks(source: str, *, bare: bool = True) -> Iterator[Chunk]:
    """The documented declarations of a header, and with `bare` the prototypes that have no comment."""
    source = _NO_BODY.sub(lambda match: ";".ljust(len(match[0])), source)
    lines, covered, known = Lines(source), 0, set[str]()
    for match in _COMMENT.finditer(source):
        raw = match["block"] if match["block"] is not None else match["lines"]
        if match.start() < covered or _NOT_DOCUMENTATION.search(raw[:600]):
            continue
        text = _plain(raw)
        if not text or _OPENING_GROUP.search(raw):
            continue
        signature, end = _declaration(source, match.end())
        name, aliases = _names(signature)
        if not name or name in _KEYWORDS or not (bare or _is_of_interest(name, signature)):
            continue
        covered = end
        known.add(name)
        line = lines.at(match.start())
        yield Chunk(name, _one_line(signature), f"{_tidy(signature)}\n\n{text}", line, aliases=aliases)
    yield from _constants(source, lines)
    if bare:
        code = _without_comments(source)
        yield from _enumerations(source, code, lines, known)
        yield from _prototypes(code, lines, known)


def _is_of_interest(name: str, signature: str) -> bool:
    """Is it more than a detail of some class: a type, or a function that others call?"""
    code = _ANY_COMMENT.sub(" ", signature)
    is_callable = "(" in code and not name.startswith(("_", "operator"))
    return is_callable or bool(_TYPE.match(re.sub(r"^\s*template\s*<.*>\s*", "", code, flags=re.DOTALL)))


def _plain(raw: str) -> str:
    """A comment's words without stars and the marks of documentation tools."""
    text = _PRIVATE.sub("", _STAR.sub("", raw))
    text = _GROUPING.sub("", text)
    text = _TAG.sub(r"\1:", _MARKUP.sub("", text)).replace("::", " ::").replace(" ::", "")
    lines = [line.rstrip() for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _declaration(source: str, at: int) -> tuple[str, int]:
    """What is declared behind a comment, and where it ends; a type's short body belongs to it."""
    at = _skipped(source, at)
    if value := _VALUE.match(source, at):
        return value[0].rstrip(", \n"), value.end()
    depth, place = 0, at
    while place < len(source):
        char = source[place]
        if source.startswith(("/*", "//"), place):
            found = _ANY_COMMENT.match(source, place)
            place = found.end() if found else place + 2
            continue
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif depth <= 0 and char == ";":
            return source[at:place], place
        elif depth <= 0 and char == "{":
            break
        elif depth <= 0 and char == "#" and source[place - 1] == "\n":
            return source[at:place], place
        place += 1
        if place - at > 6000:
            return "", at
    head = source[at:place]
    if not re.match(r"\s*(typedef\s+)?(enum|struct|union)\b", head):
        return head, place
    end = _closed(source, place)
    body = _ANY_COMMENT.sub("", source[place:end])
    if end - place > MOST_BODY or (not re.search(r"\benum\b", head) and "(" in body):
        return head, place
    stop = source.find(";", end)
    return source[at : stop if 0 <= stop - end < 200 else end], end


def _skipped(source: str, at: int) -> int:
    """Behind white space, ordinary comments and preprocessor lines."""
    while True:
        rest = re.compile(r"\s+").match(source, at)
        at = rest.end() if rest else at
        if source.startswith("#", at):
            found = _PREPROCESSOR.match(source, source.rfind("\n", 0, at) + 1)
            end = found.end() if found else at + 1
            opened = source.rfind("/*", at, end)
            at = max(end, source.find("*/", opened) + 2) if opened >= 0 else end
        elif source.startswith(("/*", "//"), at) and not source.startswith(("/**", "///", "//!"), at):
            comment = _ANY_COMMENT.match(source, at)
            at = comment.end() if comment else at + 2
        else:
            return at


def _closed(source: str, at: int) -> int:
    depth = 0
    for match in re.compile(r"/\*.*?\*/|//[^\n]*|[{}]", re.DOTALL).finditer(source, at):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0 and match[0] == "}":
            return match.end()
    return len(source)


def _names(declaration: str) -> tuple[str, str]:
    """The identifier that is declared, and further ones that lead to it."""
    code = _ANY_COMMENT.sub(" ", declaration)
    head, brace, body = code.partition("{")
    if brace:
        inside, _, tail = body.rpartition("}")
        named = _TYPE.search(head)
        after = _WORD.search(tail)
        name = after[0] if after else (named[1] or "" if named else "")
        values = [_WORD.search(part) for part in inside.split(",")] if re.search(r"\benum\b", head) else []
        return name, " ".join(dict.fromkeys(value[0] for value in values if value))
    if head.lstrip().startswith("typedef"):
        pointer = _POINTER_TYPE.search(head)
        return (pointer[1] if pointer else _WORD.findall(head)[-1]), ""
    if value := _VALUE.fullmatch(f"{head.strip()},"):
        return value[1], ""
    head = _DECORATION.sub(" ", re.sub(r"^\s*template\s*<.*?>\s*(?=[\w_])", "", head, flags=re.DOTALL))
    for match in _NAMED.finditer(head):
        if match[1] not in _KEYWORDS and not match[1].isupper():
            return match[1], ""
    if named := _TYPE.search(head):
        return named[1] or "", ""
    words = _WORD.findall(head.partition("=")[0])
    return (words[-1], "") if len(words) > 1 else ("", "")


def _without_comments(source: str) -> str:
    """The code alone, each character where it was: comments and the preprocessor's lines are spaces."""
    code = _ANY_COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else re.sub(r"[^\n]", " ", m[0]), source)
    return _PREPROCESSOR.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), code)


def _enumerations(source: str, code: str, lines: Lines, known: set[str]) -> Iterator[Chunk]:
    """Enumerations without documentation, with what is said beside their values."""
    for match in _ENUMERATION.finditer(code):
        text = source[match.start() : match.end()]
        name, aliases = _names(text)
        if name and name not in known and len(text) <= MOST_BODY:
            known.add(name)
            yield Chunk(name, _one_line(text), _tidy(text), lines.at(match.start()), aliases=aliases)


def _prototypes(code: str, lines: Lines, known: set[str]) -> Iterator[Chunk]:
    """Function prototypes without documentation, overloads of one name together."""
    found: dict[str, list[tuple[int, str]]] = {}
    for match in _STATEMENT.finditer(code):
        statement = _LABEL.sub("", match[1].strip()).strip()
        before, paren, _ = statement.partition("(")
        is_short = len(_tidy(statement)) <= MOST_SIGNATURE
        if match[2] == "}" or not paren or not is_short or not _declares(before):
            continue
        name, _ = _names(statement)
        if not name or name in known:
            continue
        line = lines.at(match.start() + len(match[1]) - len(match[1].lstrip()))
        found.setdefault(name, []).append((line, _tidy(statement)))
    for name, overloads in found.items():
        line, first = overloads[0]
        text = "\n".join(dict.fromkeys(f"{signature};" for _, signature in overloads[:MOST_OVERLOADS]))
        yield Chunk(name, _one_line(first), text, line)


def _declares(before: str) -> bool:
    """Is what stands before a parenthesis a type and a name, and not a call in some function's body?"""
    words = _WORD.findall(before)
    if len(words) < 2 or words[0] in _NO_DECLARATION or any(mark in before for mark in '="?!|'):
        return False
    return bool(re.search(r"[\s*&>]\w+\s*$", before.strip()))


def _constants(source: str, lines: Lines) -> Iterator[Chunk]:
    """Constants of the preprocessor with a comment behind them."""
    for match in _DEFINED.finditer(source):
        text = f"#define {match[1]} {match[2]}"
        line = lines.at(match.start())
        yield Chunk(match[1], text, f"{text}\n\n{_plain(match[3])}", line)


def _tidy(declaration: str) -> str:
    """A declaration with its lines, and without the decoration that compilers want."""
    text = _DECORATION.sub("", declaration).strip()
    return re.sub(r"[ \t]{2,}", " ", text)


def _one_line(declaration: str) -> str:
    head = _ANY_COMMENT.sub(" ", declaration).partition("{")[0]
    return " ".join(_tidy(head).split())[:300]
