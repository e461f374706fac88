"""Honest kernels that look odd: more than sixty programs, each right for every input of its task.

A program is a body for ``stitch_run`` beside its kernels; `source` makes a whole candidate of it.
"""

from dataclasses import dataclass

from .linear import LINEAR
from .pointwise import POINTWISE
from .rows import ROWS

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)

    def forward(self, x):
        return torch.relu(self.layer(x)), x.sum(1), torch.tanh(x) * 2 + x

def get_inputs():
    return [torch.rand(24, 33)]

def get_init_inputs():
    return [33]
"""
"""What the programs are held against: an output for each family."""
HEAD = """#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <mma.h>
#include <cooperative_groups.h>
#include <cublas_v2.h>
#include <cstdio>
#include <cstdlib>
#include "stitch.h"
"""
VIEWS = """  cudaStream_t stream = (cudaStream_t)c->stream;
  const float* x = (const float*)c->in[0].data;
  int rows = (int)c->in[0].shape[0], inner = (int)c->in[0].shape[1], n = rows * inner;
  float* y = (float*)c->out[0].data;
"""
END = "  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;\n"


@dataclass(frozen=True)
class Honest:
    """One program: which output of the reference it computes, and what is odd about it."""

    name: str
    output: int
    device: str
    """Kernels and host functions before ``stitch_run``."""
    run: str
    """Statements of ``stitch_run``."""
    sizes: str = ""
    """Statements of ``stitch_sizes``, when it has one."""
    bind: str = ""

    @property
    def source(self) -> str:
        """The candidate as a file of its own."""
        return HEAD + self.body()

    def body(self, prefix: str = "stitch") -> str:
        """Everything but the includes, its exports named with `prefix`."""
        parts = [self.device]
        signature = f'extern "C" int {prefix}_sizes(const stitch_call* c, int64_t* workspace, int64_t* bound)'
        if self.sizes:
            parts.append(
                f"{signature} {{\n  *workspace = 0; *bound = 0;\n{self.sizes}  return STITCH_OK;\n}}\n"
            )
        if self.bind:
            parts.append(f'extern "C" int {prefix}_bind(const stitch_call* c) {{\n{self.bind}{END}}}\n')
        parts.append(f'extern "C" int {prefix}_run(const stitch_call* c) {{\n{VIEWS}{self.run}{END}}}\n')
        return "\n".join(parts)


HONEST = tuple(
    Honest(name, output, **parts)
    for output, family in ((0, LINEAR), (1, ROWS), (2, POINTWISE))
    for name, parts in family.items()
)
