"""Matrix products with epilogues: every layout of the operands, every tile, awkward extents."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from stitch_tui.agents.builtin.ir import Kind
from stitch_tui.tools.emulator import Emulator, Mode
from tests.agents.builtin.support import check, traced
from tests.agents.builtin.test_operators import Many

Tensor = torch.Tensor
ONE = ["tile-64x64x16"]


class LinearGelu(torch.nn.Module):
    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(inner, outer)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return F.gelu(self.linear(x)) * 2 + residual


def operands(rows: int, inner: int, columns: int) -> list[Tensor]:
    return [
        torch.randn(rows, inner),
        torch.randn(rows, columns),
        torch.randn(columns, inner),
        torch.randn(columns),
    ]


def test_every_tile_with_tails_in_all_directions(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(LinearGelu(7, 5), torch.randn(3, 7), torch.randn(3, 5))
    extents = [(1, 1, 1), (3, 7, 5), (131, 67, 37), (64, 64, 64), (130, 33, 139), (0, 4, 4), (4, 0, 4)]
    subtask = check(emulator, tmp_path, case, [operands(*e) for e in extents], mode=Mode.FAST)
    assert subtask.kind is Kind.GEMM
    assert subtask.reduction_length == 7


def test_every_tile_is_free_of_races_and_stray_accesses(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(LinearGelu(7, 5), torch.randn(3, 7), torch.randn(3, 5))
    check(emulator, tmp_path, case, [operands(37, 41, 35)])


def test_leading_dimensions_are_rows_even_when_they_are_strided(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(LinearGelu(6, 5), torch.randn(2, 3, 6), torch.randn(2, 1, 5))
    x = torch.randn(3, 4, 6).transpose(0, 1)
    check(emulator, tmp_path, case, [[x, torch.randn(4, 1, 5), torch.randn(5, 6), torch.randn(5)]], tunes=ONE)


FORMS = {
    "mm": (lambda a, b: a @ b, (5, 7), (7, 3)),
    "mm of a transpose": (lambda a, b: F.relu(a @ b.t()), (5, 7), (3, 7)),
    "mm with both transposed": (lambda a, b: a.t() @ b.t(), (7, 5), (3, 7)),
    "bmm": (torch.bmm, (2, 5, 7), (2, 7, 3)),
    "scores": (lambda q, k: (q @ k.transpose(-2, -1)) * 0.5, (2, 3, 5, 7), (2, 3, 4, 7)),
    "matmul with one matrix": (lambda a, b: torch.tanh(a @ b), (2, 5, 7), (7, 3)),
    "matmul broadcast": (lambda a, b: a @ b + 1, (2, 1, 5, 7), (3, 7, 4)),
    "matmul of a matrix and a stack": (lambda a, b: a @ b, (5, 7), (3, 7, 4)),
}


@pytest.mark.parametrize("form", FORMS)
def test_products_of_every_form(emulator: Emulator, tmp_path: Path, form: str) -> None:
    function, a, b = FORMS[form]
    case = traced(Many([function]), torch.randn(a), torch.randn(b))
    check(emulator, tmp_path, case, [[torch.randn(a), torch.randn(b)]], tunes=ONE)


def test_addmm_scales_both_sides(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(
        Many([lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2)]),
        torch.randn(3), torch.randn(5, 7), torch.randn(7, 3),
    )  # fmt: skip
    check(emulator, tmp_path, case, [[torch.randn(3), torch.randn(5, 7), torch.randn(7, 3)]], tunes=ONE)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_products_accumulate_in_f32(emulator: Emulator, tmp_path: Path, dtype: torch.dtype) -> None:
    case = traced(LinearGelu(33, 5).to(dtype), torch.randn(9, 33).to(dtype), torch.randn(9, 5).to(dtype))
    check(emulator, tmp_path, case, [case.values_at(case.everything())], tunes=ONE)


def test_a_view_between_product_and_epilogue_is_free(emulator: Emulator, tmp_path: Path) -> None:
    case = traced(
        Many([lambda a, b, r: F.relu((a @ b).view(2, 3, 5)) + r]),
        torch.randn(6, 7), torch.randn(7, 5), torch.randn(2, 3, 5),
    )  # fmt: skip
    check(emulator, tmp_path, case, [[torch.randn(6, 7), torch.randn(7, 5), torch.randn(2, 3, 5)]], tunes=ONE)
