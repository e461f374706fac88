"""Hostile and faulty candidates, each a real library in a real runner."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from stitch_tui.tools.worker.checking import examine
from stitch_tui.tools.worker.report import Trials

from .linear_target import LinearRelu, compiled, host_launch

TRIALS = Trials(small=("small_1", "small_2"), full=2)


def judged(folder: Path, *defines: str, trials: Trials = TRIALS, deadline_s: float = 10.0) -> dict[str, Any]:
    launch = host_launch(compiled(folder, *defines), deadline_s)
    return examine(LinearRelu(), launch, trials, lambda *_: None)


def test_an_honest_candidate_passes_every_trial(tmp_path: Path) -> None:
    report = judged(tmp_path)
    assert report["category"] == "correct", report["findings"]
    names = [trial["name"] for trial in report["trials"]]
    assert len(names) >= 13
    assert names[-2:] == ["task/full", "task/full"]
    assert {"integers/small_2", "weights changed in place/small_1"} <= set(names)
    assert len({trial["seed"] for trial in report["trials"]}) > 5
    assert all(trial["error"] <= trial["limit"] for trial in report["trials"])
    assert report["numbers"]["run_to_run_spread"] == 0.0
    assert not report["unchecked"]


@pytest.mark.parametrize(
    ("defect", "category", "words"),
    [
        ("MISSES_THE_TAIL", "nonfinite", "the last"),
        ("WRONG_AXIS", "numerics", "expected"),
        ("ALWAYS_NAN", "nonfinite", "NaN"),
        ("DOUBLES", "numerics", "times 2"),
        ("HALF_PRECISION", "numerics", "limit"),
        ("EXITS", "hack_suspected", "exit status 0"),
        ("PRINTS_ONLY", "nonfinite", "never written"),
        ("FORGES", "hack_suspected", "forged"),
        ("FLOODS", "hack_suspected", "no runner writes"),
        ("CRASHES", "illegal_access", "SIGSEGV"),
        ("ABORTS", "launch_error", "SIGABRT"),
        ("RETURNS_ERROR", "launch_error", "STITCH_CUDA_ERROR"),
        ("WRITES_PAST_THE_END", "out_of_bounds", "after output y"),
        ("WRITES_AHEAD", "out_of_bounds", "before output y"),
        ("MODIFIES_INPUT", "hack_suspected", "input x was modified"),
        ("MODIFIES_WEIGHT", "hack_suspected", "input weight was modified"),
        ("CACHES_BY_POINTER", "numerics", "expected"),
        ("IGNORES_WEIGHT_CHANGE", "numerics", "expected"),
        ("RIGHT_ONLY_AT_FULL_SHAPE", "out_of_bounds", "after output y"),
        ("NOT_AT_FULL_SHAPE", "unsupported", "full-size"),
    ],
)
def test_a_defect_is_caught_and_named(tmp_path: Path, defect: str, category: str, words: str) -> None:
    report = judged(tmp_path, defect)
    assert report["category"] == category, report["findings"]
    assert words in report["findings"][0]["message"]


def test_an_endless_loop_is_ended_at_the_deadline(tmp_path: Path) -> None:
    report = judged(tmp_path, "LOOPS", deadline_s=0.5)
    assert report["category"] == "hang"


def test_what_a_specialised_candidate_was_not_checked_on_is_said(tmp_path: Path) -> None:
    report = judged(tmp_path, "ONLY_FULL_SHAPE")
    assert report["category"] == "correct"
    assert [note.split(":")[0] for note in report["unchecked"]] == ["small_1", "small_2"]
    assert any(trial["name"] == "integers/full" for trial in report["trials"])


def test_a_weight_that_does_not_reach_the_result_is_found_by_the_weights_trial(tmp_path: Path) -> None:
    report = judged(tmp_path, "IGNORES_WEIGHT_CHANGE")
    assert report["findings"][0]["where"].startswith("weights changed in place/small_1")


def test_a_candidate_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    report = judged(tmp_path, "PRINTS_ONLY")
    assert report["category"] != "correct"
    assert '{"correct": true}' in report["output"]
    assert list(scratch.iterdir()) == []


class Noisy(LinearRelu):
    """A reference with rounding errors as large as its result, where its input has no negative number."""

    def __init__(self, everywhere: bool) -> None:
        super().__init__()
        self.everywhere = everywhere

    def evaluate(
        self, tensors: Sequence[torch.Tensor], precision: str, variant: str = "full"
    ) -> list[torch.Tensor]:
        (result,) = super().evaluate(tensors, precision, variant)
        if precision == "own" and (self.everywhere or bool((tensors[0] >= 0).all())):
            return [result + result.square().mean().sqrt()]
        return [result]


@pytest.mark.slow
def test_zeros_are_never_correct_however_large_the_references_own_error(tmp_path: Path) -> None:
    launch = host_launch(compiled(tmp_path, "ALWAYS_ZERO"))
    report = examine(Noisy(everywhere=True), launch, TRIALS, lambda *_: None)
    assert report["category"] == "unsupported"
    assert "not decidable: output y" in report["findings"][0]["message"]
    report = examine(Noisy(everywhere=False), launch, TRIALS, lambda *_: None)
    assert report["category"] == "numerics"


def test_an_accurate_candidate_of_a_noisy_reference_is_correct(tmp_path: Path) -> None:
    report = examine(Noisy(everywhere=True), host_launch(compiled(tmp_path)), TRIALS, lambda *_: None)
    assert report["category"] == "correct", report["findings"]


@pytest.mark.slow
def test_what_repaired_data_decide_is_correct_and_the_rest_is_said(tmp_path: Path) -> None:
    launch = host_launch(compiled(tmp_path, "A_THIRD_TOO_MUCH_OF_POSITIVE_INPUTS"))
    report = examine(Noisy(everywhere=False), launch, TRIALS, lambda *_: None)
    assert report["category"] == "correct", report["findings"]
    assert any(said.startswith("output y: rounding is too large") for said in report["unchecked"])
