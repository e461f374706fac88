"""The chunks in LanceDB.  Only the docs worker imports this.

A change of the index is one commit of LanceDB's: whoever is killed in the middle leaves what was there.
``index`` is a symbolic link to the store: one that is made anew takes the old one's place in one step.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow

from stitch_tui.tools.atomic_write import replace_file
from stitch_tui.tools.docs.lance import FTS, BooleanQuery, MatchQuery, Occur, Table, lancedb
from stitch_tui.tools.encodable import encodable
from stitch_tui.tools.errors import EnvironmentFault

SCHEMA = 3
"""Raised whenever rows mean something else: a store of another number is made anew."""
TABLE = "chunks"
_COLUMNS = (
    "id",
    "file",
    "digest",
    "source",
    "library",
    "version",
    "licence",
    "name",
    "title",
    "text",
    "anchor",
)
FIELDS = ("names", "brief", "words", "everyday")
"""The columns that are searched, as words: the name, the first sentence, all of it, and what it is for in
everyday words."""
Row = dict[str, Any]
"""May have a ``vector``, as either all rows of a store have or none."""


T = TypeVar("T")


class Damaged(EnvironmentFault):
    """The store cannot be read as what it says it is."""


class Missing(EnvironmentFault):
    """There is no store yet."""


class Store:
    """The index in a folder; `settings` are what its rows were made with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "index"
        self._table: Table | None = None
        self._opened = ""
        """Name of the folder that the table is open in."""

    def exists(self) -> bool:
        return self.folder.is_dir()

    def settings(self) -> dict[str, Any]:
        """What the store was made with.

        Raises:
            Damaged: the store does not say.
        """
        with self._reading():
            found = json.loads((self.folder / "settings.json").read_text(encoding="utf-8"))
            if not isinstance(found, dict):
                raise ValueError("settings.json holds no settings")
            return found

    def files(self, source: str = "") -> dict[str, str]:
        """Digest of each file that has chunks, by path; those of one source, or all."""
        rows = self.rows("file", "digest", "source")
        return {row["file"]: row["digest"] for row in rows if source in ("", row["source"])}

    def rows(self, *columns: str) -> list[Row]:
        """All rows, those columns of them."""
        return self._read(lambda t: t.search().select(list(columns)).limit(None).to_arrow().to_pylist())

    def matching(self, where: str) -> list[Row]:
        """The rows for which a condition holds."""
        columns = [*_COLUMNS, "line"]
        return self._read(
            lambda t: t.search().where(where).select(columns).limit(None).to_arrow().to_pylist()
        )

    def make(self, rows: Sequence[Row], settings: dict[str, Any]) -> None:
        """A new store in the place of whatever is there."""
        fresh = self.folder.with_name(f"store-{secrets.token_hex(6)}")
        try:
            with self._writing():
                fresh.mkdir(mode=0o700, parents=True)
                table = lancedb.connect(fresh).create_table(TABLE, _arrow(rows))
                for column in FIELDS:
                    table.create_index(column, config=_full_text())
                replace_file(fresh / "settings.json", json.dumps(settings).encode())
                self._take_place(fresh)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise

    def change(self, rows: Sequence[Row], gone: Sequence[str]) -> None:
        """Replace the rows of files by these, and drop the files `gone`, in one commit."""
        files = sorted({row["file"] for row in rows} | set(gone))
        where = f"file IN ({', '.join(map(quoted, files))})"
        with self._reading():
            table = self._open()
        with self._writing():
            merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            merge.when_not_matched_by_source_delete(where).execute(_arrow(rows, _vector_length(table)))
            with contextlib.suppress(RuntimeError):  # somebody else is at it: the rows are found all the same
                table.optimize()

    def search(self, asked: Iterable[tuple[Sequence[str], str, float]], where: str, limit: int) -> list[Row]:
        """The best rows for words in columns, each with its weight.

        Raises:
            Damaged: the store cannot be read.
        """
        queries = [_matching(words, column, weight) for words, column, weight in asked if words]
        if not queries:
            return []
        query = BooleanQuery([(Occur.SHOULD, one) for one in queries])

        def ask(table: Table) -> list[Row]:
            best = table.search(query, query_type="fts").limit(limit)
            best = best.where(where, prefilter=True) if where else best
            found: list[Row] = best.select([*_COLUMNS, "line", "_score"]).to_list()
            return found

        return self._read(ask)

    def nearest(self, vector: Sequence[float], where: str, limit: int) -> list[Row]:
        """The rows whose vectors point most nearly the same way, nearest first.

        Raises:
            Damaged: the store cannot be read, or holds no vectors of that length.
        """

        def ask(table: Table) -> list[Row]:
            asked = table.search(list(vector), vector_column_name="vector", query_type="vector")
            asked = asked.where(where, prefilter=True) if where else asked
            asked = asked.limit(limit).distance_type("cosine")  # type: ignore[attr-defined]
            found: list[Row] = asked.select([*_COLUMNS, "line", "_distance"]).to_list()
            return found

        return self._read(ask)

    @property
    def vector_length(self) -> int:
        """Numbers of each row's vector; 0: rows have none."""
        return self._read(_vector_length)

    @property
    def generation(self) -> tuple[str, int]:
        """Changes whenever the rows may have."""
        with self._reading():
            table = self._open()
            return self._opened, table.version

    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.resolve().rglob("*") if path.is_file())

    def _open(self) -> Table:
        """The table as it is now, whoever changed or replaced it."""
        if not self.exists():
            raise Missing("nothing is indexed yet", advice="run `stitch docs build`")
        here = self._place
        if self._table is None or self._opened != here:
            self._require_schema()
            connection = lancedb.connect(self.folder)
            self._table, self._opened = connection.open_table(TABLE), here
        self._table.checkout_latest()  # type: ignore[no-untyped-call]
        return self._table

    def _require_schema(self) -> None:
        """See that rows mean what this version takes them to mean.

        Raises:
            Damaged: the store is another version's; the next build makes it anew.
        """
        made = self.settings().get("schema")
        if made != SCHEMA:
            why = f"it has schema {made}, and this is {SCHEMA}"
            advice = "make it anew: stitch docs build"
            where = str(self.folder)
            raise Damaged(
                "the documentation index was made by another version", where=where, why=why, advice=advice
            )

    @property
    def _place(self) -> str:
        """The folder that the link leads to; a name is never used twice."""
        return self.folder.resolve().name

    def _read(self, ask: Callable[[Table], T]) -> T:
        """What a table answers; asked again when another store took its place meanwhile."""
        with self._reading():
            table, asked = self._open(), self._opened
            try:
                return ask(table)
            except (OSError, ValueError, RuntimeError):
                if self._place == asked:
                    raise
                return ask(self._open())

    def _take_place(self, fresh: Path) -> None:
        link = self.folder.with_name(f"link-{secrets.token_hex(6)}")
        link.symlink_to(fresh.name)
        self._table = None
        if not self.folder.is_symlink() and self.folder.exists():  # of a version that used no link
            os.rename(self.folder, self.folder.with_name(f"store-{secrets.token_hex(6)}"))
        os.replace(link, self.folder)
        for left in (*self.folder.parent.glob("store-*"), *self.folder.parent.glob("making-*")):
            if left.name != fresh.name:
                shutil.rmtree(left, ignore_errors=True)
        for left in self.folder.parent.glob("link-*"):
            left.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except EnvironmentFault:
            raise
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            self._table = None
            raise Damaged(
                "the documentation index is damaged",
                where=str(self.folder),
                why=_said(error),
                advice="make it anew: stitch docs build --rebuild",
            ) from error

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, RuntimeError) as error:
            raise EnvironmentFault(
                "the documentation index cannot be written; what was there is as it was",
                where=str(self.folder),
                why=_said(error),
                advice="free some space, or set XDG_CACHE_HOME",
            ) from error


