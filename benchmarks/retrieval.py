"""How well the documentation index answers: hit rates of questions, with parts switched off.

``python benchmarks/retrieval.py --headers DIR...`` indexes the headers in these folders and the notes, and
writes ``benchmarks/results/retrieval.json``.  A question is answered at rank r when the r-th passage is a
chunk of one of its names.  Of the sixty questions that were written first (``retrieval_questions.toml``)
every second one is ``dev``, and of those in ``retrieval_held_out.toml`` the kinds ``dev_...``: on these alone
anything may be tuned.
"""

import argparse
import json
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
TRIES = 5
QUESTIONS = ("retrieval_questions.toml", "retrieval_held_out.toml")
HALVED = ("plain", "paraphrased")
"""Kinds of questions of which every second one is ``dev``; other kinds are so as a whole, or not at all."""
ARMS = {
    "default": Options(),
    "without synonyms": Options(synonyms=False),
    "without everyday words": Options(everyday=False),
    "without either": Options(synonyms=False, everyday=False),
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
    parser.add_argument("--times", action="store_true", help="measure searches anew and keep all else")
    chosen = parser.parse_args()
    questions: dict[str, list[dict[str, Any]]] = {}
    for name in QUESTIONS:
        questions |= tomllib.loads((HERE / name).read_text(encoding="utf-8"))
    files = [*sources.installed(chosen.headers), *sources.notes()]
    if chosen.times:
        kept = json.loads((provenance.RESULTS / "retrieval.json").read_text(encoding="utf-8"))
        provenance.write("retrieval", kept | {"search_ms": times(files, questions)})
        return
    arms: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        found, built = made(Path(folder) / "default", files)
        for name, options in ARMS.items():
            arms[name] = scores(questions, by_name(found, options=options))
        corpus = [{k: row[k] for k in ("library", "version", "files", "chunks")} for row in found.listing()]
        size = found.stats()["bytes"]
        offline = OfflineModel()
        dense, dense_built = made(Path(folder) / "dense", files, embedder=offline)
        for name, options in VECTOR_ARMS.items():
            arms[name] = scores(questions, by_name(dense, options=options, embedder=offline))
        dense_size = dense.stats()["bytes"]
        for name, cut in CUTS.items():
            arms[name] = scores(questions, by_name(made(Path(folder) / name, files, cut)[0]))
        plain = [PlainFile(**vars(file)) for file in files]
        blind, _ = made(Path(folder) / "plain", plain)
        arms["1000/100 without structure"] = scores(questions, by_place(blind, files))
    result = {
        "commit": provenance.commit(),
        "processor": provenance.processor(),
        "versions": provenance.versions("lancedb", "wordllama"),
        "corpus": corpus,
        "bytes": size,
        "build": built,
        "with vectors": {"model": offline.name, "bytes": dense_size, "build": dense_built},
        "search_ms": times(files, questions),
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
        is_halved = kind in HALVED
        halves = {"dev": summed(ranks[::2]), "held out": summed(ranks[1::2])} if is_halved else {}
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


def times(files: Sequence[SourceFile], questions: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """What searches take in a warm worker, by words and with vectors, as indexed and at `SCALED_CHUNKS`."""
    offline = OfflineModel()
    found: dict[str, Any] = {"commit": provenance.commit()}
    with tempfile.TemporaryDirectory() as folder:
        words = made(Path(folder) / "words", files)[0]
        copies = repeated(files, words)
        found["words"] = search_times(words, questions)
        scaled = made(Path(folder) / "scaled", copies)[0]
        found[f"words at {SCALED_CHUNKS} chunks"] = search_times(scaled, questions)
        dense = made(Path(folder) / "dense", copies, embedder=offline)[0]
        found[f"fused at {SCALED_CHUNKS} chunks"] = search_times(dense, questions, offline)
    return found


def search_times(
    index: Index, questions: dict[str, list[dict[str, Any]]], embedder: Embedder | None = None
) -> dict[str, Any]:
    """Milliseconds of wall time of each query's quickest search of `TRIES`: others may use the machine.

    ``cpu`` is the mean processor time of all of them.
    """
    queries = [question["q"] for asked in questions.values() for question in asked]
    index.search(queries[0], limit=5, embedder=embedder)
    quickest, cpu = list[float](), time.process_time()
    for query in queries:
        taken = list[float]()
        for _ in range(TRIES):
            begin = time.perf_counter()
            index.search(query, limit=5, embedder=embedder)
            taken.append((time.perf_counter() - begin) * 1e3)
        quickest.append(min(taken))
    cpu_ms = (time.process_time() - cpu) * 1e3 / len(queries) / TRIES
    return {
        "median": round(statistics.median(quickest), 1),
        "p95": round(statistics.quantiles(quickest, n=20)[-1], 1),
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
