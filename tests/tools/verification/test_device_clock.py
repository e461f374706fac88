"""Event times on a device that is not there: what is recorded, on which stream, by whom."""

import pytest
import torch

from stitch_tui.tools.worker import device_clock
from stitch_tui.tools.worker.device_clock import Clock

CUDA = torch.device("cuda")


class Event:
    """Keeps the stream that it was recorded on, and by which call."""

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing
        self.on, self.by = "", ""

    def record(self, stream: str) -> None:
        self.on, self.by = stream, "the class"

    def synchronize(self) -> None:
        assert self.on

    def elapsed_time(self, end: "Event") -> float:
        return 0.25 if (self.on, end.on) == ("its own", "its own") else 0.0


def recorded(event: Event, stream: str) -> None:
    event.on, event.by = stream, "CUDA"


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    streams = ["its own"]
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: streams[-1])
    monkeypatch.setattr(device_clock, "_record", recorded)
    return streams


def test_a_launch_ends_on_the_stream_on_which_it_began(device: list[str]) -> None:
    clock = Clock(CUDA)
    clock.start()
    device.append("another")
    clock.stop()
    assert clock.elapsed_us() == 250.0


def test_what_is_replaced_while_a_launch_runs_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(CUDA)
    start, stop = clock.start, clock.stop
    for owner, name in ((Event, "record"), (device_clock, "_record")):
        monkeypatch.setattr(owner, name, lambda *_: pytest.fail("a candidate's own"))
    start()
    stop()
    assert clock._events
    assert [event.by for event in clock._events] == ["CUDA", "CUDA"]


def test_a_cpu_has_no_times() -> None:
    clock = Clock(torch.device("cpu"))
    clock.start()
    clock.stop()
    assert clock.elapsed_us() == 0.0
