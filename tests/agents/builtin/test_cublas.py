"""The strategies that call cuBLAS, on the emulator's shim of it: layouts, batches, epilogues, no elements."""

from pathlib import Path

import pytest
import torch

from stitch_tui.agents.builtin import coder
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.tools.emulator import Emulator, Mode
from tests.agents.builtin.support import check, traced
from tests.agents.builtin.test_gemm import EXTENTS, FORMS, LinearGelu, operands
from tests.agents.builtin.test_nvcc import Applied
from tests.agents.builtin.test_operators import Many

Tensor = torch.Tensor
CUBLAS = {"tunes": ["cublas"], "device": "cuda NVIDIA H200"}
TENSOR_CORES = {"tunes": ["tensor-cores"], "device": "cuda NVIDIA H200"}


class Residual(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.linear(x)


def test_an_epilogue_follows_the_product_for_any_extents(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(LinearGelu(7, 5), torch.randn(3, 7), torch.randn(3, 5))
    check(emulator, tmp_path, case, [operands(*e) for e in EXTENTS], mode=Mode.FAST, **CUBLAS)


QUICK = ("mm with both transposed", "scores")


@pytest.mark.parametrize(
    "form",
    [f if f in QUICK else pytest.param(f, marks=pytest.mark.slow) for f in FORMS if "broadcast" not in f],
)
def test_products_of_every_form(emulator: Emulator, tmp_path: Path, form: str) -> None:
    function, a, b = FORMS[form]
    case = traced(Many([function]), torch.randn(a), torch.randn(b))
    check(emulator, tmp_path, case, [[torch.randn(a), torch.randn(b)]], **CUBLAS)


@pytest.mark.parametrize("dtype", [torch.float16, pytest.param(torch.bfloat16, marks=pytest.mark.slow)])
def test_narrow_products(emulator: Emulator, tmp_path: Path, dtype: torch.dtype) -> None:
    case = traced(LinearGelu(33, 5).to(dtype), torch.randn(9, 33).to(dtype), torch.randn(9, 5).to(dtype))
    check(emulator, tmp_path, case, [case.values_at(case.everything())], **CUBLAS)


@pytest.mark.slow
def test_products_on_tensor_cores_are_as_exact_as_f32_for_any_extents(
    emulator: Emulator, tmp_path: Path
) -> None:
    case = traced(LinearGelu(128, 128), torch.randn(128, 128), torch.randn(128, 128))
    check(emulator, tmp_path, case, [operands(*e) for e in EXTENTS], mode=Mode.FAST, **TENSOR_CORES)
    # a bias alone is added by the library
    case = traced(Applied(lambda x: x, torch.nn.Linear(128, 128)), torch.randn(128, 128))
    cases = [[torch.randn(m, k), torch.randn(n, k), torch.randn(n)] for m, k, n in EXTENTS]
    check(emulator, tmp_path, case, cases, **TENSOR_CORES)


def test_on_tensor_cores_the_library_adds_bias_and_residual(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Residual(128), torch.randn(2, 64, 128))
    cases = [[torch.randn(2, n, 128), torch.randn(128, 128), torch.randn(128)] for n in (1, 67)]
    subtask = check(emulator, tmp_path, case, cases, **TENSOR_CORES)
    (tune,) = [t for t in coder.strategies(subtask, "cuda") if t.name == "tensor-cores"]
    assert "pointwise" not in tune.sentence


def test_infinities_and_nans_pass_through_tensor_cores(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(Many([lambda a, b: a.t() @ b.t()]), torch.randn(128, 128), torch.randn(128, 128))
    a, b = torch.randn(5, 7), torch.randn(6, 5)
    a[1, 2], a[3, 3], b[4, 2], b[5] = torch.inf, torch.nan, -torch.inf, torch.tensor([0, 0.75, 0, 0, 0])
    a[:, 4], a[1, 4] = 0, torch.finfo(torch.float32).max
    b[:, 1] = b[:, 1].clamp(-0.5, 0.5)
    check(emulator, tmp_path, case, [[a, b]], **TENSOR_CORES)


def test_it_comes_first_for_large_products_on_a_gpu_and_never_without_one() -> None:
    def names(rows: int, device: str) -> list[str]:
        case = traced(Many([torch.mm]), torch.randn(rows, 64), torch.randn(64, 64))
        return [t.name for t in coder.strategies(lower(case.graph, case.everything()), device)]

    assert names(8192, "cuda NVIDIA H200 sm_90")[0] == "cublas"
    assert "tensor-cores" not in names(8192, "cuda NVIDIA H200 sm_90")  # 64 columns do not pay
    assert names(3, "cuda NVIDIA H200 sm_90")[-1] == "cublas"
    assert "cublas" not in names(8192, "emulator")


def test_tf32_only_where_the_user_allows_it() -> None:
    case = traced(Many([torch.mm]), torch.randn(4, 64), torch.randn(64, 64))
    subtask = lower(case.graph, case.everything())
    sources = [
        coder.emit_source(case.graph, subtask, coder.strategies(subtask, "cuda", tf32=tf32)[-1])
        for tf32 in (False, True)
    ]
    assert ["constexpr int TF32 = 0;" in s for s in sources] == [True, False]
