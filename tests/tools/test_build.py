import asyncio
import dataclasses
import os
import select
import shutil
import sys
import textwrap
from pathlib import Path

import pytest
from processes import ended

from stitch_tui.tools.build import build_cuda
from stitch_tui.tools.compile_slots import JOB_BYTES, OpenSlots, available_bytes, total_bytes
from stitch_tui.tools.errors import EnvironmentFault, UsageError
from stitch_tui.tools.nvcc import recipe, target_arch
from stitch_tui.tools.toolkit import Library, Toolkit, find_toolkit
from stitch_tui.tools.verdict import Build, Category, Finding

ROOT = Path(__file__).parents[2]
KERNEL = """\
#include "stitch.h"
template <int N> __global__ void tile(const float* x, float* y, long n) {
  __shared__ float s[1024];
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) y[i] = s[(threadIdx.x + N) % blockDim.x];
}
extern "C" int stitch_run(const stitch_call* c) {
  tile<3><<<4, 256, 0, (cudaStream_t)c->stream>>>((float*)c->in[0].data, (float*)c->out[0].data, 9);
  return cudaGetLastError() ? STITCH_CUDA_ERROR : STITCH_OK;
}
"""
HOST_ONLY = 'extern "C" int stitch_run(const void*) { return 0; }\n'


@pytest.fixture(scope="module")
def toolkit() -> Toolkit:
    found = asyncio.run(find_toolkit())
    if found.nvcc is None or found.host_compiler is None:
        pytest.skip("needs nvcc and g++")
    return found


@pytest.fixture(autouse=True)
def _runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))


@pytest.fixture
def _no_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVIDIA wheels beside the tests' own packages are not looked at."""
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if not entry.endswith("-packages")])


def build(source: Path, toolkit: Toolkit, text: str = "", timeout: float = 120) -> Build:
    """Build `text` as `source`, with a cache beside it."""
    if text:
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
    cache = source.parent / "cache"
    return asyncio.run(build_cuda(source, arch="sm_90", toolkit=toolkit, cache=cache, timeout=timeout))


def only_error(result: Build) -> Finding:
    assert not result.ok
    errors = [finding for finding in result.diagnostics if finding.detail["severity"] == "error"]
    assert len(errors) == 1
    assert errors[0] == result.diagnostics[0]
    return errors[0]


def test_a_kernel_becomes_a_library_with_its_facts_and_the_next_build_is_a_cache_hit(
    tmp_path: Path, toolkit: Toolkit
) -> None:
    source = tmp_path / "with spaces, ünicode" / "kernel.cu"
    first = build(source, toolkit, KERNEL)
    assert first.ok, Path(first.log).read_text()
    (facts,) = first.kernels
    assert facts.kernel.startswith("void tile<3>(") or toolkit.demangler is None
    assert facts.shared_bytes == 4096
    assert facts.registers > 0
    assert first.arch == "sm_90"
    assert Path(first.artifact).is_file()
    assert "Used" in Path(first.log).read_text()
    assert build(source, toolkit) == first.model_copy(update={"cached": True})


@pytest.mark.slow
def test_an_artifact_that_was_tampered_with_is_built_anew(tmp_path: Path, toolkit: Toolkit) -> None:
    source = tmp_path / "k.cu"
    first = build(source, toolkit, HOST_ONLY)
    Path(first.artifact).write_bytes(b"something else")
    second = build(source, toolkit)
    assert second.ok
    assert not second.cached
    assert Path(second.artifact).read_bytes()[:4] == b"\x7fELF"


def test_a_broken_source_is_named_with_its_line_and_column(tmp_path: Path, toolkit: Toolkit) -> None:
    broken = KERNEL.replace("+ N)", "+ zork)")
    error = only_error(build(tmp_path / "mine.cu", toolkit, broken))
    line = next(n for n, text in enumerate(broken.splitlines(), 1) if "zork" in text)
    assert (error.file, error.line) == ("mine.cu", line)
    assert error.column == broken.splitlines()[line - 1].index("zork") + 1
    assert error.category is Category.BUILD_ERROR


def test_a_template_error_is_short_in_the_finding_and_whole_in_the_log(
    tmp_path: Path, toolkit: Toolkit
) -> None:
    text = "#include <algorithm>\nstruct A { int x; };\nvoid f(A* a) { std::sort(a, a + 3); }\n"
    result = build(tmp_path / "k.cu", toolkit, text + HOST_ONLY)
    error = only_error(result)
    assert (error.file, error.line) == ("k.cu", 3)
    assert len(error.message) < 200
    assert "instantiation of" in Path(result.log).read_text()


