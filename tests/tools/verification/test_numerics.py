import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stitch_tui.tools.worker.conditioning import NUDGES
from stitch_tui.tools.worker.numerics import (
    LARGEST_LIMIT,
    Comparison,
    compare,
    conditioning_factor,
    default_reduction,
    relative_error,
    tolerance,
)
from stitch_tui.tools.worker.patterns import pattern

FLOATS = st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.float64])
SHAPES = st.lists(st.integers(1, 9), min_size=0, max_size=3).map(tuple)


def normal(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def held(got: torch.Tensor, truth: torch.Tensor, dtype: torch.dtype = torch.float32) -> Comparison:
    return compare(got.to(dtype), truth.to(dtype), truth, reduction=16)


@settings(deadline=None, max_examples=40)
@given(SHAPES, st.integers(0, 2**31), FLOATS)
def test_the_reference_passes_its_own_check(shape: tuple[int, ...], seed: int, dtype: torch.dtype) -> None:
    truth = normal(shape, seed)
    assert held(truth, truth, dtype).passed


@settings(deadline=None, max_examples=40)
@given(SHAPES, st.integers(0, 2**31), FLOATS, st.sampled_from([math.nan, math.inf, -math.inf]))
def test_a_nonfinite_element_where_the_truth_is_finite_never_passes(
    shape: tuple[int, ...], seed: int, dtype: torch.dtype, bad: float
) -> None:
    truth = normal(shape, seed)
    got = truth.clone()
    got.view(-1)[seed % got.numel()] = bad
    verdict = held(got, truth, dtype)
    assert not verdict.passed
    assert verdict.category == "nonfinite"


@settings(deadline=None, max_examples=40)
@given(SHAPES, st.integers(0, 2**31))
def test_nonfinite_elements_must_be_the_references(shape: tuple[int, ...], seed: int) -> None:
    truth = normal(shape, seed)
    truth.view(-1)[0] = math.nan
    assert held(truth, truth).passed
    assert not held(truth.nan_to_num(1.0), truth).passed
    assert not held(torch.full_like(truth, math.nan), normal(shape, seed)).passed


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**31), st.integers(-20, 20))
def test_errors_do_not_depend_on_the_scale(seed: int, exponent: int) -> None:
    truth, noise = normal((40,), seed), 1e-5 * normal((40,), seed + 1)
    scale = 2.0**exponent
    error = relative_error(truth + noise, truth)
    assert relative_error((truth + noise) * scale, truth * scale) == pytest.approx(error, rel=1e-6)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**31), st.integers(0, 39))
def test_one_wrong_element_among_many_is_enough(seed: int, position: int) -> None:
    truth = normal((40,), seed)
    got = truth.clone()
    got[position] += 0.01
    verdict = held(got, truth)
    assert verdict.category == "numerics"
    assert verdict.detail["index"] == [position]
    assert verdict.detail["wrong"] == 1


