"""When a program becomes a CUDA graph, and what of a call must not show that it did; without a GPU.

The graph is a stand-in that computes on the CPU what was captured, in place as a graph does;
``test_on_a_gpu.py`` has the real one.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch

from stitch_tui.tools.bundle.parts import replay as replays
from stitch_tui.tools.bundle.parts.replay import STITCH_PATIENCE, StitchReplay, stitch_copied, stitch_places


class Graph:
    """Runs again what was captured, and leaves the results where they were."""

    def __init__(self, run: Callable[[], torch.Tensor]) -> None:
        self.run = run
        with torch.inference_mode(False):  # what a real graph writes, it writes in any mode
            self.result = run()

    def replay(self) -> None:
        self.result.copy_(self.run())


class Replay(StitchReplay):
    """With such a graph, and a pace that is set."""

    paces: tuple[float, float] = (1.0, 2.0)
    """Of the graph, of the steps: asked for in this order."""
    captured = paced = 0

    def capture(self, run: Callable[..., Any], inputs: list[torch.Tensor]) -> None:
        self.inputs = stitch_places(inputs)
        graph = Graph(lambda: run(self.inputs, object()))
        self.graph, self.results = graph, graph.result  # type: ignore[assignment]
        self.captured += 1

    def pace(self, call: Callable[[], Any]) -> float:
        call()
        self.paced += 1
        return self.paces[(self.paced - 1) % 2]


class Program:
    """``x * weight + count``, counting its calls in a buffer."""

    def __init__(self) -> None:
        self.weight, self.count, self.launched = torch.tensor(2.0), torch.tensor(0.0), 0

    def __call__(self, tensors: list[torch.Tensor], scratch: object = None) -> torch.Tensor:
        self.launched += scratch is None
        self.count += 1
        return tensors[0] * self.weight + self.count


@pytest.fixture
def replay() -> Replay:
    return Replay(torch.device("cpu"), 0)


def called(replay: Replay, program: Program, value: float, key: Any = "key") -> torch.Tensor:
    return replay(key, program, [torch.tensor(value)], [program.count])


def test_calls_give_the_same_before_and_after_the_graph_was_made(replay: Replay) -> None:
    program = Program()
    results = [called(replay, program, value) for value in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert replay.captured == 1
    assert [float(result) for result in results] == [3.0, 6.0, 9.0, 12.0, 15.0]
    assert float(program.count) == 5


def test_a_graph_made_in_inference_mode_is_called_outside_of_it_too(replay: Replay) -> None:
    program = Program()
    with torch.inference_mode():
        for value in (1.0, 2.0, 3.0):
            called(replay, program, value)
    assert replay.captured == 1
    assert float(called(replay, program, 4.0)) == 12.0
    assert not stitch_places([torch.ones(1, requires_grad=True)])[0].requires_grad


def test_steps_are_launched_until_the_weights_have_stayed_the_same(replay: Replay) -> None:
    program = Program()
    for key in range(3):
        for _ in range(STITCH_PATIENCE - 1):
            called(replay, program, 1.0, key)
    assert replay.captured == 0


def test_other_weights_need_another_graph_and_more_patience(replay: Replay) -> None:
    program = Program()
    for _ in range(STITCH_PATIENCE):
        called(replay, program, 1.0)
    program.weight = torch.tensor(10.0)
    assert float(called(replay, program, 1.0, "other")) == 10 + STITCH_PATIENCE + 1
    assert replay.graph is None
    for _ in range(2 * STITCH_PATIENCE):
        called(replay, program, 1.0, "other")
    assert replay.captured == 2
    assert replay.graph is not None


def test_a_graph_that_is_not_faster_is_given_up(replay: Replay) -> None:
    replay.paces = (1.0, 1.0)
    program = Program()
    for _ in range(4 * STITCH_PATIENCE):
        called(replay, program, 1.0)
    assert replay.captured == 1
    assert replay.graph is None
    assert replay.inputs == []
    assert float(program.count) == 4 * STITCH_PATIENCE


def test_a_program_that_cannot_be_captured_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Uncapturable(Replay):
        def capture(self, run: Callable[..., Any], inputs: list[torch.Tensor]) -> None:
            self.captured += 1
            raise RuntimeError("operation not permitted when stream is capturing\nmore of it")

    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    replay, program = Uncapturable(torch.device("cpu"), 0), Program()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        results = [called(replay, program, 1.0, key) for key in "ab" for _ in range(2 * STITCH_PATIENCE)]
    assert replay.captured == 2
    assert [float(result) for result in results] == [3.0 + call for call in range(4 * STITCH_PATIENCE)]
    (warning,) = said
    assert str(warning.message) == (
        "the program is launched step by step: it cannot be captured as a CUDA graph:"
        " operation not permitted when stream is capturing"
    )
    assert replay.graph is None


class Streams:
    """Which stream is current on a device that is not there; a capture there fails as CUDA's do."""

    def __init__(self) -> None:
        self.current = "the caller's"

    @contextmanager
    def stream(self, name: str) -> Iterator[None]:
        before, self.current = self.current, name
        try:
            yield
        finally:
            self.current = before

    @contextmanager
    def graph(self, graph: object, capture_error_mode: str) -> Iterator[None]:
        self.current = "the capture's"
        yield
        raise RuntimeError("operation failed due to a previous error during capture")


def test_a_capture_that_fails_leaves_the_callers_stream_current(monkeypatch: pytest.MonkeyPatch) -> None:
    streams, ran_on = Streams(), list[str]()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: streams.current)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "stream", streams.stream)
    monkeypatch.setattr(torch.cuda, "graph", streams.graph)
    monkeypatch.setattr(replays, "StitchScratch", lambda *_: None)
    monkeypatch.setattr(replays, "stitch_stream", lambda device: 0)
    replay = StitchReplay(torch.device("cpu"), 0)
    with pytest.raises(RuntimeError, match="during capture"):
        replay.capture(lambda *_: ran_on.append(streams.current), [])
    assert (ran_on, streams.current) == (["the capture's"], "the caller's")


def test_results_are_copies_nested_as_they_were() -> None:
    inner = torch.ones(2)
    copied = stitch_copied({"a": (inner, [inner]), "b": 3, "c": None})
    inner.zero_()
    assert torch.equal(copied["a"][0], torch.ones(2))
    assert isinstance(copied["a"][1], list)
    assert (copied["b"], copied["c"]) == (3, None)