def test_an_error_in_inline_assembly_has_its_source_line(tmp_path: Path, toolkit: Toolkit) -> None:
    text = '__global__ void k(int* p) {\n  asm volatile("bogus.b32 %0;" :: "r"(*p));\n}\n'
    error = only_error(build(tmp_path / "k.cu", toolkit, text + HOST_ONLY))
    assert (error.file, error.line) == ("k.cu", 2)
    assert "bogus" in error.message


def test_a_function_that_nobody_defines_is_a_link_error(tmp_path: Path, toolkit: Toolkit) -> None:
    text = 'int helper(int);\nextern "C" int stitch_run(const void*) { return helper(1); }\n'
    error = only_error(build(tmp_path / "k.cu", toolkit, text))
    assert error.category is Category.LINK_ERROR
    assert "helper(int)" in error.message


def test_a_call_that_only_the_object_code_shows_is_evidence(tmp_path: Path, toolkit: Toolkit) -> None:
    text = (
        "#define GLUE(a, b) a##b\n"
        'extern "C" void* GLUE(dl, sym)(void*, const char*);\n'
        'extern "C" int stitch_run(const void*) { return GLUE(dl, sym)(nullptr, "x") != nullptr; }\n'
    )
    error = only_error(build(tmp_path / "k.cu", toolkit, text))
    assert error.category is Category.HACK_SUSPECTED
    assert "dlsym loads code" in error.message


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('extern "C" int other() { return 0; }', "stitch_run is not exported"),
        ("int stitch_run(const void*) { return 0; }", "C++ linkage"),
        ('extern "C" __attribute__((visibility("hidden"))) int stitch_run() { return 0; }', "not exported"),
    ],
)
def test_a_library_without_the_entry_point_is_a_link_error(
    text: str, why: str, tmp_path: Path, toolkit: Toolkit
) -> None:
    error = only_error(build(tmp_path / "k.cu", toolkit, text))
    assert error.category is Category.LINK_ERROR
    assert why in error.message


def test_a_compilation_without_end_is_stopped_with_all_its_processes(
    tmp_path: Path, toolkit: Toolkit
) -> None:
    text = textwrap.dedent("""
        template <int N, int M> struct F { static constexpr long v = F<N-1, M>::v + F<N-1, M + N>::v; };
        template <int M> struct F<0, M> { static constexpr long v = M; };
        long forever() { return F<150, 0>::v; }
    """)
    error = only_error(build(tmp_path / "k.cu", toolkit, text + HOST_ONLY, timeout=1))
    assert error.category is Category.HOST_TIMEOUT
    assert "1 s" in error.message
    inside = str(tmp_path)
    orphans = [p.name for p in Path("/proc").iterdir() if p.name.isdigit() and _works_in(p, inside)]
    assert orphans == []
    assert not any((tmp_path / "cache" / "scratch").iterdir())


def _works_in(proc: Path, folder: str) -> bool:
    try:
        return str((proc / "cwd").readlink()).startswith(folder)
    except OSError:
        return False


def test_a_changed_header_is_a_different_build_and_a_moved_source_is_the_same_one(
    tmp_path: Path, toolkit: Toolkit
) -> None:
    source, header = tmp_path / "k.cu", tmp_path / "tiles" / "size.h"
    header.parent.mkdir()
    header.write_text("#define SIZE 1\n")
    first = build(source, toolkit, f'#include "tiles/size.h"\nint size = SIZE;\n{HOST_ONLY}')
    shutil.copytree(header.parent, tmp_path / "moved" / "tiles")
    shutil.copytree(tmp_path / "cache", tmp_path / "moved" / "cache")
    moved = build(tmp_path / "moved" / "k.cu", toolkit, source.read_text())
    assert (moved.key, moved.cached) == (first.key, True)
    header.write_text("#define SIZE oops\n")
    error = only_error(build(source, toolkit))
    assert 'identifier "oops"' in error.message


@pytest.mark.slow
def test_two_processes_that_build_one_source_compile_it_once(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "k.cu").write_text(HOST_ONLY)
    program = textwrap.dedent("""
        import asyncio, sys
        from pathlib import Path
        from stitch_tui.tools.build import build_cuda
        from stitch_tui.tools.toolkit import find_toolkit
        async def main():
            here = Path(sys.argv[1])
            toolkit = await find_toolkit()
            built = await build_cuda(here / "k.cu", arch="sm_90", toolkit=toolkit, cache=here / "cache")
            print(built.ok, built.cached)
        asyncio.run(main())
    """)

    async def race() -> list[bytes]:
        racers = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, str(tmp_path), cwd=ROOT, stdout=asyncio.subprocess.PIPE
            )
            for _ in range(2)
        ]
        return [(await racer.communicate())[0].strip() for racer in racers]

    assert sorted(asyncio.run(race())) == [b"True False", b"True True"]


