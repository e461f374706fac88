"""Text and queries as words: identifiers whole and in parts, near-miss spellings, CUDA's synonyms."""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import cache
from itertools import islice
from pathlib import Path

SYNONYMS = Path(__file__).with_name("synonyms.toml")
NEAR = 0.8
"""Least similarity of a misspelt identifier and the one that is meant."""
SHORTEST_MISSPELT = 6
MOST_LOOKED_AT = 40
MOST_WORDS = 64
"""Of a query, each once: more say nothing more, and take long."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*|\d[\d.]*\w*")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_LIBRARY = re.compile(r"cu(?:da|blas|dnn|rand|sparse|fft|solver)\w{4}")
"""An identifier that somebody wrote in lower case."""
_SUFFIX = re.compile(r"_(?:v\d|64)$")
_STOP = frozenset(
    word
    for line in (
        "a an and are as at be but by can do does for from get got had has have how i if in into is it",
        "its me my of on or our so some than that the their them then there these they this those to up",
        "want was we what when where which while who why will with without would you your should could",
        "need use used using way make let give given one whether about after before every each any all",
        "only same other",
    )
    for word in line.split()
)


def words(text: str) -> list[str]:
    """The words of a text: an identifier as it is, without leading underscores, and its parts.

    ``cudaMallocHost`` is ``cudamallochost cuda malloc host``; a plain plural is its singular.
    """
    return [word for match in _WORD.finditer(text) for word in _of(match[0])]


@cache
def _of(identifier: str) -> tuple[str, ...]:
    name = identifier.strip("_")
    parts = [_singular(part.lower()) for part in _PART.findall(name)]
    if len(parts) <= 1:
        return tuple(parts)
    whole = [name.lower()]
    if (short := _SUFFIX.sub("", name)) != name:
        whole.append(short.lower())
    return (*whole, *parts)


def _singular(word: str) -> str:
    plural = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "as"))
    return word[:-1] if plural else word


def query_words(query: str) -> list[str]:
    """The words to look for, each once, without those that say nothing; the first `MOST_WORDS`."""
    found = (word for word in dict.fromkeys(words(query)) if word not in _STOP)
    return list(islice(found, MOST_WORDS))


def misspellable(query: str) -> list[str]:
    """The identifiers of a query, lower case: plain words are left as they are."""
    found = [(match[0], _of(match[0])) for match in _WORD.finditer(query)]
    names = (parts[0] for word, parts in found if len(parts) > 1 or _LIBRARY.match(word))
    return list(islice(dict.fromkeys(names), MOST_WORDS))


def _other_forms(word: str) -> Iterator[str]:
    """What a plain word may be in a header: ``capturing`` is ``capture``, ``synchronise`` ``synchronize``."""
    for ending in ("ing", "ed", "ly", "er"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 3:
            yield stem
            yield f"{stem}e"
            yield f"{stem}ing"
            if stem[-1] == stem[-2]:
                yield stem[:-1]
    if "is" in word[-6:]:
        yield re.sub(r"is(e|ed|ing|ation)$", r"iz\1", word)


def forms(query: str) -> list[str]:
    """Other forms of a query's words, none that it has itself."""
    own = dict.fromkeys(query_words(query))
    return [
        form for form in dict.fromkeys(form for word in own for form in _other_forms(word)) if form not in own
    ]


@cache
def synonyms() -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """Plain phrases as the stems of their words, each with CUDA's words for it."""
    table = tomllib.loads(SYNONYMS.read_text(encoding="utf-8"))
    return tuple((stems(phrase), tuple(words(meant))) for phrase, meant in table.items())


def said_stems(query: str) -> list[str]:
    """The stems of a query's words, each once, without those that say nothing; the first `MOST_WORDS`."""
    told = " ".join(word for word in re.findall(r"\w+", query) if word.lower() not in _STOP)
    return list(islice(dict.fromkeys(stems(told)), MOST_WORDS))


def meant_words(query: str) -> list[str]:
    """CUDA's words for what a query says in others, however these are inflected; none that it has itself."""
    own, said = set(query_words(query)), stems(query)
    found = [word for phrase, meant in synonyms() if _holds(said, phrase) for word in meant]
    return [word for word in dict.fromkeys(found) if word not in own]


def _holds(said: tuple[str, ...], phrase: tuple[str, ...]) -> bool:
    return any(said[at : at + len(phrase)] == phrase for at in range(len(said) - len(phrase) + 1))


def stems(text: str) -> tuple[str, ...]:
    """The words of a text without their endings: ``pinned``, ``pinning`` and ``pins`` are ``pin``."""
    return tuple(map(_stem, re.findall(r"\w+", text)))


def _stem(word: str) -> str:
    """A word for comparison alone; of an abbreviation nothing but a small s goes: ``SMs``, but ``LDS``."""
    if word.removesuffix("s").isupper():
        return word.removesuffix("s").lower()
    stem = word.lower()
    for ending in ("ing", "ed", "es", "s"):
        if len(stem) > len(ending) + 2 and stem.endswith(ending) and not stem.endswith("ss"):
            stem = stem.removesuffix(ending)
            break
    stem = stem.removesuffix("e") if len(stem) > 3 else stem
    return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] else stem


class Names:
    """The identifiers that are documented: which does a misspelt one mean?"""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(dict.fromkeys(name.strip("_").lower() for name in names if name))
        self._known = {word for name in names for word in _of(name)} | set(self._names)
        self._by_piece: dict[str, list[int]] = defaultdict(list)
        for number, name in enumerate(self._names):
            for piece in _pieces(name):
                self._by_piece[piece].append(number)

    def near(self, word: str) -> str:
        """The identifier that is spelt most nearly like `word`; empty when none is, or it is one itself."""
        if len(word) < SHORTEST_MISSPELT or word in self._known:
            return ""
        shared = Counter(number for piece in _pieces(word) for number in self._by_piece.get(piece, ()))
        close = [self._names[number] for number, _ in shared.most_common(MOST_LOOKED_AT)]
        ratio, name = max(
            ((SequenceMatcher(None, word, name).ratio(), name) for name in close), default=(0.0, "")
        )
        return name if ratio >= NEAR else ""


def _pieces(word: str) -> set[str]:
    return {word[at : at + 3] for at in range(max(len(word) - 2, 1))}
