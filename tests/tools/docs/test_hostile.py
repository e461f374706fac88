"""Bad input costs itself alone and is named: odd files, folders, queries, and a cache of others."""

import os
from pathlib import Path

import pytest

from stitch_tui.tools.docs import headers, sources, worker
from stitch_tui.tools.docs import index as index_module
from stitch_tui.tools.docs.chunk import Chunk, Cut, Lines, within
from stitch_tui.tools.docs.index import Index
from stitch_tui.tools.docs.sources import Added, SourceFile
from stitch_tui.tools.docs.words import MOST_WORDS, misspellable, query_words, said_stems
from stitch_tui.tools.errors import EnvironmentFault, UsageError


@pytest.fixture
def index(toolkit: Path, tmp_path: Path) -> Index:
    (tmp_path / "docs").mkdir()
    return Index(tmp_path / "docs")


def desk(index: Index) -> worker.Desk:
    return worker.Desk(index, lambda *_: None, None)


def test_bytes_named_as_text_and_files_without_end_are_left_out_by_name(index: Index, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "good.md").write_text("# Swizzle\n\nXor the column.\n")
    (folder / "bytes.md").write_bytes(bytes(range(256)))
    (folder / "utf16.txt").write_text("tiles", encoding="utf-16")
    with (folder / "endless.txt").open("wb") as endless:
        endless.truncate(sources.LARGEST_BYTES + 1)
    with pytest.raises(UsageError, match="too large"):
        sources.checked(folder / "endless.txt", "", "")
    built = index.build(sources.of_added(Added(str(folder), "mine")), lambda *_: None)
    assert [Path(line.partition(":")[0]).name for line in built["unread"]] == ["bytes.md", "utf16.txt"]
    assert index.search("xor column", limit=1, library="mine")
    grown = SourceFile(folder / "endless.txt", "mine", "mine", "", "")
    assert "too large" in index.build([grown, *sources.notes()], lambda *_: None)["unread"][0]


