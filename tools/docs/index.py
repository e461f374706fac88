"""Build the index of this machine's documentation, and search it.  Runs in the docs worker."""

import asyncio
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.chunk import TOKENIZER, Cut, within
from stitch_tui.tools.docs.sources import SourceFile
from stitch_tui.tools.docs.store import SCHEMA, Row, Store, quoted
from stitch_tui.tools.docs.words import Names, forms, meant_words, misspellable, query_words, words
from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.locks import acquire, try_lock

_API = re.compile(r"^(?:cuda|cu)(?=.)|(?:v\d|64|ptsz|ptds)$")
Emit = Callable[[str, dict[str, Any]], None]
BUILD_LIMIT_S = 1800.0
WEIGHT_ASKED, WEIGHT_SPELT, WEIGHT_FORM, WEIGHT_MEANT = 1.0, 2.0, 0.75, 1.25
"""Of a query's words, of the identifiers that misspelt ones are near to, of other forms of its words, and of
CUDA's words for it."""
PROGRESS_FILES = 20
CANDIDATES = 8
"""Rows that are looked at for each one wanted: overloads of one name give way to other names."""


@dataclass(frozen=True)
class Options:
    """What a search may do; benchmarks switch parts off."""

    synonyms: bool = True
    spelling: bool = True
    distinct: bool = True
    """Each name once."""


