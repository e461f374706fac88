"""``ModelNew`` candidates in their runner, judged against a reference in this process."""

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from stitch_tui.tools.worker import module_runner
from stitch_tui.tools.worker.abi import Call
from stitch_tui.tools.worker.baseline import LOWER, USUAL, Baseline, kinds_for
from stitch_tui.tools.worker.baselines import Baselines
from stitch_tui.tools.worker.candidate_fault import CandidateFault
from stitch_tui.tools.worker.checking import check
from stitch_tui.tools.worker.examination import border_of
from stitch_tui.tools.worker.launch import Launch
from stitch_tui.tools.worker.module_faults import Wrong
from stitch_tui.tools.worker.module_lines import ModuleLines
from stitch_tui.tools.worker.module_runner import ModuleRunner
from stitch_tui.tools.worker.reference import Options, Reference
from stitch_tui.tools.worker.samples import SETS
from stitch_tui.tools.worker.session import Session
from stitch_tui.tools.worker.slots import Target
from stitch_tui.tools.worker.target import target_of
from stitch_tui.tools.worker.task import Task
from stitch_tui.tools.worker.timed_rig import TimedRig
from stitch_tui.tools.worker.variants import FULL

from .linear_target import module_launch

MODEL = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)
        self.norm = nn.BatchNorm1d(7)

    def forward(self, x, scale):
        {body}
"""
INPUTS = """
def get_inputs():
    return [torch.rand(12, 9), 2.0]

def get_init_inputs():
    return [9]
