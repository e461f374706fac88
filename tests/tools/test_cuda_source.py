import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stitch_tui.tools.cuda_mask import mask
from stitch_tui.tools.cuda_source import CudaSource, Include
from stitch_tui.tools.cuda_tokens import tokens

SOURCE = """\
#include "stitch.h"
#include <cuda_fp16.h>
// system("comment");
static int once = init_all();
__device__ float table[4];
__constant__ int limits[2] = {1, 2};
int helper(int);
static Boot boot;
int (*hook)(int) = nullptr;
namespace {
template <int N>
__global__ void __launch_bounds__(256, 2) tile(const float* __restrict__ x, float* y) {
  __shared__ __align__(16) float s[256];
  y[0] = s[0] + clampf(x[0]);
}
}
extern "C" __global__ void raw(int* p) { *p = 1; }
extern "C" int stitch_run(const stitch_call* c) {
  auto plus = [=] __host__ __device__ (int a) { return a + 1; };
  tile<3><<<dim3(4), 256, 0, (cudaStream_t)c->stream>>>(x, y);
  raw<<<1, 1>>>(p);
  const char* text = "system(\\"ls\\")";
  std::sort(a, b); handle.close();
  return plus(2);
}
extern "C" {
int stitch_bind(const stitch_call*) { return 0; }
static int hidden() { return 0; }
}
__attribute__((constructor)) void early() { raise_flag(); }
"""


@pytest.fixture(scope="module")
def source() -> CudaSource:
    return CudaSource(SOURCE)


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line)


def test_a_source_with_attributes_and_device_lambdas_parses_without_errors(source: CudaSource) -> None:
    assert source.errors == ()
    assert CudaSource("int f( {").errors == (1,)


def test_kernels_are_found_with_their_lines_template_included(source: CudaSource) -> None:
    assert [(k.name, k.first_line, k.last_line) for k in source.kernels] == [
        ("tile", line_of("template <int N>"), line_of("clampf") + 1),
        ("raw", line_of("void raw"), line_of("void raw")),
    ]


def test_launches_name_the_kernel_its_configuration_and_the_function(source: CudaSource) -> None:
    tile, raw = source.launches
    assert (tile.kernel, tile.line, tile.function) == ("tile", line_of("tile<3>"), "stitch_run")
    assert tile.configuration == ("dim3(4)", "256", "0", "(cudaStream_t)c->stream")
    assert (raw.kernel, raw.configuration) == ("raw", ("1", "1"))


def test_includes_tell_system_headers_from_own(source: CudaSource) -> None:
    assert source.includes == (Include("stitch.h", False, 1), Include("cuda_fp16.h", True, 2))


def test_exports_are_the_c_functions_that_others_can_see(source: CudaSource) -> None:
    assert [function.name for function in source.exports] == ["raw", "stitch_run", "stitch_bind"]


def test_calls_know_their_function_and_strings_and_comments_are_none(source: CudaSource) -> None:
    names = {(call.name, call.function) for call in source.calls}
    assert {("std::sort", "stitch_run"), ("handle.close", "stitch_run"), ("clampf", "tile")} <= names
    assert not any(name == "system" for name, _ in names)


def test_tokens_hold_macro_bodies_but_no_comments_and_no_contents_of_strings() -> None:
    text = '#define RUN sys\\\ntem("ls") // fork\n/* exec */ auto s = R"x(popen)x" "a\\"b" \'c\' + 1\'000;'
    assert [token.text for token in tokens(text)] == [
        "#", "define", "RUN", "system", "(", '""', ")",
        "auto", "s", "=", '""', '""', "''", "+", "1'000", ";",
    ]  # fmt: skip
    assert [token.line for token in tokens(text) if token.is_name] == [1, 1, 1, 3, 3]


def test_a_deeply_nested_source_is_no_trouble() -> None:
    depth = 3000
    assert CudaSource(f"int f() {{ return {'(' * depth}g(){')' * depth}; }}").calls[0].name == "g"


PIECES = st.sampled_from(
    ["__align__(16)", "__launch_bounds__((1 + 2), 3\n)", "[=] __device__ (int x)", "CUTLASS_DEVICE", "a",
     "__align__(", ")", "(", "\n", "\r\n", " ", "é", "[] __host__\n__device__ {", "alignas(8)"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=20).map("".join))
def test_masking_keeps_every_offset_and_every_line(text: str) -> None:
    source = text.encode()
    masked = mask(source)
    assert len(masked) == len(source)
    assert [at for at, byte in enumerate(masked) if byte in b"\r\n"] == [
        at for at, byte in enumerate(source) if byte in b"\r\n"
    ]
    assert all(new in (old, 0x20) for old, new in zip(source, masked, strict=True))


@given(st.text(alphabet="ab\"'\\/*R()\n #1", max_size=60))
def test_any_text_lexes_and_every_line_is_within_it(text: str) -> None:
    assert all(1 <= token.line <= text.count("\n") + 1 for token in tokens(text))


@given(st.binary(max_size=80))
def test_any_bytes_have_views(data: bytes) -> None:
    view = CudaSource(data)
    assert isinstance((view.functions, view.calls, view.launches, view.includes), tuple)


def test_the_headers_of_an_installed_toolkit_have_views() -> None:
    nvcc = shutil.which("nvcc")
    header = Path("/usr/local/cuda/include/cooperative_groups.h")
    if not nvcc or not header.is_file():
        pytest.skip("needs an installed CUDA toolkit")
    view = CudaSource(header.read_bytes())
    assert len(view.functions) > 50
    assert any(include.path == "cooperative_groups/details/helpers.h" for include in view.includes)