def gated_product(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """silu(x a) * (x b), every sum taken in order as a plain tiled kernel takes it."""
    left, right = x.new_zeros(len(x), a.shape[1]), x.new_zeros(len(x), a.shape[1])
    for k in range(a.shape[0]):
        left.addcmul_(x[:, k : k + 1], a[k])
        right.addcmul_(x[:, k : k + 1], b[k])
    return torch.nn.functional.silu(left) * right


def tf32(values: torch.Tensor) -> torch.Tensor:
    """`values` with ten bits of mantissa, rounded."""
    return ((values.view(torch.int32) + (1 << 12)) & ~((1 << 13) - 1)).view(torch.float32)


@pytest.fixture(scope="module")
def heavy_tailed() -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
    """Operands of a gated product of length 2048, its result in float32 and in float64."""
    scale = 0.8 / 2048**0.5
    operands = [normal((176, 2048), 3), scale * normal((2048, 160), 4), scale * normal((2048, 160), 5)]
    operands[0][7] *= 3
    x, a, b = [operand.float() for operand in operands]
    own = torch.nn.functional.silu(x @ a) * (x @ b)
    x64, a64, b64 = x.double(), a.double(), b.double()
    return [x, a, b], own, torch.nn.functional.silu(x64 @ a64) * (x64 @ b64)


def test_a_heavy_tailed_output_of_an_honest_kernel_passes(
    heavy_tailed: tuple[list[torch.Tensor], torch.Tensor, torch.Tensor],
) -> None:
    operands, own, truth = heavy_tailed
    assert truth.abs().max() > 20 * truth.square().mean().sqrt()
    got = gated_product(*operands)
    assert compare(got, own, truth, reduction=2048).passed
    by_rms_alone = (got - truth).abs().max() / truth.square().mean().sqrt()
    assert by_rms_alone > tolerance(truth, own, 2048)
    largest = int(truth.abs().argmax())
    spoilt = got.clone()
    spoilt.view(-1)[largest] *= 1 + 1e-3
    assert compare(spoilt, own, truth, reduction=2048).detail["wrong"] == 1


def test_a_silent_downgrade_of_a_heavy_tailed_output_fails(
    heavy_tailed: tuple[list[torch.Tensor], torch.Tensor, torch.Tensor],
) -> None:
    operands, own, truth = heavy_tailed
    for round_ in (tf32, lambda t: t.bfloat16().float(), lambda t: t.half().float()):
        got = gated_product(*(round_(operand) for operand in operands))
        assert compare(got, own, truth, reduction=2048).category == "numerics"


def test_a_result_more_accurate_than_an_overflowing_reference_passes() -> None:
    truth = torch.tensor([1.0, 300.0], dtype=torch.float64)
    own = torch.tensor([1.0, math.inf], dtype=torch.float16)
    assert compare(truth.half(), own, truth, reduction=1).passed
    assert compare(own, own, truth, reduction=1).passed
    assert not compare(torch.tensor([1.0, 200.0]).half(), own, truth, reduction=1).passed


def test_shape_and_dtype_are_exact_and_nothing_broadcasts() -> None:
    truth = normal((4, 3), 0)
    own = truth.float()
    assert compare(own[:1], own, truth, reduction=1).category == "shape"
    assert compare(own.double(), own, truth, reduction=1).category == "dtype"


def test_integers_and_booleans_are_exact() -> None:
    own = torch.tensor([1, 2, 3])
    assert compare(own, own, own, reduction=1).passed
    assert compare(own + 1, own, own, reduction=1).category == "numerics"
    truth = torch.tensor([True, False])
    odd = torch.tensor([255, 0], dtype=torch.uint8).view(torch.bool)
    assert not compare(odd, truth, truth, reduction=1).passed


def test_the_guessed_reduction_is_that_of_a_layers_weights() -> None:
    tensors = [torch.zeros(8, 512), torch.zeros(64, 512), torch.zeros(64)]
    assert default_reduction(tensors, [False, True, True]) == 512
    assert default_reduction([torch.zeros(8, 3, 5, 5), torch.zeros(6, 3, 2, 2)], [False, True]) == 12
    assert default_reduction([torch.zeros(4, 10)], [False]) == 10


@pytest.mark.parametrize(
    ("indices", "words"),
    [
        ((slice(None), slice(None)), "all elements"),
        ((3, slice(None)), "whole rows 3"),
        ((slice(None), slice(1, None, 9)), "whole columns 1, 10, 19, 28, ... (5 in all)"),
        ((39, slice(41, None)), "the last 4 elements"),
        ((39, 44), "a single element, the last"),
        ((2, 7), "a single element"),
        ((slice(0, 38), slice(32, None)), "past the last whole tile of 32 along axis 1"),
        (([3, 9, 12, 30], [7, 15, 31, 39]), "at the edges of tiles of 8 along axis 1"),
        (([0, 5, 11, 30], [0, 9, 20, 44]), "scattered"),
    ],
)
def test_the_pattern_of_wrong_elements_is_named(indices: tuple[object, ...], words: str) -> None:
    wrong = torch.zeros(40, 45, dtype=torch.bool)
    wrong[indices] = True
    assert pattern(wrong).startswith(words)


def test_every_nth_element_is_named() -> None:
    wrong = torch.zeros(3, 7, 5, dtype=torch.bool)
    wrong.view(-1)[2::4] = True
    assert pattern(wrong) == "every element whose position is 2 modulo 4"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.T.contiguous(), "the transposed result"),
        (lambda t: t * 3, "the expected values times 3"),
        (lambda t: t + 2, "the expected values plus 2"),
        (lambda t: t * 0, "zero"),
    ],
)
def test_a_systematic_mistake_is_recognised(change: object, words: str) -> None:
    truth = normal((6, 6), 1)
    assert callable(change)
    assert words in held(change(truth), truth).message


