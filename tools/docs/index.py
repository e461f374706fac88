"""Build the index of this machine's documentation, and keep it up to date.  Runs in the docs worker."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.chunk import TOKENIZER, Cut, within
from stitch_tui.tools.docs.cpu_time import cpu_limit
from stitch_tui.tools.docs.everyday import everyday_text, everyday_words
from stitch_tui.tools.docs.search import Search
from stitch_tui.tools.docs.sources import SourceFile
from stitch_tui.tools.docs.store import SCHEMA, Row, Store
from stitch_tui.tools.docs.vectors import Embedder, described, vectors_of
from stitch_tui.tools.docs.words import words
from stitch_tui.tools.errors import EnvironmentFault, StitchError
from stitch_tui.tools.locks import acquire, try_lock

Emit = Callable[[str, dict[str, Any]], None]
BUILD_LIMIT_S = 1800.0
FILE_CPU_S = 120.0
"""A guide of a thousand pages in PDF may take half of it, the largest header a second."""
PROGRESS_FILES = 20
BATCH = 256
"""Texts that a model of vectors is given at once."""


class Index:
    """The index below a folder.

    Args:
        cut: how long chunks are; another one than the store's makes the store anew.
    """

    def __init__(self, folder: Path, cut: Cut | None = None) -> None:
        self.folder, self._cut = folder, cut or Cut()
        self._store = Store(folder)
        self._search = Search(self._store)

    def settings(self, embedder: Embedder | None = None) -> dict[str, Any]:
        """What rows are made with; a store that was made with something else is made anew."""
        vectors = embedder.name if embedder else ""
        return {"schema": SCHEMA, "tokenizer": TOKENIZER, **asdict(self._cut), "vectors": vectors}

    def exists(self) -> bool:
        """Is anything indexed yet?"""
        return self._store.exists()

    def is_made_with(self, embedder: Embedder | None) -> bool:
        """Is there an index whose rows are made as they would be now?

        Raises:
            Damaged: the store does not say.
        """
        if not self._store.exists():
            return False
        made = self._store.settings()
        return all(made.get(name) == value for name, value in self.settings(embedder).items())

    def build(
        self,
        files: Sequence[SourceFile],
        emit: Emit,
        *,
        anew: bool = False,
        source: str = "",
        embedder: Embedder | None = None,
    ) -> dict[str, Any]:
        """Bring the index up to date with `files`: changed ones are read again, others leave it.

        With a `source`, `files` are all of that source and no other one is touched.

        One builder at a time: a second one waits, and then finds most of its work done.

        Raises:
            EnvironmentFault: it cannot be written, another build does not end, or there are no vectors of
                the embedder's.
            Damaged: the store cannot be read; `anew` makes another.
        """
        held = self._locked(emit)
        try:
            return self._build(files, emit, anew, source, embedder)
        finally:
            os.close(held)

    def search(self, query: str, **asked: Any) -> list[dict[str, Any]]:
        """The best passages for a query; arguments and errors as for `Search.passages`."""
        return self._search.passages(query, **asked)

    def at(self, file: str, line: int, anchor: str = "") -> dict[str, Any] | None:
        """The passage that begins there; errors as for `search`."""
        return self._search.at(file, line, anchor)

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
        try:
            held = try_lock(lock)
        except OSError as error:
            raise EnvironmentFault(
                "the documentation index cannot be written",
                where=str(lock),
                why=error.strerror or str(error),
                advice="see that you may write there, or set XDG_CACHE_HOME",
            ) from error
        if held is not None:
            return held
        emit("waiting", {"for": "another build of the documentation index"})
        try:
            return asyncio.run(acquire([lock], timeout=BUILD_LIMIT_S))
        except TimeoutError:
            raise EnvironmentFault(
                "another build of the documentation index does not end", where=str(lock)
            ) from None

    def _build(
        self, files: Sequence[SourceFile], emit: Emit, anew: bool, source: str, embedder: Embedder | None
    ) -> dict[str, Any]:
        began = time.monotonic()
        fresh = anew or not self.is_made_with(embedder)
        known = {} if fresh else self._store.files(source)
        rows, seen, read, unread = list[Row](), set[str](), set[str](), list[str]()
        for number, file in enumerate(files, 1):
            path = str(file.path)
            try:
                digest = file.digest()
                seen.add(path)
                if known.get(path) != digest:
                    with cpu_limit(FILE_CPU_S, path):
                        rows += self._rows(file, digest)
                    read.add(path)
            except OSError as error:
                unread.append(f"{path}: {error.strerror or error}")
            except StitchError as fault:
                unread.append(str(fault) if fault.where == path else f"{path}: {fault}")
            except Exception as fault:  # whatever a foreign file does to its parser costs that file alone
                why = " ".join(f"{type(fault).__name__}: {fault}".split())[:200]
                unread.append(f"{path}: it cannot be read: {why}")
            if number % PROGRESS_FILES == 0 or number == len(files):
                emit("progress", {"done": number, "of": len(files), "chunks": len(rows)})
        if fresh and not rows:
            raise EnvironmentFault("there is nothing to index", advice="stitch docs add PATH")
        gone = (set(known) - seen) | (read - {row["file"] for row in rows}) & set(known)
        if embedder is not None:
            _add_vectors(rows, embedder, emit, 0 if fresh else self._store.vector_length)
        if fresh:
            self._store.make(rows, self.settings(embedder))
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
                "said": brief or piece.title,
                "names": " ".join(words(piece.name)),
                "brief": " ".join(words(brief)),
                "words": " ".join([*words(f"{piece.title} {piece.aliases} {piece.text}"), stem]),
                "everyday": everyday_words(piece.name),
            }
            for number, (brief, piece) in enumerate(pieces)
        ]


def everything(include_folders: Iterable[Path]) -> list[SourceFile]:
    """All that is indexed on this machine: installed headers, notes, past sessions, what people added."""
    own = [file for added in sources.added_paths() for file in sources.of_added(added)]
    found = [*sources.installed(include_folders), *sources.notes(), *sources.past_sessions(), *own]
    return list({str(file.path): file for file in found}.values())


def _add_vectors(rows: Sequence[Row], embedder: Embedder, emit: Emit, length: int) -> None:
    """Give each row its vector, all of one length; 0: of the first one's."""
    for first in range(0, len(rows), BATCH):
        batch = rows[first : first + BATCH]
        texts = [described(row["name"], row["said"], everyday_text(row["name"])) for row in batch]
        for row, vector in zip(batch, vectors_of(embedder, texts, length), strict=True):
            row["vector"], length = vector, len(vector)
        emit("vectors", {"done": first + len(batch), "of": len(rows)})