"""
BODY = "return (torch.relu(self.norm(self.layer(x))) * scale)"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("reference")
    (folder / "model.py").write_text(MODEL.format(name="Model", body=BODY) + INPUTS)
    opened = Session()
    opened.task = Task(Reference.open(Options(project=folder, path="model.py")))
    return opened


def judged(session: Session, folder: Path, body: str, small: tuple[str, ...] = ()) -> dict[str, Any]:
    """A check of the ``ModelNew`` whose forward has this body."""
    source = folder / "model_new.py"
    source.write_text(MODEL.format(name="ModelNew", body=body))
    params = {
        "target": {"kind": "program"},
        "runner": module_launch(source),
        "trials": {"small": list(small), "distributions": False},
    }
    return check(session, params, lambda *_: None)


def test_an_honest_module_is_correct_with_its_changed_buffers(session: Session, tmp_path: Path) -> None:
    report = judged(session, tmp_path, BODY, tuple(n for n in session.task.variants if n != "full")[:1])
    assert report["category"] == "correct", report["findings"]
    assert "weights changed in place" in " ".join(trial["name"] for trial in report["trials"])


@pytest.mark.parametrize(
    ("body", "category", "words"),
    [
        ("return torch.relu(self.layer(x)) * scale", "numerics", "expected"),
        ("x.zero_(); " + BODY, "hack_suspected", "input x was modified"),
        ("class Lazy(torch.Tensor): pass\n        return torch.zeros(12, 7).as_subclass(Lazy)",
         "hack_suspected", "Lazy"),
    ],
)  # fmt: skip
def test_a_dishonest_or_broken_module_is_named(
    session: Session, tmp_path: Path, body: str, category: str, words: str
) -> None:
    report = judged(session, tmp_path, body)
    assert report["category"] == category, report["findings"]
    assert words in report["findings"][0]["message"]


@pytest.mark.parametrize(("reference", "category"), [("x.clone()", "hack_suspected"), ("x[:]", "correct")])
def test_memory_of_an_input_is_returned_only_where_the_reference_does_so(
    tmp_path: Path, reference: str, category: str
) -> None:
    model = MODEL.format(name="Model", body=f"return self.layer(x), {reference}")
    (tmp_path / "model.py").write_text(model + INPUTS)
    opened = Session()
    opened.task = Task(Reference.open(Options(project=tmp_path, path="model.py")))
    report = judged(opened, tmp_path, "return self.layer(x), x.view(x.shape)")
    assert report["category"] == category, report["findings"]
    if category != "correct":
        assert "forward returns memory of its inputs" in report["findings"][0]["message"]


def timed(session: Session, source: Path) -> tuple[Target, list[torch.Tensor], TimedRig]:
    """The program as a target, a draw of its inputs at full size, and a rig for the module."""
    target, module = target_of(session.task, {"kind": "program"}), ModuleLines(session.task)
    tensors = [t.contiguous() for t in target.draw(FULL, 1)]
    rig = TimedRig(border_of(target), Launch.of(module_launch(source)), module.preface())
    rig.arguments = module.arguments(FULL)
    return target, tensors, rig


@pytest.mark.slow
@pytest.mark.parametrize("cold", [True, False])
def test_every_launch_of_a_burst_finds_the_buffers_as_they_were_given(
    session: Session, tmp_path: Path, cold: bool
) -> None:
    source = tmp_path / "model_new.py"
    source.write_text(MODEL.format(name="ModelNew", body=BODY))
    target, tensors, rig = timed(session, source)
    try:
        rig.prepare(tensors, target.evaluate(tensors, "own"), sets=2)
        assert len(rig.burst(5, cold=cold).times_us) == 5
        assert rig.border.mutated == 3
        for number in range(2):
            expected = target.evaluate(rig.given(number), "own")
            torch.testing.assert_close(rig.delivered(number), expected)
    finally:
        rig.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "key = x.data_ptr()",
        "self.calls = getattr(self, 'calls', 0) + 1\n        key = self.calls % 4",
    ],
)
def test_a_result_kept_from_another_timed_launch_is_wrong(
    session: Session, tmp_path: Path, body: str
) -> None:
    source = tmp_path / "model_new.py"
    keeps = (
        "\n        self.kept = getattr(self, 'kept', {})"
        "\n        if key not in self.kept:"
        "\n            self.kept[key] = torch.relu(self.norm(self.layer(x))) * scale"
        "\n        return self.kept[key].clone()"
    )
    source.write_text(MODEL.format(name="ModelNew", body=body + keeps))
    target, tensors, rig = timed(session, source)
    wrong = 0
    try:
        rig.prepare(tensors, target.evaluate(tensors, "own"), sets=4)
        for _ in range(3):
            rig.burst(4, cold=True)
            assert sorted(rig.order) == [0, 1, 2, 3]
            for number in rig.order:
                expected, got = target.evaluate(rig.given(number), "own"), rig.delivered(number)
                wrong += not torch.allclose(got[0], expected[0], rtol=1e-4)
    finally:
        rig.close()
    assert wrong >= 6


@pytest.mark.slow
def test_a_module_may_return_the_same_memory_at_every_timed_launch(session: Session, tmp_path: Path) -> None:
    source = tmp_path / "model_new.py"
    reuses = (
        "self.result = getattr(self, 'result', torch.empty(12, 7))"
        "\n        return self.result.copy_(torch.relu(self.norm(self.layer(x))) * scale)"
    )
    source.write_text(MODEL.format(name="ModelNew", body=reuses))
    target, tensors, rig = timed(session, source)
    try:
        rig.prepare(tensors, target.evaluate(tensors, "own"), sets=3)
        rig.burst(3, cold=True)
        for number in range(3):
            expected = target.evaluate(rig.given(number), "own")
            torch.testing.assert_close(rig.delivered(number), expected)
    finally:
        rig.close()


@pytest.mark.slow
def test_what_a_timed_launch_replaces_is_named(session: Session, tmp_path: Path) -> None:
    source = tmp_path / "model_new.py"
    source.write_text(MODEL.format(name="ModelNew", body="torch.allclose = None\n        " + BODY))
    target, tensors, rig = timed(session, source)
    try:
        rig.prepare(tensors, target.evaluate(tensors, "own"))
        with pytest.raises(CandidateFault, match="allclose was replaced, in a timed launch"):
            rig.burst(5, cold=True)
    finally:
        rig.close()


def test_a_forward_that_leaves_another_stream_current_is_named_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams, launches = [7], list[int]()
    monkeypatch.setattr(module_runner, "current_stream", lambda device: lambda: streams[-1])

    class Switching(ModuleRunner):
        def _forward(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
            launches.append(len(launches))
            streams.append(7 if len(launches) == 1 else 8)
            return []

    ours, theirs = socket.socketpair()
    with ours, theirs:
        runner = Switching(ours, "cpu")
        runner._sets = {0: Call()}
        with pytest.raises(Wrong, match="leaves another stream current"):
            runner._burst("nonce", 5, True)
    assert launches == [0, 1]


@pytest.mark.parametrize(("kind", "precision"), [("eager", "highest"), ("eager-high", "high")])
def test_a_baseline_runs_a_region_of_a_fresh_reference(session: Session, kind: str, precision: str) -> None:
    graph = session.task.full.exported.graph
    node = next(n for n in graph["nodes"] if n["op"] == "aten.linear.default")
    sources = [argument["ref"] for argument in node["args"]]
    target = {
        "kind": "region",
        "region": {"nodes": [node["id"]], "inputs": sources, "outputs": [node["id"]]},
    }
    options = vars(session.task.reference.options)
    try:
        baseline = Baseline({"options": options, "target": target, "seed": 1, "kind": kind})
        assert len(baseline.burst(3, cold=True)) == 3
        places: list[int] = []
        baseline._call = lambda x, *weights: places.append(x.data_ptr())
        baseline.burst(2 * SETS, cold=True)
        assert len(set(places)) == SETS
        assert torch.get_float32_matmul_precision() == precision
    finally:
        session.task.reference.set_flags()


@pytest.mark.parametrize(
    ("operator", "changes", "kinds"),
    [
        ("aten.linear.default", {}, (*USUAL, *LOWER)),
        ("opaque", {}, (*USUAL, *LOWER)),
        ("aten.relu.default", {}, USUAL),
        ("aten.linear.default", {"dtype": "f16"}, USUAL),
        ("aten.linear.default", {"matmul_precision": "high"}, USUAL),
    ],
)
def test_products_that_have_precision_to_lose_have_more_baselines(
    operator: str, changes: dict[str, Any], kinds: tuple[str, ...]
) -> None:
    assert kinds_for(Options(Path(), "model.py", **changes), {operator}) == kinds


@pytest.mark.slow
def test_baselines_stay_warm_for_a_target_and_one_that_fails_does_not_end_the_others(
    session: Session,
) -> None:
    program = {"kind": "program"}
    baselines = session.baselines
    try:
        running, failures = baselines.of(session.task, program, ["eager"])
        assert failures == []
        assert len(running["eager"].burst(2, cold=False).times_us) == 2
        again, _ = baselines.of(session.task, program, ["eager"])
        assert again["eager"] is running["eager"]
        both, failures = baselines.of(session.task, program, ["eager", "unheard-of"])
        assert list(both) == ["eager"]
        assert "unheard-of" in failures[0]
        baselines.forget(program)
        fresh, _ = baselines.of(session.task, program, ["eager"])
        assert fresh["eager"] is not running["eager"]
    finally:
        baselines.close()


@pytest.mark.slow
def test_a_baseline_that_rests_gets_ready_when_it_is_waited_for(session: Session) -> None:
    program, baselines = {"kind": "program"}, Baselines()
    try:
        channel = baselines.start(session.task, program, ["eager"])["eager"]
        baselines.rest()
        assert os.waitid(os.P_PID, channel.pid, os.WSTOPPED | os.WNOWAIT)
        baselines.wait(program)
        baselines.rest()  # not one that is ready
        assert len(channel.burst(2, cold=False).times_us) == 2
    finally:
        baselines.close()


@pytest.mark.slow
def test_a_baseline_that_rests_ends_with_the_session(session: Session) -> None:
    ends = Session()
    channel = ends.baselines.start(session.task, {"kind": "program"}, ["eager"])["eager"]
    ends.baselines.rest()
    ends.close()
    assert not Path(f"/proc/{channel.pid}").exists()
