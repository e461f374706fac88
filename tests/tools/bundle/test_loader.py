"""The loader of ``model_new.py``: builds, its cache, and the C call, with a host compiler in nvcc's place."""

import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
import torch

from stitch_tui.tools.bundle import rendering
from stitch_tui.tools.bundle.parts.loader import (
    StitchBinding,
    StitchError,
    StitchKernel,
    StitchLibrary,
    StitchScratch,
    StitchTensor,
    stitch_build,
    stitch_nvcc,
)

F32, CPU = torch.float32, torch.device("cpu")
# Says what it was given: y[0..] = facts of the call; keeps a counter in host_state, a copy of w in bound.
SOURCE = """
#include "stitch.h"
#include <stdlib.h>
static float first(const stitch_tensor* t) { return t->numel ? ((const float*)t->data)[0] : -1; }
extern "C" int stitch_sizes(const stitch_call*, int64_t* workspace, int64_t* bound) {
  *workspace = 64; *bound = 4;
  return STITCH_OK;
}
extern "C" int stitch_bind(const stitch_call* c) {
  if (*c->host_state) return STITCH_BAD_CALL;
  *c->host_state = calloc(1, sizeof(int));
  *(float*)c->bound = first(&c->in[1]);
  return STITCH_OK;
}
extern "C" int stitch_unbind(const stitch_call* c) { free(*c->host_state); return STITCH_OK; }
extern "C" int stitch_run(const stitch_call* c) {
  const stitch_tensor *x = &c->in[0], *w = &c->in[1], *e = &c->in[2];
  float* y = (float*)c->out[0].data;
  if (c->struct_size != sizeof(stitch_call) || c->abi != STITCH_ABI) return STITCH_BAD_CALL;
  if (c->workspace_bytes != 64 || c->bound_bytes != 4) return STITCH_BAD_CALL;
  if (c->n_in != 3 || c->n_out != 2 || c->n_int != 2 || c->n_float != 1) return STITCH_BAD_CALL;
  float stream = (float)(intptr_t)c->stream, calls = ++*(int*)*c->host_state, kept = *(float*)c->bound;
  float facts[] = {
      first(x), x->ndim, x->shape[0], x->shape[1], x->strides[0], x->strides[1], x->dtype, x->flags, w->flags,
      e->numel, e->dtype, c->ints[0], c->ints[1], c->floats[0], calls, kept, c->rng_seed, c->rng_offset,
      c->out[1].flags, c->out[1].ndim, stream};
  for (int i = 0; i < 21; i++) y[i] = facts[i];
  ((int64_t*)c->out[1].data)[0] = 1ll << 40;
  return (int)x->shape[0] == 2 ? STITCH_OK : STITCH_UNSUPPORTED_SHAPE;
}
"""
NVCC = """#!/bin/sh
[ "$1" = --version ] && echo stand-in 1 && exit
echo "$@" >> {log}
source=$1; shift
while [ $# -gt 0 ]; do
  case $1 in -I) folder=$2; shift;; -o) output=$2; shift;; esac; shift
done
exec {cxx} -x c++ -shared -fPIC -I "$folder" "$source" -o "$output"
"""
KERNEL = StitchKernel(
    id="s01",
    file="s01.cu",
    inputs=(
        StitchTensor("x", F32, (2, 3)),
        StitchTensor("w", F32, (1,), flags=1, fixed=True),
        StitchTensor("empty", torch.bool, (0,)),
    ),
    outputs=(StitchTensor("y", F32, (21,)), StitchTensor("count", torch.int64, (), flags=2)),
    ints=(-5, 1 << 20),
    floats=(0.25,),
    options=("-O3",),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Kernel sources, an empty cache, and a stand-in for nvcc that logs its arguments."""
    cxx = shutil.which("c++") or shutil.which("g++")
    if cxx is None:
        pytest.skip("no C++ compiler")
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(NVCC.format(log=tmp_path / "log", cxx=cxx))
    nvcc.chmod(nvcc.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CUDACXX", str(nvcc))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "s01.cu").write_text(SOURCE)
    (tmp_path / "kernels" / "stitch.h").write_bytes(rendering.HEADER.read_bytes())
    return tmp_path / "kernels"


def builds(folder: Path) -> int:
    log = folder.parent / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def bound(folder: Path, kernel: StitchKernel = KERNEL) -> Any:
    (library,) = stitch_build((kernel,), folder, "sm_90a")
    binding = StitchBinding(kernel, StitchLibrary(kernel, library, CPU), CPU)
    scratch = StitchScratch(CPU, 11, 0)

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        scratch.see([(tensors[1].data_ptr(), tensors[1]._version)])
        return binding(scratch, *tensors)

    return run


def test_the_c_function_sees_what_the_header_promises(folder: Path) -> None:
    run = bound(folder)
    x, w, empty = torch.arange(6.0).view(3, 2).t(), torch.tensor([2.5]), torch.zeros(0, dtype=torch.bool)
    for count in (1, 2):
        y, number = run(x + 7, w, empty)
        assert y.tolist() == [7, 2, 2, 3, 3, 1, 0, 0, 1, 0, 9, -5, 1 << 20, 0.25, count, 2.5, 0, 0, 2, 0, 11]
        assert number.item() == 1 << 40
    w.fill_(3)
    first, _ = run(x, w, empty)
    assert first[14:16].tolist() == [1, 3], "unbind, then bind"
    y, _ = run(x + 1, w, empty)
    assert (y[0], y[14], first[0]) == (1, 2, 0), "results are new tensors, arguments are those of the call"


def test_codes_become_errors_with_the_kernel_s_name(folder: Path) -> None:
    wide = KERNEL._replace(inputs=(StitchTensor("x", F32, (3, 2)), *KERNEL.inputs[1:]))
    with pytest.raises(StitchError, match=r"kernel s01\.cu reported shapes it does not support \(code 2\)"):
        bound(folder, wide)(torch.zeros(3, 2), torch.zeros(1), torch.zeros(0, dtype=torch.bool))
    with pytest.raises(
        StitchError, match=r"x: expected torch.float32 \(2, 3\) on cpu, got torch.float64 \(2, 3\)"
    ):
        bound(folder)(
            torch.zeros(2, 3, dtype=torch.float64), torch.zeros(1), torch.zeros(0, dtype=torch.bool)
        )


def test_a_library_without_run_is_an_error(folder: Path) -> None:
    (folder / "s01.cu").write_text("int nothing;\n")
    with pytest.raises(StitchError, match="that it has no stitch_run"):
        bound(folder)(torch.zeros(2, 3), torch.zeros(1), torch.zeros(0, dtype=torch.bool))


def test_a_kernel_is_compiled_once_for_each_source_header_and_architecture(folder: Path) -> None:
    for _ in range(2):
        stitch_build((KERNEL, KERNEL._replace(outputs=())), folder, "sm_90a")
    assert builds(folder) == 1
    assert (folder.parent / "log").read_text().split()[1:] == [
        *("-I", str(folder), "-shared", "-Xcompiler", "-fPIC", "-arch=sm_90a", "-O3", "-o"),
        (folder.parent / "log").read_text().split()[-1],
    ]
    stitch_build((KERNEL,), folder, "sm_80")
    stitch_build((KERNEL._replace(options=("-O2",)),), folder, "sm_80")
    assert builds(folder) == 3
    for name in ("s01.cu", "stitch.h"):
        with (folder / name).open("a") as file:
            file.write("\n")
        stitch_build((KERNEL,), folder, "sm_80")
    assert builds(folder) == 5
    assert len(list((folder.parent / "cache" / "stitch" / "kernels").iterdir())) == 5


def test_the_compiler_s_words_are_shown_and_nothing_is_left(folder: Path) -> None:
    (folder / "s01.cu").write_text("int stitch_run( {\n")
    with pytest.raises(StitchError, match=r"(?s)nvcc could not compile .*s01\.cu:.*s01\.cu:1:.*error"):
        stitch_build((KERNEL,), folder, "sm_90a")
    assert list((folder.parent / "cache" / "stitch" / "kernels").iterdir()) == []


def test_a_missing_nvcc_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDACXX", raising=False)
    for name in ("CUDA_HOME", "PATH"):
        monkeypatch.setenv(name, os.fspath(tmp_path))
    with pytest.raises(StitchError, match="nvcc not found: install the CUDA toolkit or set CUDA_HOME"):
        stitch_nvcc()


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_nvcc_itself_accepts_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDACXX")
    (library,) = stitch_build(
        (KERNEL._replace(options=("-O3", "-std=c++17", "-lineinfo")),), folder, "sm_90a"
    )
    assert library.stitch_run