def test_a_copy_of_another_tensor_is_recognised() -> None:
    truth, other = normal((5, 8), 1), normal((8, 5), 2).float()
    got = other.reshape(5, 8)
    verdict = compare(got, truth.float(), truth, reduction=1, lookalikes={"output 2": other})
    assert "equal to output 2" in verdict.message


@pytest.mark.parametrize("length", [64, 8192, 65536])
def test_a_long_sum_in_sequence_is_honest_and_the_same_sum_of_rounded_operands_is_not(length: int) -> None:
    """A product of large values that cancel, through a sigmoid: as a layer after a large activation."""
    generator = torch.Generator().manual_seed(length)
    x = 1e3 * torch.randn(64, length, generator=generator)
    w = (torch.rand(length, generator=generator) - 0.5) * 2 / math.sqrt(length)
    x -= torch.outer(x @ w, w) / (w @ w)  # the sums end near 0, where the sigmoid tells errors
    truth = (x.double() @ w.double()).sigmoid()
    signs = [torch.randint(0, 2, t.shape, generator=generator) * 2 - 1 for t in (x, w)]
    nudged = [t.double() * (1 + torch.finfo(t.dtype).eps * s) for t, s in zip((x, w), signs, strict=True)]
    moved = relative_error((nudged[0] @ nudged[1]).sigmoid(), truth)
    allowed = conditioning_factor(length, torch.float32) * moved

    in_sequence = torch.zeros(64)
    for column, weight in zip(x.T, w, strict=True):
        in_sequence += column * weight
    assert relative_error(in_sequence.sigmoid(), truth) <= allowed

    rounded = [(t.view(torch.int32) + (1 << 12) & ~((1 << 13) - 1)).view(torch.float32) for t in (x, w)]
    downgraded = (rounded[0].double() @ rounded[1].double()).sigmoid().float()
    assert relative_error(downgraded, truth) > allowed


def test_a_mean_that_comes_out_near_nothing_is_held_against_what_rounding_its_inputs_does() -> None:
    generator, failed = torch.Generator().manual_seed(1), 0
    for _ in range(3000):
        x = torch.randn(65, generator=generator)
        truth, own = x.double().mean(), x.mean()
        got = (x[:33].sum() + x[33:].sum()) / 65
        signs = torch.randint(0, 2, (NUDGES, 65), generator=generator) * 2 - 1
        moved = (x.double() * (1 + torch.finfo(x.dtype).eps * signs)).mean(1)
        allowance = conditioning_factor(65, x.dtype) * relative_error(moved, truth.expand(NUDGES))
        failed += not compare(got, own, truth, reduction=65).passed
        assert compare(got, own, truth, reduction=65, allowance=allowance).passed
    assert failed  # without it


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**31), st.floats(0.25, 100), FLOATS, st.integers(1, 1 << 16))
def test_nothing_lazy_passes_however_wrong_the_reference_is(
    seed: int, own_error: float, dtype: torch.dtype, reduction: int
) -> None:
    truth = normal((64,), seed)
    own = (truth + own_error * normal((64,), seed + 1)).to(dtype)
    lazy = (torch.zeros(64), truth.mean().expand(64), -truth, normal((64,), seed + 2), truth * 1.4)
    for result in lazy:
        verdict = compare(result.to(dtype), own, truth, reduction=reduction, allowance=own_error)
        assert not verdict.passed
        assert verdict.limit <= LARGEST_LIMIT


def test_what_rounding_may_explain_is_neither_right_nor_wrong() -> None:
    truth = normal((64,), 1)
    own = (truth + 0.3 * normal((64,), 2)).float()
    like_the_reference = (truth + 0.3 * normal((64,), 3)).float()
    verdict = compare(like_the_reference, own, truth, reduction=1)
    assert (verdict.passed, verdict.undecided, verdict.category) == (False, True, "")
    accurate = compare(truth.float(), own, truth, reduction=1)
    assert (accurate.passed, accurate.undecided) == (True, False)
    nonsense = compare((100 * truth).float(), own, truth, reduction=1)
    assert (nonsense.undecided, nonsense.category) == (False, "numerics")


def test_a_long_sum_in_bfloat16_has_no_room_for_zeros() -> None:
    truth = normal((64,), 1)
    assert compare(truth.bfloat16(), truth.bfloat16(), truth, reduction=1 << 16).passed
    zeros = compare(torch.zeros(64).bfloat16(), truth.bfloat16(), truth, reduction=1 << 16)
    assert zeros.category == "numerics"
