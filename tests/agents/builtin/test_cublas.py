"""The strategy that calls cuBLAS, on the emulator's shim of it: layouts, batches, epilogues, no elements."""

from pathlib import Path

import pytest
import torch

from stitch_tui.agents.builtin import coder
from stitch_tui.agents.builtin.lower import lower
from stitch_tui.tools.emulator import Emulator, Mode
from tests.agents.builtin.support import check, traced
from tests.agents.builtin.test_gemm import EXTENTS, FORMS, LinearGelu, operands
from tests.agents.builtin.test_operators import Many

Tensor = torch.Tensor
CUBLAS = {"tunes": ["cublas"], "device": "cuda NVIDIA H200"}


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


def test_it_comes_first_for_large_products_on_a_gpu_and_never_without_one() -> None:
    def names(rows: int, device: str) -> list[str]:
        case = traced(Many([torch.mm]), torch.randn(rows, 64), torch.randn(64, 64))
        return [t.name for t in coder.strategies(lower(case.graph, case.everything()), device)]

    assert names(8192, "cuda NVIDIA H200 sm_90")[0] == "cublas"
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