def test_a_file_that_takes_its_parser_long_is_left_out_by_name(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each `<` may begin a tag, so that the parser looks through all the rest for every one."""
    monkeypatch.setattr(index_module, "FILE_CPU_S", 0.2)
    (tmp_path / "angles.html").write_text("<" * sources.LARGEST_BYTES)
    pages = [SourceFile(tmp_path / name, "mine", "mine", "", "") for name in ("angles.html", "good.md")]
    (tmp_path / "good.md").write_text("# Swizzle\n\nXor the column.\n")
    built = index.build(pages, lambda *_: None)
    assert [line.partition(" (")[0] for line in built["unread"]] == [
        f"{tmp_path / 'angles.html'}: it takes too long to read: over 0.2 s of computing"
    ]
    assert index.search("xor column", limit=1)


@pytest.mark.parametrize(
    ("content", "why"), [(bytes(range(256)), "no text in UTF-8"), (b" \n", "no text in it")]
)
def test_a_single_file_that_says_nothing_is_refused_and_not_remembered(
    index: Index, toolkit: Path, tmp_path: Path, content: bytes, why: str
) -> None:
    index.build(sources.notes(), lambda *_: None)
    (tmp_path / "mine.md").write_bytes(content)
    with pytest.raises(UsageError) as caught:
        worker.add(desk(index), {"path": str(tmp_path / "mine.md")})
    assert why in str(caught.value)
    assert sources.added_paths() == []


def test_links_that_lead_round_are_not_followed(index: Index, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "good.md").write_text("# Swizzle\n\nXor the column.\n")
    (folder / "ring").symlink_to(folder)
    (folder / "self.md").symlink_to(folder / "self.md")
    assert [file.path.name for file in sources.of_added(Added(str(folder)))] == ["good.md"]
    for path in (folder / "self.md", folder / ("x" * 300 + ".md")):
        with pytest.raises(UsageError, match="no such file"):
            sources.checked(path, "", "")
        with pytest.raises(UsageError, match="was not added"):
            worker.remove(desk(index), {"path": str(path)})


def test_a_file_that_vanishes_during_the_build_is_named_and_leaves_the_index(
    index: Index, tmp_path: Path
) -> None:
    pages = [tmp_path / "one.md", tmp_path / "two.md"]
    for page in pages:
        page.write_text(f"# Page {page.stem}\n\nSwizzle.\n")
    files = [file for page in pages for file in sources.of_added(Added(str(page), "mine"))]
    index.build(files, lambda *_: None)
    pages[0].unlink()
    assert index.build(files, lambda *_: None)["unread"] == [f"{pages[0]}: No such file or directory"]
    assert [row["name"] for row in index.search("swizzle", limit=5, library="mine")] == ["Page two"]


def test_what_was_added_and_is_gone_is_said_until_it_is_forgotten(
    index: Index, toolkit: Path, tmp_path: Path
) -> None:
    page, folders = tmp_path / "mine.md", {"folders": [str(toolkit)]}
    page.write_text("# Swizzle\n\nXor the column.\n")
    worker.add(desk(index), {"path": str(page), **folders})
    page.unlink()
    told = worker.build(desk(index), folders)["unread"]
    assert told == [f"{page}: it is gone; to forget it: stitch docs remove"]
    worker.remove(desk(index), {"path": str(page)})
    assert worker.build(desk(index), folders)["unread"] == []


def test_a_cache_that_cannot_be_written_is_named_with_a_way_out(index: Index) -> None:
    (index.folder / "build.lock").mkdir()
    with pytest.raises(EnvironmentFault, match="cannot be written") as caught:
        index.build(sources.notes(), lambda *_: None)
    assert "XDG_CACHE_HOME" in caught.value.advice
    with pytest.raises(EnvironmentFault, match="cannot be written"):
        index.remove("anything")


@pytest.mark.parametrize("query", ["", "   ", "?!*()\"'", "\0\x1b", "é" * 5000, "x" * 10_000, "'; --"])
def test_a_query_that_says_nothing_finds_nothing(index: Index, query: str) -> None:
    index.build(sources.notes(), lambda *_: None)
    assert index.search(query, limit=5) == []


@pytest.mark.parametrize(
    "query", ['"warp AND block" OR NOT +x -y ^2 ~3 [a TO b] {c}', "names:warp*", "warp " * 2000]
)
def test_operators_of_a_query_language_are_words_like_others(index: Index, query: str) -> None:
    index.build(sources.notes(), lambda *_: None)
    assert index.search(query, limit=5)
    assert index.search(query, limit=5, library="'; no \"such") == []


def test_words_and_filters_that_are_no_text_find_nothing_and_damage_nothing(index: Index) -> None:
    index.build(sources.notes(), lambda *_: None)
    half = "\udcff"
    assert index.search(f"{half} warp", limit=5)
    assert index.search("warp", limit=5, library=half, version=half) == []
    assert index.at(half, 1, half) is None


def test_a_query_is_no_more_than_its_first_words() -> None:
    query = " ".join(f"cudaCall{number}Of" for number in range(3000))
    assert [len(found(query)) for found in (query_words, said_stems, misspellable)] == [MOST_WORDS] * 3
    assert query_words(query)[0] == "cudacall0of"


def test_lines_are_counted_once_however_many_declarations_there_are() -> None:
    text = "a\n\nb\n"
    assert [Lines(text).at(place) for place in range(len(text))] == [1, 1, 2, 3, 3]
    source = "".join(f"/** Does {number}. */\nint call{number}(int a);\n" for number in range(300))
    assert [chunk.line for chunk in headers.chunks(source)] == list(range(1, 601, 2))
    pieces = list(within(Chunk("n", "n", "one two\n" * 40, 7), Cut(20, 2)))
    assert [piece.line for piece in pieces][:3] == [7, 16, 25]


def test_a_name_that_is_no_text_is_refused_in_words_that_can_be_printed(index: Index) -> None:
    with pytest.raises(UsageError) as caught:
        worker.remove(desk(index), {"path": os.fsdecode(b"\xff.md")})
    assert caught.value.advice == "nothing was added"