def test_nvcc_variables_of_the_user_do_not_reach_a_build(
    tmp_path: Path, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "--no-such-flag")
    assert build(tmp_path / "k.cu", toolkit, HOST_ONLY).ok


def test_a_header_of_an_absent_library_says_that_it_is_not_installed(
    tmp_path: Path, toolkit: Toolkit
) -> None:
    bare = dataclasses.replace(toolkit, cudnn=None)
    if any(Path("/usr/include").glob("cudnn.h")):
        pytest.skip("cuDNN is installed where every compiler looks")
    error = only_error(build(tmp_path / "k.cu", bare, "#include <cudnn.h>\n" + HOST_ONLY))
    assert "cudnn: not installed on this machine" in error.message


def test_without_nvcc_or_a_host_compiler_the_error_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(HOST_ONLY)
    with pytest.raises(EnvironmentFault, match="pip install"):
        build(tmp_path / "k.cu", Toolkit())
    with pytest.raises(EnvironmentFault, match="install g"):
        build(tmp_path / "k.cu", Toolkit(nvcc=Path("/usr/bin/nvcc")))


def test_a_gpu_that_nvcc_does_not_know_is_a_fault_of_the_machine(tmp_path: Path, toolkit: Toolkit) -> None:
    source = tmp_path / "k.cu"
    source.write_text(HOST_ONLY)
    with pytest.raises(EnvironmentFault, match="Unsupported gpu architecture"):
        asyncio.run(build_cuda(source, arch="sm_999", toolkit=toolkit, cache=tmp_path / "cache"))


def test_the_candidate_cannot_blame_the_machine(tmp_path: Path, toolkit: Toolkit) -> None:
    error = only_error(build(tmp_path / "k.cu", toolkit, "#error No space left on device\n" + HOST_ONLY))
    assert error.category is Category.BUILD_ERROR


