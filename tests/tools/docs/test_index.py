"""The index: incremental, filtered, whole after a kill, refused when damaged, one builder at a time."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pydantic
import pytest

from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.chunk import Cut
from stitch_tui.tools.docs.index import Index
from stitch_tui.tools.docs.lance import Table
from stitch_tui.tools.docs.search import Options
from stitch_tui.tools.docs.sources import Added
from stitch_tui.tools.docs.store import Damaged, Missing, Store
from stitch_tui.tools.locks import try_lock


@pytest.fixture
def index(toolkit: Path, tmp_path: Path) -> Index:
    folder = tmp_path / "docs"
    folder.mkdir()
    return Index(folder)


def built(index: Index, include: Path, *added: Path, **options: bool) -> dict[str, Any]:
    files = [*sources.installed([include]), *sources.notes()]
    files += [file for path in added for file in sources.of_added(Added(str(path)))]
    return index.build(files, lambda *_: None, **options)


def found(index: Index, query: str, **options: Any) -> list[str]:
    return [passage["name"] for passage in index.search(query, limit=3, **options)]


def test_a_header_is_found_by_names_words_and_misspelt_names(index: Index, toolkit: Path) -> None:
    with pytest.raises(Missing, match="nothing is indexed yet"):
        index.search("anything", limit=1)
    built(index, toolkit)
    assert found(index, "cublasLtMatmulDescSetAtribute")[0] == "cublasLtMatmulDescSetAttribute"
    assert found(index, "cublasLtMatmulDescSetAtribute", options=Options(spelling=False)) != []
    assert found(index, "reserve nonpageable RAM")[0] == "cudaMallocHost"
    passage = index.search("page-locked host allocation", limit=1)[0]
    assert passage["file"] == str(toolkit / "cuda_runtime_api.h")
    assert (passage["library"], passage["version"], passage["line"]) == ("runtime", "13.0", 1)
    assert found(index, "sum of a warp with shuffles")[0] == "Sum of a warp and of a block", "a note of ours"
    assert index.search("matmul", limit=5, library="cublas") == []
    assert {p["version"] for p in index.search("matmul", limit=5, version="13.1.2")} == {"13.1.2"}
    assert index.search("it's; DROP", limit=1, library="o'brien") == []
    assert index.search("the of and", limit=3) == []
    listed = {row["library"]: row for row in index.listing()}
    assert listed["cublaslt"]["version"] == "13.1.2"
    assert listed["cublaslt"]["chunks"] == 2


def test_only_what_changed_is_read_again(index: Index, toolkit: Path, tmp_path: Path) -> None:
    page = tmp_path / "mine.md"
    page.write_text("# Swizzle\n\nXor the column.\n\n# Padding\n\nOne more word.\n")
    first = built(index, toolkit, page)
    assert first["read"] == first["files"]
    again = built(index, toolkit, page)
    assert again["chunks"] == 0
    page.write_text("# Swizzle\n\nXor the column with the row.\n")
    assert built(index, toolkit, page)["chunks"] == 1
    assert "with the row" in index.search("swizzle", limit=1, library="mine")[0]["text"]
    assert [p["name"] for p in index.search("padding", limit=5, library="mine")] == []
    page.write_text("")
    built(index, toolkit, page)
    assert index.search("swizzle", limit=5, library="mine") == []
    (toolkit / "cublasLt.h").unlink()
    built(index, toolkit)
    assert index.search("matmul descriptor", limit=5, library="cublaslt") == []
    assert Index(index.folder, Cut(200, 20)).build([*sources.notes()], lambda *_: None)["chunks"] > 0
    assert index.stats()["limit"] == 200, "another length of chunks makes the store anew"


def test_cutlass_comes_with_its_pages_version_and_licence(
    index: Index, toolkit: Path, tmp_path: Path
) -> None:
    include = tmp_path / "cutlass" / "include"
    (include / "cutlass").mkdir(parents=True)
    numbers = "".join(f"#define CUTLASS_{n} {v}\n" for n, v in (("MAJOR", 4), ("MINOR", 2), ("PATCH", 1)))
    (include / "cutlass" / "version.h").write_text(numbers)
    (include / "cutlass" / "cutlass.h").write_text("/// Names a status.\nenum class Status { kSuccess };\n")
    (tmp_path / "cutlass" / "media" / "docs").mkdir(parents=True)
    page = tmp_path / "cutlass" / "media" / "docs" / "pipeline.md"
    page.write_text("# Pipelines\n\nProducers arrive, consumers wait.\n")
    index.build(sources.installed([toolkit, include]), lambda *_: None)
    passage = index.search("producers and consumers", limit=1)[0]
    assert (passage["library"], passage["version"], passage["licence"]) == (
        "cutlass",
        "4.2.1",
        "BSD-3-Clause",
    )
    assert passage["file"] == str(page)
    assert index.search("Status", limit=1, library="cutlass", version="4.2.1")[0]["name"] == "Status"


def test_overloads_are_one_answer_and_sections_of_one_heading_are_two(
    index: Index, toolkit: Path, tmp_path: Path
) -> None:
    (toolkit / "cuda.h").write_text(
        "#define CUDA_VERSION 13000\n"
        "/** Allocates page-locked host memory */\nCUresult cuMallocHost(void **p);\n"
        "/** Turns a widget */\nvoid turnWidget(int x);\n/** Turns a widget */\nvoid turnWidget(float x);\n"
        "/** Turns a widget */\nvoid turnWidget_64(long x);\n"
    )
    pages = [tmp_path / "a.md", tmp_path / "b.md"]
    for page in pages:
        page.write_text(f"# Overview\n\nwidget of {page.stem}\n")
    built(index, toolkit, *pages)
    assert sorted(found(index, "widget")) == ["Overview", "Overview", "turnWidget"]
    assert found(index, "cuMallocHst")[0] == "cuMallocHost", "it is named"
    assert len([n for n in found(index, "page-locked allocation") if n.endswith("MallocHost")]) == 1


def test_a_damaged_store_is_said_and_made_anew(index: Index, toolkit: Path) -> None:
    built(index, toolkit)
    for path in (index.folder / "index").resolve().rglob("*"):
        if path.is_file():
            path.write_bytes(b"rubbish")
    fresh = Index(index.folder)
    with pytest.raises(Damaged, match="damaged") as caught:
        fresh.search("memory", limit=1)
    assert "stitch docs build --rebuild" in caught.value.advice
    with pytest.raises(Damaged):
        built(fresh, toolkit)
    (index.folder / "index" / "settings.json").write_text("[1]")
    with pytest.raises(Damaged):
        built(fresh, toolkit)
    built(fresh, toolkit, anew=True)
    assert found(fresh, "cudaMallocHost")[0] == "cudaMallocHost"
    assert found(index, "cudaMallocHost")[0] == "cudaMallocHost", "an open reader sees the new store"


def test_a_store_of_another_version_is_made_anew(index: Index, toolkit: Path) -> None:
    built(index, toolkit)
    settings = index.folder / "index" / "settings.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"schema": 1}))
    fresh = Index(index.folder)
    with pytest.raises(Damaged, match="made by another version"):
        fresh.search("memory", limit=1)
    assert built(fresh, toolkit)["chunks"] > 0, "without --rebuild"
    assert found(fresh, "cudaMallocHost")[0] == "cudaMallocHost"


BUILD = """
import os, signal, sys
from pathlib import Path
from stitch_tui.tools.docs import sources, store
from stitch_tui.tools.docs.index import Index

