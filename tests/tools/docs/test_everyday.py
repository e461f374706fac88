"""What names are for in everyday words: known for every note and variant, and found by them alone."""

from pathlib import Path

from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.everyday import call_of, everyday_text, everyday_words
from stitch_tui.tools.docs.index import Index
from stitch_tui.tools.docs.search import Options


def test_every_section_of_the_notes_is_said_in_everyday_words() -> None:
    sections = {chunk.name for note in sources.notes() for chunk in note.chunks()}
    assert [name for name in sorted(sections) if not everyday_text(name)] == []


def test_a_variant_and_the_drivers_twin_are_said_as_the_call_is() -> None:
    assert call_of("cuStreamQuery_ptsz") == "cudaStreamQuery"
    assert call_of("cublasSgemv_v2_64") == "cublasSgemv"
    assert call_of("clock64") == "clock64"
    assert everyday_text("cuStreamQuery") == everyday_text("cudaStreamQuery") != ""
    assert everyday_words("cudaThatIsNot") == ""


def test_a_call_is_found_by_what_it_is_for_in_words_that_its_header_lacks(
    toolkit: Path, tmp_path: Path
) -> None:
    index = Index(tmp_path / "docs")
    index.folder.mkdir()
    index.build(sources.installed([toolkit]), lambda *_: None)
    query = "RAM that must never be swapped out"
    assert index.search(query, limit=1)[0]["name"] == "cudaMallocHost"
    plain = Options(synonyms=False, everyday=False)
    assert "cudaMallocHost" not in [row["name"] for row in index.search(query, limit=5, options=plain)]


def test_types_and_variants_of_one_call_take_one_place(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda.h").write_text("#define CUDA_VERSION 13000\n")
    calls = ("cublasSgemv", "cublasDgemv_v2", "cublasSgemv_v2_64", "cublasSgemm")
    declared = "".join(f"cublasStatus_t {name}(cublasHandle_t handle, int m);\n" for name in calls)
    (tmp_path / "include" / "cublas_api.h").write_text(declared)
    index = Index(tmp_path / "docs")
    index.folder.mkdir()
    index.build(sources.installed([tmp_path / "include"]), lambda *_: None)
    found = [row["name"] for row in index.search("cublas handle", limit=5)]
    assert len([name for name in found if "gemv" in name]) == 1
    assert "cublasSgemm" in found
    named = [row["name"] for row in index.search("cublasDgemv_v2", limit=5)]
    assert named[0] == "cublasDgemv_v2", "who names a variant gets it"