def _said(error: Exception) -> str:
    """What an error says, without the place in LanceDB's own source that it adds."""
    return re.sub(r",? \S*/\.cargo/\S*", "", str(error).partition("\n")[0])[:200]


def quoted(text: str) -> str:
    """A string for LanceDB's filters."""
    return "'" + encodable(text).replace("'", "''") + "'"


def _matching(words: Sequence[str], column: str, boost: float) -> MatchQuery:
    """Rows with any of the words; the class's defaults are hidden from a type checker."""
    return MatchQuery(" ".join(words), column, boost=boost)  # type: ignore[call-arg]


def _arrow(rows: Sequence[Row], dimensions: int = 0) -> pyarrow.Table:
    """Rows as the store keeps them.

    Args:
        dimensions: numbers of a vector; 0: as many as the rows' have.
    """
    names = [pyarrow.field(name, pyarrow.string()) for name in (*_COLUMNS, *FIELDS)]
    size = dimensions or max((len(row.get("vector", ())) for row in rows), default=0)
    vector = [pyarrow.field("vector", pyarrow.list_(pyarrow.float32(), size))] if size else []
    schema = pyarrow.schema([*names, pyarrow.field("line", pyarrow.int32()), *vector])
    return pyarrow.Table.from_pylist(list(rows), schema=schema)


def _vector_length(table: Table) -> int:
    return table.schema.field("vector").type.list_size if "vector" in table.schema.names else 0


def _full_text() -> FTS:
    return FTS(
        base_tokenizer="whitespace",
        stem=False,
        remove_stop_words=False,
        with_position=False,
        max_token_length=200,
    )