folder, include, where = sys.argv[1:]
def dies(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(*{"change": (store.Store, "change"), "make": (store.os, "replace")}[where], dies)
files = sources.installed([Path(include)])
Index(Path(folder)).build(files, lambda *_: None, anew=where == "make")
"""


@pytest.mark.parametrize("where", ["change", "make"])
def test_a_build_that_is_killed_leaves_the_old_index(index: Index, toolkit: Path, where: str) -> None:
    built(index, toolkit)
    (toolkit / "cuda_runtime_api.h").write_text("/** Other text. */\nvoid cudaOther(int x);\n")
    killed = subprocess.run(
        [sys.executable, "-c", BUILD, str(index.folder), str(toolkit), where], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert found(index, "cudaMallocHost")[0] == "cudaMallocHost"
    built(index, toolkit)
    assert found(index, "cudaOther")[0] == "cudaOther"
    index.build(sources.notes(), lambda *_: None, anew=True)
    kinds = sorted(path.name.partition("-")[0] for path in index.folder.iterdir())
    assert kinds == ["build.lock", "index", "store"], "what the killed one left is taken away"


def test_a_store_of_a_version_without_links_is_replaced(index: Index, toolkit: Path) -> None:
    built(index, toolkit)
    link = index.folder / "index"
    store = link.resolve()
    link.unlink()
    store.rename(link)
    assert found(Index(index.folder), "cudaMallocHost")[0] == "cudaMallocHost"
    built(index, toolkit, anew=True)
    assert link.is_symlink()
    assert found(index, "cudaMallocHost")[0] == "cudaMallocHost"


def test_a_search_goes_on_when_the_store_is_replaced_in_its_midst(index: Index, toolkit: Path) -> None:
    built(index, toolkit)
    store, tried = Store(index.folder), list[str]()

    def ask(table: Table) -> int:
        tried.append(store.folder.resolve().name)
        if len(tried) == 1:
            built(Index(index.folder), toolkit, anew=True)
        return len(table.search().limit(None).to_arrow())

    assert store._read(ask) == index.stats()["chunks"]
    assert len(set(tried)) == 2


def test_a_second_builder_waits(index: Index, toolkit: Path) -> None:
    held = try_lock(index.folder / "build.lock")
    assert held is not None
    waits = threading.Event()

    def emit(event: str, _: dict[str, Any]) -> None:
        if event == "waiting":
            waits.set()
            os.close(held)

    index.build(sources.installed([toolkit]), emit)
    assert waits.is_set()


TWICE = """
import sys
from pathlib import Path
from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.index import Index

print("ready", flush=True)
sys.stdin.readline()
files = sources.installed([Path(sys.argv[2])])
print(Index(Path(sys.argv[1])).build(files, lambda *_: None)["chunks"])
"""


def test_two_builds_at_once_leave_each_chunk_once(index: Index, toolkit: Path) -> None:
    words = [sys.executable, "-c", TWICE, str(index.folder), str(toolkit)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    builders = [subprocess.Popen(words, **pipes) for _ in range(2)]
    for builder in builders:
        assert builder.stdout.readline() == "ready\n"
    for builder in builders:
        builder.stdin.write("go\n")
        builder.stdin.flush()
    read = sorted(int(builder.communicate()[0]) for builder in builders)
    assert read == [0, index.stats()["chunks"]], "the second finds all of its work done"


FULL = """
import contextlib, subprocess, sys
from pathlib import Path
from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.index import Index
from stitch_tui.tools.errors import EnvironmentFault

folder, include, anew = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "anew"
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], check=True)
index = Index(folder)
index.build(sources.installed([include]), lambda *_: None)
before = index.stats()["chunks"]
(include / "cuda_runtime_api.h").write_text("/** Other text. */\\nvoid cudaOther(int x);\\n")
with contextlib.suppress(OSError), (folder / "filler").open("wb", buffering=0) as filler:
    while filler.write(bytes(4096)):
        pass
