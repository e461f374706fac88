"""Search the store: words and everyday words first, vectors as a second opinion, each name once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.everyday import call_of
from stitch_tui.tools.docs.store import Row, Store, quoted
from stitch_tui.tools.docs.vectors import Embedder, vectors_of
from stitch_tui.tools.docs.words import (
    Names,
    forms,
    meant_words,
    misspellable,
    query_words,
    said_stems,
    words,
)
from stitch_tui.tools.encodable import encodable

FIELD_WEIGHTS = {"names": 0.7, "brief": 0.5, "words": 0.9}
WEIGHT_EVERYDAY = 1.75
"""Of a query's words in what the columns hold: a name, its first sentence, all of it; what it is for."""
WEIGHT_ASKED, WEIGHT_SPELT, WEIGHT_FORM, WEIGHT_MEANT = 1.0, 2.0, 0.75, 1.25
"""Of a query's words, of the identifiers that misspelt ones are near to, of other forms of its words, and of
CUDA's words for it."""
LONGEST_QUERY = 2000
"""Characters of a query that are looked at."""
CANDIDATES = 8
"""Rows that are looked at for each one wanted: overloads of one name give way to other names."""
VECTOR_WEIGHT, RANK_OFFSET = 0.3, 5
"""A row's share is ``weight / (offset + rank)`` of each list (reciprocal rank fusion; words weigh 1)."""
_PRECISION = re.compile(r"^(cublas(?:Xt)?)(?:[SDCZH]|HSH|HSS|TST|TSS)(?=[a-z])")
"""cuBLAS' letter of a type."""


@dataclass(frozen=True)
class Options:
    """What a search may do; benchmarks switch parts off."""

    synonyms: bool = True
    spelling: bool = True
    everyday: bool = True
    """What names are for, in everyday words."""
    distinct: bool = True
    """Each name once."""
    text: bool = True
    """Search words; without it an embedder's vectors are all there is."""


class Search:
    """Searches of one store; the documented names are kept in memory until the store changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._names: Names | None = None
        self._parts: dict[str, list[str]] = {}
        self._named: tuple[str, int] | None = None

    def passages(
        self,
        query: str,
        *,
        limit: int,
        library: str = "",
        version: str = "",
        embedder: Embedder | None = None,
        options: Options | None = None,
    ) -> list[dict[str, Any]]:
        """The best passages for a query, each name once, best first; a query of names alone gets these first.

        Args:
            embedder: the one that the store's vectors are of; None: words alone.

        Raises:
            Missing: nothing is indexed yet.
            Damaged: the store cannot be read.
            NoVectors: the embedder's.
        """
        options, query = options or Options(), encodable(query[:LONGEST_QUERY])
        where = " AND ".join(
            f"{column} = {quoted(value)}"
            for column, value in (("library", library), ("version", version))
            if value
        )
        named = misspellable(query)
        near = list[str]()
        if options.spelling and named:
            near = [name for word in named if (name := self._known_names().near(word))]
        most = limit * CANDIDATES
        rows = list[Row]()
        if options.text:
            rows = self._store.search(self._asked(query, near, options), where, most)
        if embedder is not None and query.strip():
            (vector,) = vectors_of(embedder, [query], self._store.vector_length)
            rows = fused(rows, self._store.nearest(vector, where, most))
        if len(named) == len(query.split()):  # nothing but names
            rows.sort(key=lambda row: row["name"].strip("_").lower() not in {*named, *near})
        return [_passage(row) for row in (one_a_name(rows) if options.distinct else rows)[:limit]]

    def at(self, file: str, line: int, anchor: str) -> dict[str, Any] | None:
        """The passage that begins at a place; None when there is none.

        Raises:
            Missing: nothing is indexed yet.
            Damaged: the store cannot be read.
        """
        where = f"file = {quoted(file)} AND line = {line} AND anchor = {quoted(anchor)}"
        rows = self._store.matching(where)
        return _passage(rows[0] | {"_score": 0.0}) if rows else None

    def _asked(self, query: str, near: Sequence[str], options: Options) -> list[tuple[list[str], str, float]]:
        """The words to look for in groups, each word in the first that has it: in which column, how heavy."""
        spelt = [word for name in near for word in (name, *self._parts.get(name, ()))]
        groups: list[tuple[list[str], float]] = [
            (query_words(query), WEIGHT_ASKED),
            (spelt, WEIGHT_SPELT),
            (meant_words(query) if options.synonyms else [], WEIGHT_MEANT),
            (forms(query), WEIGHT_FORM),
        ]
        found, known = list[tuple[list[str], str, float]](), set[str]()
        for group, weight in groups:
            fresh = [word for word in dict.fromkeys(group) if word not in known]
            found += [(fresh, field, weight * share) for field, share in FIELD_WEIGHTS.items()]
            known.update(group)
        if options.everyday:
            found.append((said_stems(query), "everyday", WEIGHT_EVERYDAY))
        return found

    def _known_names(self) -> Names:
        """The documented names, read again after a change."""
        generation = self._store.generation
        if self._names is None or generation != self._named:
            rows = self._store.rows("name")
            self._names, self._named = Names(row["name"] for row in rows), generation
            self._parts = {row["name"].strip("_").lower(): words(row["name"]) for row in rows}
        return self._names


def fused(found: Sequence[Row], nearest: Sequence[Row]) -> list[Row]:
    """Two lists, best first, as one: by the ranks in both, the second with its low weight."""
    rows = {row["id"]: row for row in (*nearest, *found)}
    scores = dict.fromkeys(rows, 0.0)
    for listed, weight in ((found, 1.0), (nearest, VECTOR_WEIGHT)):
        for rank, row in enumerate(listed, 1):
            scores[row["id"]] += weight / (RANK_OFFSET + rank)
    best = sorted(rows, key=lambda each: scores[each], reverse=True)
    return [rows[each] | {"_score": scores[each]} for each in best]


def one_a_name(rows: Sequence[Row]) -> list[Row]:
    """Rows of which no two document the same declaration: of overloads and pieces the best one.

    A function of the driver is that of the runtime; sections of pages are all kept, whatever their headings.
    """
    first: dict[str, Row] = {}
    for row in rows:
        name = _PRECISION.sub(r"\1", call_of(row["name"])).strip("_").lower()
        is_page = Path(row["file"]).suffix.lower() in sources.PAGE_KINDS
        first.setdefault(row["id"] if is_page else name, row)
    return list(first.values())


def _passage(row: Row) -> dict[str, Any]:
    names = ("library", "version", "name", "title", "text", "file", "line", "anchor", "licence", "source")
    return {name: row[name] for name in names} | {"score": round(float(row["_score"]), 3)}
