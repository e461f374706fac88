"""The judge: answers JSON requests over one descriptor, holding the user's reference between them.

``python boot.py judge FD``.  The methods live in `METHODS`; a method is a function
``(session, params, emit) -> JSON`` where ``emit(event, data)`` reports progress.
"""

import contextlib
import ctypes
import faulthandler
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Iterator
from typing import Any, Protocol

from .containment import adopt_orphans
from .faults import Fault
from .session import Emit, Json, Session

_PR_SET_PDEATHSIG = 1
OLDEST_TORCH = (2, 6)

METHODS = {
    "open": "methods.open_",
    "graph": "methods.graph",
    "variants": "methods.variants",
    "measure": "methods.measure",
    "peaks": "peaks.peaks",
    "layout": "structure.layout",
    "power": "methods.power",
    "check": "checking.check",
    "specimen": "specimen.specimen",
    "trace": "forward.trace",
    "warm": "timing.warm",
    "rest": "timing.rest",
    "time": "timing.time",
    "race": "race.race",
}
"""Method -> ``module.function`` of this package, imported when it is first called."""


class Method(Protocol):
    def __call__(self, session: Session, params: Json, emit: Emit) -> Any: ...


class Channel:
    """JSON lines over a descriptor that only this process uses: a fork of the user's loses it."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self.socket = socket.socket(fileno=descriptor)
        self.owner = os.getpid()
        os.register_at_fork(after_in_child=self.socket.close)

    def requests(self) -> Iterator[Json]:
        """Requests, until the engine closes its end."""
        with self.socket.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                request: Json = json.loads(line)
                yield request

    def send(self, message: Json) -> None:
        if os.getpid() != self.owner:
            os._exit(0)  # a child that the reference forked and forgot to end
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(json.dumps(message).encode() + b"\n")


def main() -> None:
    """Answer requests until the descriptor is closed."""
    _be_the_first_to_go()
    _end_with_the_engine()
    adopt_orphans()  # so that the engine finds them when it ends this process
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    channel, session = Channel(int(sys.argv[1])), Session()
    try:
        channel.send({"event": "ready", "data": _environment()})
    except Fault as fault:
        channel.send({"event": "unfit", "data": fault.as_json()})
        return
    try:
        for request in channel.requests():
            channel.send(_answer(channel, session, request))
    finally:
        session.close()


def _answer(channel: Channel, session: Session, request: Json) -> Json:
    number = request["id"]

    def emit(event: str, data: Json) -> None:
        channel.send({"id": number, "event": event, "data": data})

    try:
        return {"id": number, "result": _method(request["method"])(session, request["params"], emit)}
    except Fault as fault:
        return {"id": number, "error": _or_lost(session, fault).as_json()}
    except (Exception, KeyboardInterrupt) as error:  # a defect of ours, or memory ran out in our hands
        return {"id": number, "error": _or_lost(session, _unforeseen(error, request["method"])).as_json()}


def _or_lost(session: Session, fault: Fault) -> Fault:
    """The fault, or that the device is lost to this process: then nothing that it says counts."""
    if not session.is_open or fault.kind == "device":
        return fault
    from .device_probe import lost

    device = session.task.reference.device
    if why := lost(device):
        return Fault("device", f"{device} was lost to the judge", where=fault.what, why=why)
    return fault


def _unforeseen(error: BaseException, method: str) -> Fault:
    traceback.print_exception(error)
    message = " ".join(str(error).split())[:600]
    if isinstance(error, MemoryError) or "out of memory" in message or "can't allocate memory" in message:
        return Fault("memory", "the reference is too large for memory", why=message)
    return Fault("internal", f"{method} failed in the judge", why=f"{type(error).__name__}: {message}")


def _method(name: str) -> Method:
    if name not in METHODS:
        raise Fault("usage", f"the judge has no method {name}")
    module, function = METHODS[name].split(".")
    found: Method = getattr(importlib.import_module(f".{module}", __package__), function)
    return found


def _environment() -> Json:
    """Versions; refuses an interpreter without a recent enough torch."""
    advice = "install it there, or set [reference] python to an interpreter that has it"
    try:
        import torch
    except ImportError as error:
        raise Fault(
            "environment", "torch cannot be imported", where=sys.executable, why=str(error), advice=advice
        ) from error
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < OLDEST_TORCH:
        needed = ".".join(map(str, OLDEST_TORCH))
        raise Fault(
            "environment",
            f"torch {torch.__version__} is too old",
            where=sys.executable,
            advice=f"stitch needs {needed} or later",
        )
    return {
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "pid": os.getpid(),
    }


def _be_the_first_to_go() -> None:
    """Should the machine run out of memory, the kernel ends this process rather than the user's editor."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("500")


def _end_with_the_engine() -> None:
    """Have the kernel kill this process when its parent dies (Linux), even in an endless forward."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main()
