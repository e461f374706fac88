"""How well the documentation index answers: hit rates of ninety questions, with parts switched off.

``python benchmarks/retrieval.py --headers DIR...`` indexes the headers in these folders and the notes, and
writes ``benchmarks/results/retrieval.json``.  A question is answered at rank r when the r-th passage is a
chunk of one of its names (``retrieval_questions.toml``); of the sixty that were written first, every second
one is ``dev``, on which alone anything may be tuned.
"""

import argparse
import os
import statistics
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import provenance

from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.chunk import Chunk, Cut
from stitch_tui.tools.docs.index import Index
from stitch_tui.tools.docs.search import Options
from stitch_tui.tools.docs.sources import SourceFile
from stitch_tui.tools.docs.vectors import Embedder, OfflineModel

HERE = Path(__file__).parent
DEPTH = 10
SCALED_CHUNKS = 20_000
FRESH = ("fresh_plain", "fresh_paraphrased")
"""Kinds of questions that nothing at all is tuned on, and that are not halved."""
ARMS = {
    "default": Options(),
    "without synonyms": Options(synonyms=False),
    "without spelling": Options(spelling=False),
}
VECTOR_ARMS = {"vector": Options(text=False), "fused": Options()}
"""With the offline model's vectors: they alone, and as the second opinion that `search` gives them."""
CUTS = {"250 tokens": Cut(250, 25), "500 tokens": Cut(500, 50), "2000 tokens": Cut(2000, 200)}