try:
    index.build(sources.installed([include]), lambda *_: None, anew=anew)
except EnvironmentFault as fault:
    print(fault)
assert index.stats()["chunks"] == before
assert index.search("cudaMallocHost", limit=1)[0]["name"] == "cudaMallocHost"
(folder / "filler").unlink()
index.build(sources.installed([include]), lambda *_: None, anew=anew)
assert index.search("cudaOther", limit=1)[0]["name"] == "cudaOther"
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["anew", "changed"])
def test_a_full_disk_leaves_what_was_and_is_named(toolkit: Path, tmp_path: Path, how: str) -> None:
    """On a small file system in a mount namespace of its own."""
    (tmp_path / "small").mkdir()
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*alone, "mount", "-t", "tmpfs", "tmpfs", tmp_path / "small"], check=False).returncode:
        pytest.skip("this machine makes no mount namespaces")
    words = [*alone, sys.executable, "-c", FULL, str(tmp_path / "small"), str(toolkit), how]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cannot be written; what was there is as it was" in done.stdout
    assert "No space left" in done.stdout
    assert ".cargo" not in done.stdout


def test_arguments_are_checked_again_once_lancedb_is_imported() -> None:
    @pydantic.validate_call
    def doubled(number: int) -> int:
        return number * 2

    with pytest.raises(pydantic.ValidationError):
        doubled("no number")  # type: ignore[arg-type]
