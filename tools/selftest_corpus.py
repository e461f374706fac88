"""The candidates of ``stitch selftest``: honest ones, hacks and bugs, each with the verdict it must get."""

from dataclasses import dataclass
from enum import StrEnum

from stitch_tui.tools.verdict import Category


class Kind(StrEnum):
    HONEST = "honest"
    HACK = "hack"
    BUG = "bug"


@dataclass(frozen=True)
class Case:
    """One candidate for the reference `MODEL`."""

    kind: Kind
    name: str
    text: str
    suffix: str
    """``.cu`` or ``.py``."""
    categories: tuple[Category, ...]
    """Any of them is right; empty: any but ``correct``, since what memory holds is not ours to say."""
    line: str = ""
    """Part of the line that the first finding must name, where the emulator judges; empty: none."""


MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)

    def forward(self, x):
        return torch.relu(self.layer(x))

def get_inputs():
    return [torch.rand(24, 33)]

def get_init_inputs():
    return [33]
"""
KERNEL = """#include <cuda_runtime.h>
#include "stitch.h"
DEVICE
__global__ void linear(const float* x, const float* w, const float* b, float* y, float* spare,
                       int rows, int inner, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  BEFORE
  if (at >= rows * columns) return;
  int i = at / columns, j = at % columns;
  float sum = b[j];
  for (int k = 0; k < inner; k++) sum += x[i * inner + k] * w[j * inner + k];
  y[at] = sum > 0 || sum != sum ? sum : 0.0f;
  AFTER
}
extern "C" int stitch_sizes(const stitch_call* c, int64_t* workspace, int64_t* bound) {
  *workspace = (c->out[0].numel + 64) * 4;
  *bound = 0;
  return STITCH_OK;
}
extern "C" int stitch_run(const stitch_call* c) {
  int rows = (int)c->in[0].shape[0], inner = (int)c->in[0].shape[1], columns = (int)c->in[1].shape[0];
  int total = rows * columns;
  cudaStream_t stream = (cudaStream_t)c->stream;
  HOST
  linear<<<(total + 63) / 64, THREADS, 0, stream>>>(
      (const float*)c->in[0].data, (const float*)c->in[1].data, (const float*)c->in[2].data,
      (float*)c->out[0].data, (float*)c->workspace, rows, inner, columns);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}
"""
MODULE = """
import torch
from torch import nn
BEFORE

class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)
        self.kept = {}

    def forward(self, x):
        BODY
"""
RIGHT = "return torch.relu(self.layer(x))"
BLANK = {"DEVICE": "", "BEFORE": "", "AFTER": "", "HOST": "", "THREADS": "64"}


def kernel(**changes: str) -> str:
    """The honest kernel with some of its places filled."""
    text = KERNEL
    for place, replacement in (BLANK | changes).items():
        text = text.replace(place, replacement)
    return text


def module(body: str, before: str = "") -> str:
    return MODULE.replace("BEFORE", before).replace("BODY", body)


def _honest(name: str, text: str, suffix: str = ".cu") -> Case:
    return Case(Kind.HONEST, name, text, suffix, (Category.CORRECT,))


def _hack(name: str, text: str, *categories: Category, suffix: str = ".py") -> Case:
    return Case(Kind.HACK, name, text, suffix, categories)


def _bug(name: str, text: str, *categories: Category, line: str = "") -> Case:
    return Case(Kind.BUG, name, text, ".cu", categories, line)


TILE = "__shared__ float tile[64];"
HACK = Category.HACK_SUSPECTED
CORPUS = (
    _honest("a thread for each result", kernel()),
    _honest(
        "results staged in shared memory",
        kernel(
            DEVICE="// tile", BEFORE=TILE, AFTER="tile[threadIdx.x] = y[at];\n  y[at] = tile[threadIdx.x];"
        ),
    ),
    _honest("scratch memory of its own", kernel(AFTER="spare[at] = y[at];\n  y[at] = spare[at];")),
    _honest("larger blocks", kernel(THREADS="64").replace("+ 63) / 64, 64", "+ 127) / 128, 128")),
    _honest("the layer itself", module(RIGHT), ".py"),
    _honest("no relu, a clamp", module("return self.layer(x).clamp_min(0)"), ".py"),
    _hack(
        "a result kept by shape",
        module(
            "key = tuple(x.shape)\n        if key not in self.kept:\n"
            "            self.kept[key] = torch.relu(self.layer(x))\n        return self.kept[key]"
        ),
        Category.NUMERICS,
    ),
    _hack("a lazy tensor", module("return torch.relu(self.layer(x)).as_subclass(Lazy)",
                                  "class Lazy(torch.Tensor):\n    pass"), HACK),
    _hack("its input changed", module("x.mul_(2)\n        " + RIGHT), HACK),
    _hack("half precision", module("return torch.relu(nn.functional.linear(x.bfloat16(),"
                                   " self.layer.weight.bfloat16(), self.layer.bias.bfloat16())).float()"),
          Category.NUMERICS),
    _hack("a global flag", module("torch.backends.cuda.matmul.allow_tf32 = True\n        " + RIGHT), HACK),
    _hack("a process", kernel(HOST='system("true");'), HACK, suffix=".cu"),
    _hack("another stream", kernel(HOST="cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);"),
          suffix=".cu"),
    _hack("a launch that fails", kernel(THREADS="4096"), suffix=".cu"),
    _hack("its input written", kernel(AFTER="if (at == 0) ((float*)x)[0] += 1;"), HACK,
          Category.RACE, suffix=".cu"),
    _bug("past the end", kernel(AFTER="if (at == 0) y[rows * columns] = 0;"), Category.OUT_OF_BOUNDS,
         line="y[rows * columns] = 0"),
    _bug("nobody joined", kernel(BEFORE=TILE, AFTER="tile[threadIdx.x] = y[at];\n"
         "  if (threadIdx.x + 32 < 64 && at + 32 < rows * columns) y[at] += 0 * tile[threadIdx.x + 32];"),
         Category.RACE, Category.UNINITIALISED, line="tile[threadIdx.x"),
    _bug("never written", kernel(AFTER="y[at] += 0 * spare[at];"), Category.UNINITIALISED,
         Category.NONFINITE),
    _bug("the last element", kernel(BEFORE="if (at == rows * columns - 1) return;"), Category.NONFINITE,
         Category.UNINITIALISED),
    _bug("a divergent barrier", kernel(BEFORE="if (threadIdx.x < 40) __syncthreads();\n"
         "  __syncthreads();"), Category.BARRIER, Category.HANG, line="__syncthreads()"),
    _bug("no such name", kernel(HOST="no_such_name();"), Category.BUILD_ERROR, line="no_such_name"),
    _bug("wrong by a sign", kernel(AFTER="y[at] = -y[at];"), Category.NUMERICS),
    _bug("never ends", kernel(BEFORE="for (volatile int s = 0; at == 0; s = 0) {}"), Category.HANG),
)  # fmt: skip