def test_a_compiler_that_runs_out_of_memory_is_not_a_build_error(
    tmp_path: Path, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stitch_tui.tools.build.LEAST_MEMORY", 0)
    monkeypatch.setattr("stitch_tui.tools.build.total_bytes", lambda: 160 << 20)
    result = build(tmp_path / "k.cu", toolkit, "#include <regex>\n#include <map>\n" + HOST_ONLY)
    assert only_error(result).category is Category.OUT_OF_MEMORY_HOST


def test_compilers_run_side_by_side_only_while_memory_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stitch_tui.tools.compile_slots.available_bytes", lambda: JOB_BYTES - 1)
    assert list(OpenSlots(tmp_path)) == [tmp_path / "0"]
    monkeypatch.setattr("stitch_tui.tools.compile_slots.available_bytes", lambda: JOB_BYTES)
    assert len(list(OpenSlots(tmp_path))) == len(os.sched_getaffinity(0))


def test_this_machine_has_memory() -> None:
    assert 0 < available_bytes() <= total_bytes()


def test_a_full_disk_is_a_fault_of_the_machine_that_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(HOST_ONLY)
    _program(tmp_path / "nvcc", "echo 'fatal error: cannot write: No space left on device' >&2; exit 1")
    toolkit = Toolkit(nvcc=tmp_path / "nvcc", host_compiler=tmp_path / "nvcc")
    with pytest.raises(EnvironmentFault, match="No space left on device") as caught:
        build(tmp_path / "k.cu", toolkit)
    assert caught.value.where.startswith(str(tmp_path / "cache"))


def test_a_failure_without_a_diagnostic_shows_the_end_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(HOST_ONLY)
    _program(tmp_path / "nvcc", "echo 'something odd' >&2; exit 7")
    result = build(tmp_path / "k.cu", Toolkit(nvcc=tmp_path / "nvcc", host_compiler=tmp_path / "nvcc"))
    assert only_error(result).message == "nvcc ended with status 7\nsomething odd"
    assert Path(result.log).read_text() == "something odd\n"


def test_cancelling_a_build_ends_its_compiler_and_frees_its_place(tmp_path: Path) -> None:
    source, started = tmp_path / "k.cu", tmp_path / "started"
    source.write_text(HOST_ONLY)
    os.mkfifo(started)
    reader = os.open(started, os.O_RDONLY | os.O_NONBLOCK)
    _program(tmp_path / "nvcc", f"sleep 600 & echo $! > '{started}'; wait")
    toolkit = Toolkit(nvcc=tmp_path / "nvcc", host_compiler=tmp_path / "nvcc")
    cache = tmp_path / "cache"

    async def cancelled() -> int:
        task = asyncio.create_task(build_cuda(source, arch="sm_90", toolkit=toolkit, cache=cache))
        assert (await asyncio.to_thread(select.select, [reader], [], [], 20))[0]
        compiler = int(os.read(reader, 100))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return compiler

    compiler = asyncio.run(cancelled())
    os.close(reader)
    assert ended(compiler)
    assert not any((cache / "scratch").iterdir())
    _program(tmp_path / "nvcc", "exit 7")
    assert not build(source, toolkit).ok


def test_a_source_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    toolkit = Toolkit(nvcc=Path("nvcc"), host_compiler=Path("g++"))
    with pytest.raises(UsageError, match="cannot read the source"):
        build(tmp_path / "missing.cu", toolkit)


@pytest.mark.parametrize(
    ("text", "arch", "target"),
    [
        ("x += 1;", "sm_90", "sm_90"),
        ('asm("wgmma.fence.sync.aligned;");', "sm_90", "sm_90a"),
        ("#include <cute/tensor.hpp>", "sm_100", "sm_100a"),
        ('asm("wgmma.fence.sync.aligned;");', "sm_80", "sm_80"),
        ("int wgmma_free;", "sm_90", "sm_90"),
    ],
)
def test_the_target_has_the_suffix_a_only_where_the_source_needs_it(
    text: str, arch: str, target: str
) -> None:
    assert target_arch(text, arch) == target


def test_libraries_are_linked_by_file_and_found_again_only_when_the_source_includes_them() -> None:
    cublas = Library("cublas", Path("/w/cublas/include"), Path("/w/cublas/lib/libcublas.so.13"))
    toolkit = Toolkit(nvcc=Path("nvcc"), host_compiler=Path("g++"), cublas=cublas)
    with_it = recipe("#include <cublas_v2.h>", "sm_90", toolkit, ()).command
    assert "-l:libcublas.so.13" in with_it
    assert '"-rpath=/w/cublas/lib"' in with_it
    assert "/w/cublas/include" in with_it
    assert not any("cublas" in part for part in recipe("int x;", "sm_90", toolkit, ()).command)


@pytest.mark.usefixtures("_no_wheels")
def test_nvcc_of_a_wheel_in_the_interpreter_of_the_reference_is_found(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    wheel = site / "nvidia" / "cu13"
    for name in (
        "bin/nvcc",
        "include/cublas_v2.h",
        "lib/libcublas.so.13",
        "lib/libcublas.so.12",
        "lib/libcudart_static.a",
    ):
        (wheel / name).parent.mkdir(parents=True, exist_ok=True)
        (wheel / name).touch()
    dry_run = f"#$ TOP={wheel}/bin/.."
    _program(wheel / "bin/nvcc", f'echo "Cuda compilation tools, release 13.0, V13.0.88"; echo "{dry_run}"')
    _program(tmp_path / "python", f"echo '[\"{site}\"]'")
    found = asyncio.run(find_toolkit(str(tmp_path / "python"), environ={"PATH": ""}, system=tmp_path))
    assert (found.nvcc, found.version, found.root) == (wheel / "bin/nvcc", "13.0.88", wheel)
    assert found.library_folders == (wheel / "lib",)
    assert found.cublas == Library("cublas", wheel / "include", wheel / "lib/libcublas.so.13")


@pytest.mark.usefixtures("_no_wheels")
def test_nsys_inside_nsight_compute_is_found_and_the_newest_version_wins(tmp_path: Path) -> None:
    for version in ("2024.3.2", "2025.10.1", "2025.9.0"):
        place = tmp_path / "opt/nvidia/nsight-compute" / version / "host/target-linux-x64"
        place.mkdir(parents=True)
        _program(place / "nsys", "true")
        _program(place.parents[1] / "ncu", "true")
    found = asyncio.run(find_toolkit(environ={"PATH": ""}, system=tmp_path))
    newest = tmp_path / "opt/nvidia/nsight-compute/2025.10.1"
    assert (found.ncu, found.nsys) == (newest / "ncu", newest / "host/target-linux-x64/nsys")


@pytest.mark.usefixtures("_no_wheels")
def test_nothing_installed_is_an_empty_toolkit_and_no_error(tmp_path: Path) -> None:
    found = asyncio.run(find_toolkit(str(tmp_path / "no-python"), environ={"PATH": ""}, system=tmp_path))
    assert (found.nvcc, found.host_compiler, found.cublas, found.ncu) == (None, None, None, None)


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
