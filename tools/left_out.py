"""A program without one of its kernels, judged: a result that is still right came from elsewhere."""

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from stitch_tui.tools import launches, scratch
from stitch_tui.tools.bench import BUILD_SECONDS, Bench, Json
from stitch_tui.tools.bundle.emulation import emulated
from stitch_tui.tools.hollow import is_right

STUB = """\
#include "stitch.h"
#include <cuda_runtime.h>

extern "C" int stitch_run(const stitch_call* call) {
  const int64_t bytes[] = {4, 8, 2, 2, 1, 1, 2, 4, 8, 1};  // in the order of stitch_dtype
  for (int i = 0; i < call->n_out; ++i) {
    const stitch_tensor& out = call->out[i];
    cudaMemsetAsync(out.data, 0xff, out.numel * bytes[out.dtype], (cudaStream_t)call->stream);
  }
  return STITCH_OK;
}
"""
"""Stands in for a kernel file: its results are NaN, or -1."""
TRIALS: Json = {"small": [], "full": 1, "distributions": False, "metamorphic": False, "decorative": True}
"""One at full size, for which a bundle is made; it must fail."""


async def is_right_without(
    bench: Bench, target: Json, module: Path, kernels: Mapping[str, Path], name: str, cache: Path
) -> bool:
    """Is the result of a bundle's program still right when the kernel file `name` computes nothing?

    Args:
        module: its ``model_new.py``.
        kernels: all of its ``.cu`` files by file name.
        cache: where the program's runners keep what they build.
    """
    with scratch.folder("stitch-left-out-") as folder:
        copy = Path(folder, "stitched")
        (copy / "kernels").mkdir(parents=True)
        for path in (module, module.with_name("reference.py")):
            shutil.copy(path, copy)
        for path in (*kernels.values(), *(module.parent / "kernels").glob("*.h")):
            shutil.copy(path, copy / "kernels")
        # On a GPU the program builds its kernels, in a cache that it may write: a build of a stub that it
        # could foresee, it could have laid there.
        stub = f"// {secrets.token_hex(16)}\n{STUB}" if bench.cuda else STUB
        (copy / "kernels" / name).write_text(stub, encoding="utf-8")
        environment: dict[str, str] = {}
        if bench.cuda is None:
            assert bench.emulator
            sources = {file: copy / "kernels" / file for file in kernels}
            ready = await emulated(sources, bench.emulator, Path(folder), timeout=BUILD_SECONDS)
            environment = ready.environment
        runner = launches.module(bench, copy / module.name, environment, cache)
        return await is_right(bench, target, runner, TRIALS)