class PlainFile(SourceFile):
    """A file cut at the limit of tokens alone, without regard to what it declares."""

    def chunks(self) -> list[Chunk]:
        text = self.path.read_text(encoding="utf-8", errors="replace")
        return [Chunk(self.path.stem, self.path.name, text, 1)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--headers", type=Path, nargs="+", required=True)
    folders = parser.parse_args().headers
    questions = tomllib.loads((HERE / "retrieval_questions.toml").read_text(encoding="utf-8"))
    files = [*sources.installed(folders), *sources.notes()]
    arms: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        found, built = made(Path(folder) / "default", files)
        for name, options in ARMS.items():
            arms[name] = scores(questions, by_name(found, options=options))
        corpus = [{k: row[k] for k in ("library", "version", "files", "chunks")} for row in found.listing()]
        size = found.stats()["bytes"]
        timing = search_times(found, questions)
        offline = OfflineModel()
        dense, dense_built = made(Path(folder) / "dense", files, embedder=offline)
        for name, options in VECTOR_ARMS.items():
            arms[name] = scores(questions, by_name(dense, options=options, embedder=offline))
        dense_size, dense_timing = dense.stats()["bytes"], search_times(dense, questions, offline)
        for name, cut in CUTS.items():
            arms[name] = scores(questions, by_name(made(Path(folder) / name, files, cut)[0]))
        plain = [PlainFile(**vars(file)) for file in files]
        blind, _ = made(Path(folder) / "plain", plain)
        arms["1000/100 without structure"] = scores(questions, by_place(blind, files))
        copies = repeated(files, found)
        scaled = search_times(made(Path(folder) / "scaled", copies)[0], questions)
        both, _ = made(Path(folder) / "scaled dense", copies, embedder=offline)
        dense_scaled = search_times(both, questions, offline)
    result = {
        "commit": provenance.commit(),
        "processor": provenance.processor(),
        "versions": provenance.versions("lancedb", "wordllama"),
        "corpus": corpus,
        "bytes": size,
        "build": built,
        "search_ms": timing,
        f"search_ms at {SCALED_CHUNKS} chunks": scaled,
        "with vectors": {
            "model": offline.name,
            "bytes": dense_size,
            "build": dense_built,
            "search_ms": dense_timing,
            f"search_ms at {SCALED_CHUNKS} chunks": dense_scaled,
        },
        "arms": arms,
    }
    provenance.write("retrieval", result)
    for name, arm in arms.items():
        print(f"{name:28}", {kind: arm[kind]["all"] for kind in questions})


def made(
    folder: Path, files: Sequence[SourceFile], cut: Cut | None = None, embedder: Embedder | None = None
) -> tuple[Index, dict[str, Any]]:
    """An index in `folder`, and what building it took: wall and processor seconds, load of the machine."""
    folder.mkdir(parents=True)
    index = Index(folder, cut)
    load, cpu = os.getloadavg()[0], time.process_time()
    report = index.build(files, lambda *_: None, embedder=embedder)
    cpu_s = round(time.process_time() - cpu, 1)
    return index, {
        "seconds": report["seconds"],
        "cpu_s": cpu_s,
        "load": round(load, 1),
        "chunks": report["chunks"],
    }


def by_name(index: Index, **how: Any) -> Callable[[str, Iterable[str]], int]:
    """The rank of the first passage that has one of the names; 0 when there is none."""

    def rank(query: str, gold: Iterable[str]) -> int:
        names = [passage["name"] for passage in index.search(query, limit=DEPTH, **how)]
        return next((at for at, name in enumerate(names, 1) if name in set(gold)), 0)

    return rank


def by_place(index: Index, files: Iterable[SourceFile]) -> Callable[[str, Iterable[str]], int]:
    """The same where chunks have no names: a passage counts when a declaration of one begins in it."""
    places: dict[str, set[tuple[str, int]]] = {}
    for file in files:
        for chunk in file.chunks():
            places.setdefault(chunk.name, set()).add((str(file.path), chunk.line))

    def holds(passage: dict[str, Any], gold: Iterable[str]) -> bool:
        last = passage["line"] + passage["text"].count("\n")
        begun = (place for name in gold for place in places.get(name, ()))
        return any(file == passage["file"] and passage["line"] <= line <= last for file, line in begun)

    def rank(query: str, gold: Iterable[str]) -> int:
        found = index.search(query, limit=DEPTH, options=Options(distinct=False))
        return next((at for at, passage in enumerate(found, 1) if holds(passage, gold)), 0)

    return rank


def scores(
    questions: dict[str, list[dict[str, Any]]], rank: Callable[[str, Iterable[str]], int]
) -> dict[str, Any]:
    """hit@1, hit@5 and MRR of each kind, of its halves, and which questions were missed at rank 5."""
    found: dict[str, Any] = {}
    for kind, asked in questions.items():
        ranks = [rank(question["q"], question["gold"]) for question in asked]
        halves = {} if kind in FRESH else {"dev": summed(ranks[::2]), "held out": summed(ranks[1::2])}
        missed = [q["q"] for q, at in zip(asked, ranks, strict=True) if not 0 < at <= 5]
        found[kind] = {"all": summed(ranks), **halves, "missed": missed}
    return found


def summed(ranks: Sequence[int]) -> dict[str, Any]:
    return {
        "questions": len(ranks),
        "hit@1": round(sum(at == 1 for at in ranks) / len(ranks), 3),
        "hit@5": round(sum(0 < at <= 5 for at in ranks) / len(ranks), 3),
        "mrr": round(sum(1 / at for at in ranks if at) / len(ranks), 3),
    }


def search_times(
    index: Index, questions: dict[str, list[dict[str, Any]]], embedder: Embedder | None = None
) -> dict[str, Any]:
    """Median and 95th percentile of a search in a warm worker, in milliseconds of wall time."""
    queries = [question["q"] for asked in questions.values() for question in asked]
    index.search(queries[0], limit=5, embedder=embedder)
    times, cpu = list[float](), time.process_time()
    for query in queries:
        begin = time.perf_counter()
        index.search(query, limit=5, embedder=embedder)
        times.append((time.perf_counter() - begin) * 1e3)
    cpu_ms = (time.process_time() - cpu) * 1e3 / len(queries)
    cuts = statistics.quantiles(times, n=20)
    return {
        "median": round(statistics.median(times), 1),
        "p95": round(cuts[-1], 1),
        "least": round(min(times), 1),
        "cpu": round(cpu_ms, 1),
        "chunks": index.stats()["chunks"],
        "load": round(os.getloadavg()[0], 1),
    }


def repeated(files: Sequence[SourceFile], index: Index) -> list[SourceFile]:
    """The files so often, under other libraries, that there are `SCALED_CHUNKS`."""
    times = -(-SCALED_CHUNKS // index.stats()["chunks"])
    folder = Path(index.folder).parent / "copies"
    copies = list[SourceFile]()
    for number in range(times):
        for at, file in enumerate(files):
            path = folder / f"{number}-{at}" / file.path.name
            path.parent.mkdir(parents=True)
            path.symlink_to(file.path)
            library = f"{file.library}{number}"
            copies.append(SourceFile(path, file.source, library, file.version, file.licence))
    return copies


if __name__ == "__main__":
    main()
