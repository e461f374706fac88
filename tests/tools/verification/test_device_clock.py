"""Event times on a device that is not there: what is recorded, on which stream, by whom."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from stitch_tui.tools.worker import device_clock
from stitch_tui.tools.worker.device_clock import Clock, current_stream, work_left
from stitch_tui.tools.worker.tampering import Untouched

CUDA = torch.device("cuda")
CPU = torch.device("cpu")


class Event:
    """Keeps the stream that it was recorded on, and by which call."""

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing
        self.on: Any = None
        self.by = ""

    def record(self, stream: Any) -> None:
        self.on, self.by = stream, "the class"

    def synchronize(self) -> None:
        assert self.on

    def elapsed_time(self, end: "Event") -> float:
        return 0.25 if self.on is end.on else 0.0


def recorded(event: Event, stream: Any) -> None:
    event.on, event.by = stream, "CUDA"


class Device:
    """Streams, the last of which is current, and how far each has come on a clock in seconds."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.streams = [self.stream(7, busy_s=1.0)]

    def stream(self, number: int, busy_s: float) -> Any:
        def synchronize() -> None:
            self.now_s = max(self.now_s, busy_s)

        return SimpleNamespace(cuda_stream=number, synchronize=synchronize)

    def synchronize(self, device: torch.device) -> None:
        for stream in self.streams:
            stream.synchronize()


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: made.streams[-1])
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", made.synchronize)
    raw = lambda index: made.streams[-1].cuda_stream  # noqa: E731
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", raw, raising=False)
    monkeypatch.setattr(device_clock, "_record", recorded)
    monkeypatch.setattr(device_clock, "time", SimpleNamespace(perf_counter=lambda: made.now_s))
    return made


def test_a_launch_ends_on_the_stream_on_which_it_began(device: Device) -> None:
    clock = Clock(CUDA)
    clock.start()
    device.streams.append(device.stream(8, busy_s=0.0))
    clock.stop()
    assert clock.elapsed_us() == 250.0


def test_what_is_replaced_while_a_launch_runs_does_not_end_it(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(CUDA)
    start, stop = clock.start, clock.stop
    for owner, name in ((Event, "record"), (device_clock, "_record")):
        monkeypatch.setattr(owner, name, lambda *_: pytest.fail("a candidate's own"))
    start()
    stop()
    assert clock._events
    assert [event.by for event in clock._events] == ["CUDA", "CUDA"]


def test_work_that_is_left_is_that_behind_the_stream_of_the_events(device: Device) -> None:
    left_us = work_left(CUDA)
    device.streams.append(device.stream(8, busy_s=1.5))  # and it stays current
    assert left_us() == pytest.approx(0.5e6)


def test_a_stream_that_is_left_current_is_noticed_at_each_launch_and_afterwards(device: Device) -> None:
    untouched, stream = Untouched(), current_stream(CUDA)
    assert (stream(), untouched.changes()) == (7, "")
    device.streams.append(device.stream(8, busy_s=0.0))
    assert stream() == 8
    assert untouched.changes() == "the current stream was changed from 7 to 8"


def test_a_cpu_has_no_times_and_no_streams() -> None:
    clock = Clock(CPU)
    clock.start()
    clock.stop()
    assert clock.elapsed_us() == 0.0
    assert (current_stream(CPU)(), work_left(CPU)()) == (0, 0.0)
