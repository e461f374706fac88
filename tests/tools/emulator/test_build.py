"""Building: diagnostics at the candidate's lines, what is refused, and the cache."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from stitch_tui.tools.emulator import Emulator, FrontEnd, Mode
from stitch_tui.tools.errors import EnvironmentFault, UsageError
from stitch_tui.tools.verdict import Build, Category, Finding

EMPTY_RUN = 'extern "C" int stitch_run(const stitch_call* c) { return 0; }\n'
HEAD = '#include <cuda_runtime.h>\n#include "stitch.h"\n'
NVCC = pytest.mark.skipif(not shutil.which("nvcc"), reason="the ptx front end needs nvcc")


def built(emulator: Emulator, path: Path, text: str, mode: Mode = Mode.FAST) -> Build:
    path.write_text(text)
    return asyncio.run(emulator.build(path, mode, front_end=FrontEnd.SOURCE, timeout=100))


def refusal(emulator: Emulator, path: Path, text: str) -> Finding:
    build = built(emulator, path, text)
    assert not build.ok
    assert not build.artifact
    (finding,) = build.diagnostics
    assert finding.file in ("candidate.cu", "")
    return finding


REFUSED = [
    ('asm volatile("wgmma.fence.sync.aligned;");', "wgmma.fence"),
    ('asm volatile("bar.sync 1, 64;");', "named barrier"),
    ('asm volatile("cp.async.bulk.commit_group;");', "cp.async.bulk"),
    ('asm volatile("barrier.cluster.arrive.aligned;");', "barrier.cluster"),
    ('unsigned x; asm("frobnicate.u32 %0, 1;" : "=r"(x));', "frobnicate"),
    ("cudaTextureObject_t t = 0; (void)t;", "textures"),
    ("k2<<<1, 1>>>();", "dynamic parallelism"),
]


@pytest.mark.parametrize(("statement", "named"), REFUSED)
def test_what_the_emulator_does_not_run_is_refused_with_its_line(
    emulator: Emulator, candidate: Path, statement: str, named: str
) -> None:
    kernel = f"__global__ void k2();\n__global__ void k() {{\n  {statement}\n}}\n"
    finding = refusal(emulator, candidate, HEAD + kernel + EMPTY_RUN)
    assert finding.category is Category.UNSUPPORTED
    assert finding.line == 5
    assert named in finding.message


@pytest.mark.parametrize("header", ["torch/extension.h", "cudnn.h", "cute/tensor.hpp", "no_such_library.h"])
def test_a_header_that_is_not_to_be_had_is_named_with_its_line(
    emulator: Emulator, candidate: Path, header: str
) -> None:
    finding = refusal(emulator, candidate, f"{HEAD}#include <{header}>\n{EMPTY_RUN}")
    assert (finding.category, finding.line) == (Category.UNSUPPORTED, 3)
    assert header in finding.message


def test_a_cluster_launch_is_refused_rather_than_run_without_clusters(
    emulator: Emulator, candidate: Path
) -> None:
    text = HEAD + "__global__ void __cluster_dims__(2, 1, 1) k() {}\n" + EMPTY_RUN
    assert refusal(emulator, candidate, text).category is Category.UNSUPPORTED


def test_a_compiler_error_has_file_line_column_and_text(emulator: Emulator, candidate: Path) -> None:
    finding = refusal(emulator, candidate, HEAD + "int f() {\n  return undeclared_name;\n}\n" + EMPTY_RUN)
    assert finding.category is Category.BUILD_ERROR
    assert (finding.file, finding.line, finding.column) == ("candidate.cu", 4, 10)
    assert "undeclared_name" in finding.message


def test_an_error_in_a_header_of_the_candidate_names_that_header(emulator: Emulator, candidate: Path) -> None:
    (candidate.parent / "tile.cuh").write_text("#pragma once\ninline int broken() { return missing; }\n")
    candidate.write_text("#include <tile.cuh>\n" + EMPTY_RUN)
    build = asyncio.run(emulator.build(candidate, Mode.FAST, front_end=FrontEnd.SOURCE))
    assert [(f.file, f.line) for f in build.diagnostics] == [("tile.cuh", 2)]


def test_a_candidate_without_stitch_run_is_told_what_to_define(emulator: Emulator, candidate: Path) -> None:
    finding = refusal(emulator, candidate, HEAD)
    assert finding.category is Category.LINK_ERROR
    assert "stitch_run" in finding.message


def test_a_build_is_kept_and_follows_its_content(emulator: Emulator, candidate: Path) -> None:
    header = candidate.parent / "value.h"
    header.write_text(f"#define VALUE {os.getpid()}1\n")
    text = '#include "value.h"\n' + HEAD + 'extern "C" int stitch_run(const stitch_call*) { return VALUE; }\n'
    first = built(emulator, candidate, text)
    again = built(emulator, candidate, text)
    assert (first.ok, first.cached, again.cached) == (True, False, True)
    assert again.artifact == first.artifact
    header.write_text(f"#define VALUE {os.getpid()}2\n")
    assert built(emulator, candidate, text).key != first.key


def test_two_builders_of_the_same_candidate_build_it_once(emulator: Emulator, candidate: Path) -> None:
    candidate.write_text(f"{HEAD}static const int fresh = {os.getpid()};\n{EMPTY_RUN}")

    async def both() -> list[Build]:
        one = emulator.build(candidate, Mode.FAST, front_end=FrontEnd.SOURCE)
        other = Emulator(emulator.cache.root).build(candidate, Mode.FAST, front_end=FrontEnd.SOURCE)
        return list(await asyncio.gather(one, other))

    assert sorted(build.cached for build in asyncio.run(both())) == [False, True]


def test_a_failed_build_leaves_nothing_behind(emulator: Emulator, candidate: Path) -> None:
    refusal(emulator, candidate, HEAD + "int x = nothing;\n" + EMPTY_RUN)
    build = built(emulator, candidate, HEAD + "int x = nothing;\n" + EMPTY_RUN)
    assert not (emulator.cache.root / "builds" / build.key).exists()
    assert not list((emulator.cache.root / "scratch").glob(f"{build.key[:12]}-*"))


def test_a_build_that_takes_too_long_is_a_build_error(emulator: Emulator, candidate: Path) -> None:
    candidate.write_text(HEAD + EMPTY_RUN + f"// {os.getpid()}\n")
    build = asyncio.run(emulator.build(candidate, Mode.CHECK, front_end=FrontEnd.SOURCE, timeout=0.01))
    assert not build.ok
    assert "longer than 0.01 s" in build.diagnostics[0].message


def test_a_missing_compiler_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="no C\\+\\+17 compiler") as fault:
        Emulator(tmp_path, cxx="no-such-compiler")
    assert "install" in fault.value.advice


def test_a_missing_candidate_is_a_usage_error(emulator: Emulator, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        asyncio.run(emulator.build(tmp_path / "absent.cu", Mode.FAST))


@pytest.mark.slow
@NVCC
def test_auto_takes_the_ptx_front_end_for_what_the_source_one_lacks(
    emulator: Emulator, candidate: Path
) -> None:
    candidate.write_text(HEAD + "#include <cuda/std/limits>\n" + EMPTY_RUN)
    build = asyncio.run(emulator.build(candidate, Mode.FAST))
    assert build.ok, build.diagnostics
    assert build.arch.startswith("ptx")


@pytest.mark.slow
@NVCC
def test_nvcc_has_the_last_word_on_errors(emulator: Emulator, candidate: Path) -> None:
    candidate = candidate.parent / "with a space" / candidate.name
    candidate.parent.mkdir()
    candidate.write_text(HEAD + "int f() {\n  return undeclared_name;\n}\n" + EMPTY_RUN)
    build = asyncio.run(emulator.build(candidate, Mode.FAST))
    (finding,) = build.diagnostics
    assert (finding.category, finding.file, finding.line) == (Category.BUILD_ERROR, "candidate.cu", 4)
    assert build.arch.startswith("ptx")


@pytest.fixture
def own_cache(emulator: Emulator, tmp_path: Path) -> Emulator:
    """A cache to break, with the shared runtimes in it."""
    for runtime in emulator.cache.root.glob("builds/*/runtime.o"):
        shutil.copytree(runtime.parent, tmp_path / "cache" / "builds" / runtime.parent.name)
    return Emulator(tmp_path / "cache")


@pytest.mark.parametrize("part", ["candidate", "build.json"])
@pytest.mark.parametrize("damage", [b"", b"\x7fELF garbage"])
def test_a_damaged_build_in_the_cache_is_made_anew(
    own_cache: Emulator, candidate: Path, part: str, damage: bytes
) -> None:
    first = built(own_cache, candidate, HEAD + EMPTY_RUN)
    whole = Path(first.artifact).read_bytes()
    Path(first.artifact).with_name(part).write_bytes(damage)
    again = built(own_cache, candidate, HEAD + EMPTY_RUN)
    assert (again.ok, again.cached) == (True, False)
    assert len(Path(again.artifact).read_bytes()) == len(whole)


@pytest.mark.slow
def test_a_damaged_runtime_is_made_anew_and_not_held_against_the_candidate(
    own_cache: Emulator, candidate: Path
) -> None:
    assert built(own_cache, candidate, HEAD + EMPTY_RUN).ok
    for runtime in own_cache.cache.root.glob("builds/*/runtime.o"):
        runtime.write_bytes(runtime.read_bytes()[:1000])
    assert built(own_cache, candidate, HEAD + "// another\n" + EMPTY_RUN).ok


def test_a_cache_that_was_deleted_meanwhile_is_made_again(own_cache: Emulator, candidate: Path) -> None:
    first = built(own_cache, candidate, HEAD + EMPTY_RUN)
    assert first.ok
    shutil.rmtree(Path(first.artifact).parent)
    for name in ("locks", "scratch", "failures"):
        shutil.rmtree(own_cache.cache.root / name)
    again = built(own_cache, candidate, HEAD + EMPTY_RUN)
    assert (again.ok, again.cached) == (True, False)
