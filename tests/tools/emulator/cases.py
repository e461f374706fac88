"""What each of the sixteen kernels is given and what PyTorch says it must answer."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.tools.emulator.judge import Call


@dataclass(frozen=True)
class Case:
    call: Call
    expected: list[Tensor]
    tolerance: float


def _case(inputs: list[Tensor], expected: list[Tensor], tolerance: float, **extra: object) -> Case:
    outputs = [torch.empty(y.shape, dtype=y.dtype) for y in expected]
    return Case(Call(inputs, outputs, **extra), expected, tolerance)  # type: ignore[arg-type]


def vector_sum() -> Case:
    a, b = torch.randn(100_003), torch.randn(100_003)
    return _case([a, b], [a + b], 0)


def tiled_product() -> Case:
    a, b = torch.randn(130, 67), torch.randn(67, 94)
    return _case([a, b], [a @ b], 1e-4)


def softmax() -> Case:
    x = torch.randn(16, 1000) * 4
    return _case([x], [x.softmax(-1)], 1e-6)


def layer_norm() -> Case:
    x, g, b = torch.randn(37, 515), torch.randn(515), torch.randn(515)
    return _case([x, g, b], [F.layer_norm(x, (515,), g, b, 1e-5)], 1e-4, floats=[1e-5])


def attention() -> Case:
    q, k, v = (torch.randn(2, 1, 70, 64) for _ in range(3))
    return _case([q, k, v], [F.scaled_dot_product_attention(q, k, v, is_causal=True)], 1e-5, ints=[1])


def convolution() -> Case:
    x, w, b = torch.randn(2, 5, 30, 33), torch.randn(11, 5, 3, 3), torch.randn(11)
    return _case([x, w, b], [F.conv2d(x, w, b, padding=1)], 1e-4, ints=[0])


def histogram() -> Case:
    x = torch.randint(0, 200, (50_001,), dtype=torch.int32)
    return _case([x], [torch.bincount(x, minlength=200).int()], 0)


def prefix_sum() -> Case:
    x = torch.rand(50_001)
    return _case([x], [x.double().cumsum(0).float()], 2e-2)


def transpose() -> Case:
    x = torch.randn(100, 77)
    return _case([x], [x.t().contiguous()], 0)


def bias_gelu() -> Case:
    x, b = torch.randn(65, 130).half(), torch.randn(130).half()
    return _case([x, b], [F.gelu((x + b).float(), approximate="tanh").half()], 2e-3)


def pipeline() -> Case:
    x = torch.randn(10_000)
    y, norm = 3 * x, 1e30
    while norm > 1:
        y = y * 0.5
        norm = float((y * y).sum())
    return _case([x], [y, torch.tensor([norm])], 1e-5)


def recurrent() -> Case:
    x, wx, wh, b = (
        torch.randn(12, 3, 20),
        torch.randn(20, 24) * 0.2,
        torch.randn(24, 24) * 0.2,
        torch.randn(24),
    )
    h, steps = torch.zeros(3, 24), []
    for t in range(12):
        h = torch.tanh(x[t] @ wx + h @ wh + b)
        steps.append(h)
    return _case([x, wx, wh, b], [torch.stack(steps)], 1e-5)


def half_product(m: int, n: int, k: int) -> Case:
    a, b = torch.randn(m, k).half(), torch.randn(k, n).half()
    return _case([a, b], [a.float() @ b.float()], 1e-3)


def cooperative() -> Case:
    x = torch.rand(5000) - 0.4
    return _case([x], [x / x.sum(), (x > 0).sum().int().reshape(1)], 1e-5, workspace=1024)


def residual_block() -> Case:
    x = torch.randn(1, 64, 14, 14)
    w1, w2 = torch.randn(64, 64, 3, 3) * 0.05, torch.randn(64, 64, 3, 3) * 0.05
    b1, b2 = torch.randn(64), torch.randn(64)
    inner = F.relu(F.conv2d(x, w1, b1, padding=1))
    return _case([x, w1, b1, w2, b2], [F.relu(F.conv2d(inner, w2, b2, padding=1) + x)], 1e-4)


CASES: dict[str, Callable[[], Case]] = {
    "01_vadd_float4": vector_sum,
    "02_sgemm_tiled": tiled_product,
    "03_softmax_shfl": softmax,
    "04_layernorm_block": layer_norm,
    "05_attention_online": attention,
    "06_conv3x3_halo": convolution,
    "07_histogram_atomics": histogram,
    "08_prefix_sum": prefix_sum,
    "09_transpose_pad": transpose,
    "10_bias_gelu_half2": bias_gelu,
    "11_streams_pipeline": pipeline,
    "12_rnn_graph": recurrent,
    "13_wmma_gemm": lambda: half_product(64, 80, 48),
    "14_coop_groups": cooperative,
    "15_mma_ptx": lambda: half_product(96, 128, 64),
    "16_resblock": residual_block,
}


def drawn(name: str) -> Case:
    torch.manual_seed(0)
    return CASES[name]()