class Index:
    """The index below a folder.

    Args:
        cut: how long chunks are; another one than the store's makes the store anew.
    """

    def __init__(self, folder: Path, cut: Cut | None = None) -> None:
        self.folder, self._cut = folder, cut or Cut()
        self._store = Store(folder)
        self._names: Names | None = None
        self._parts: dict[str, list[str]] = {}
        self._named: tuple[int, int] | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What rows are made with; a store that was made with something else is made anew."""
        return {"schema": SCHEMA, "tokenizer": TOKENIZER, **asdict(self._cut)}

    def exists(self) -> bool:
        """Is anything indexed yet?"""
        return self._store.exists()

    def build(
        self, files: Sequence[SourceFile], emit: Emit, *, anew: bool = False, source: str = ""
    ) -> dict[str, Any]:
        """Bring the index up to date with `files`: changed ones are read again, others leave it.

        With a `source`, `files` are all of that source and no other one is touched.

        One builder at a time: a second one waits, and then finds most of its work done.

        Raises:
            EnvironmentFault: it cannot be written, or another build does not end.
            Damaged: the store cannot be read; `anew` makes another.
        """
        held = self._locked(emit)
        try:
            return self._build(files, emit, anew, source)
        finally:
            os.close(held)

    def search(
        self, query: str, *, limit: int, library: str = "", version: str = "", options: Options | None = None
    ) -> list[dict[str, Any]]:
        """The best passages for a query, each name once, best first; a query of names alone gets these first.

        Raises:
            Missing: nothing is indexed yet.
            Damaged: the store cannot be read.
        """
        options = options or Options()
        asked = query_words(query)
        named = misspellable(query)
        near = list[str]()
        if options.spelling and named:
            near = [name for word in named if (name := self._known_names().near(word))]
        meant = meant_words(query) if options.synonyms else []
        spelt = list(dict.fromkeys(word for name in near for word in (name, *self._parts.get(name, ()))))
        groups = [
            (asked, WEIGHT_ASKED),
            (spelt, WEIGHT_SPELT),
            (meant, WEIGHT_MEANT),
            (forms(query), WEIGHT_FORM),
        ]
        weighted, known = list[tuple[list[str], float]](), set[str]()
        for group, weight in groups:
            weighted.append(([word for word in group if word not in known], weight))
            known.update(group)
        where = " AND ".join(
            f"{column} = {quoted(value)}"
            for column, value in (("library", library), ("version", version))
            if value
        )
        rows = self._store.search(weighted, where, limit * CANDIDATES)
        if len(named) == len(query.split()):  # nothing but names
            rows.sort(key=lambda row: row["name"].strip("_").lower() not in {*named, *near})
        return [_passage(row) for row in (_one_a_name(rows) if options.distinct else rows)[:limit]]

    def remove(self, source: str) -> int:
        """Take what came from a source out of the index; the number of chunks that went."""
        held = self._locked(lambda *_: None)
        try:
            rows = self._store.rows("file", "source")
            gone = sorted({row["file"] for row in rows if row["source"] == source})
            if gone:
                self._store.change([], gone)
            return sum(row["source"] == source for row in rows)
        finally:
            os.close(held)

    def listing(self) -> list[dict[str, Any]]:
        """Sources with their libraries, versions, licences, files and chunks."""
        groups: dict[tuple[str, str, str, str], list[str]] = {}
        for row in self._store.rows("source", "library", "version", "licence", "file"):
            groups.setdefault((row["source"], row["library"], row["version"], row["licence"]), []).append(
                row["file"]
            )
        names = ("source", "library", "version", "licence")
        return [
            {**dict(zip(names, key, strict=True)), "files": len(set(files)), "chunks": len(files)}
            for key, files in sorted(groups.items())
        ]

    def stats(self) -> dict[str, Any]:
        """How much there is, where, and what it was made with."""
        files = [row["file"] for row in self._store.rows("file")]
        size = self._store.bytes()
        return {
            "folder": str(self._store.folder),
            "chunks": len(files),
            "files": len(set(files)),
            "bytes": size,
            **self._store.settings(),
        }

    def _locked(self, emit: Emit) -> int:
        lock = self.folder / "build.lock"
        if (held := try_lock(lock)) is not None:
            return held
        emit("waiting", {"for": "another build of the documentation index"})
        try:
            return asyncio.run(acquire([lock], timeout=BUILD_LIMIT_S))
        except TimeoutError:
            raise EnvironmentFault(
                "another build of the documentation index does not end", where=str(lock)
            ) from None

    def _build(self, files: Sequence[SourceFile], emit: Emit, anew: bool, source: str) -> dict[str, Any]:
        began = time.monotonic()
        known: dict[str, str] = {}
        if not anew and self._store.exists():
            made = self._store.settings()
            anew = any(made.get(name) != value for name, value in self.settings.items())
            known = {} if anew else self._store.files(source)
        fresh = not self._store.exists() or anew
        rows, seen, read, unread = list[Row](), set[str](), set[str](), list[str]()
        for number, file in enumerate(files, 1):
            path = str(file.path)
            try:
                digest = _digest(file)
                seen.add(path)
                if known.get(path) != digest:
                    rows += self._rows(file, digest)
                    read.add(path)
            except OSError as error:
                unread.append(f"{path}: {error.strerror or error}")
            if number % PROGRESS_FILES == 0 or number == len(files):
                emit("progress", {"done": number, "of": len(files), "chunks": len(rows)})
        if fresh and not rows:
            raise EnvironmentFault("there is nothing to index", advice="stitch docs add PATH")
        gone = (set(known) - seen) | (read - {row["file"] for row in rows}) & set(known)
        if fresh:
            self._store.make(rows, self.settings)
        elif rows or gone:
            self._store.change(rows, sorted(gone))
        seconds = round(time.monotonic() - began, 2)
        return {
            "files": len(seen),
            "read": len(read),
            "chunks": len(rows),
            "unread": unread,
            "seconds": seconds,
        }

    def _rows(self, file: SourceFile, digest: str) -> list[Row]:
        """The rows of one file; a piece's id is its place in the file and never used twice."""
        pieces = [(chunk.brief, piece) for chunk in file.chunks() for piece in within(chunk, self._cut)]
        stem = " ".join(words(file.path.stem))
        return [
            {
                "id": f"{file.path}#{number}",
                "file": str(file.path),
                "digest": digest,
                "source": file.source,
                "library": file.library,
                "version": file.version,
                "licence": file.licence,
                "name": piece.name,
                "title": piece.title,
                "text": piece.text,
                "anchor": piece.anchor,
                "line": piece.line,
                "names": " ".join(words(piece.name)),
                "brief": " ".join(words(brief)),
                "words": " ".join([*words(f"{piece.title} {piece.aliases} {piece.text}"), stem]),
            }
            for number, (brief, piece) in enumerate(pieces)
        ]

    def _known_names(self) -> Names:
        """The documented names, read again after a change."""
        generation = self._store.generation
        if self._names is None or generation != self._named:
            rows = self._store.rows("name")
            self._names, self._named = Names(row["name"] for row in rows), generation
            self._parts = {row["name"].strip("_").lower(): words(row["name"]) for row in rows}
        return self._names


def everything(include_folders: Iterable[Path]) -> list[SourceFile]:
    """All that is indexed on this machine: installed headers, notes, what people added."""
    own = [file for added in sources.added_paths() for file in sources.of_added(added)]
    found = [*sources.installed(include_folders), *sources.notes(), *own]
    return list({str(file.path): file for file in found}.values())


def _digest(file: SourceFile) -> str:
    about = "\0".join((file.source, file.library, file.version, file.licence))
    return hashlib.sha256(about.encode() + file.path.read_bytes()).hexdigest()[:32]


def _one_a_name(rows: Sequence[Row]) -> list[Row]:
    """Rows of which no two document the same declaration: of overloads and pieces the best one.

    A function of the driver is that of the runtime; sections of pages are all kept, whatever their headings.
    """
    first: dict[str, Row] = {}
    for row in rows:
        name = _API.sub("", row["name"].replace("_", "").lower())
        is_page = Path(row["file"]).suffix.lower() in sources.PAGE_KINDS
        first.setdefault(row["id"] if is_page else name, row)
    return list(first.values())


def _passage(row: Row) -> dict[str, Any]:
    names = ("library", "version", "name", "title", "text", "file", "line", "anchor", "licence", "source")
    return {name: row[name] for name in names} | {"score": round(float(row["_score"]), 3)}
