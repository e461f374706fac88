"""What a Python candidate reaches for while it runs, from the interpreter's audit events."""

import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

EVENTS = {
    "os.system": "starts a process",
    "os.exec": "starts a process",
    "os.fork": "starts a process",
    "os.posix_spawn": "starts a process",
    "subprocess.Popen": "starts a process",
    "socket.connect": "uses the network",
    "socket.getaddrinfo": "uses the network",
    "gc.get_objects": "searches the heap",
    "gc.get_referrers": "searches the heap",
    "gc.get_referents": "searches the heap",
    "os.listdir": "searches folders",
    "os.scandir": "searches folders",
    "open": "opens a file outside its folder",
    "sys._getframe": "walks the stack",
}
COMPILERS = ("nvcc", "g++", "gcc", "c++", "cc", "clang++", "ninja", "ldconfig", "hipcc")
"""Programs that a module may start: it builds its own kernels."""
_FILES = ("open", "os.listdir", "os.scandir")
_LIBRARIES = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_STDLIB = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")})


class Audit:
    """Watches from the moment it is made; a hook cannot be taken away again.

    Args:
        folders: what the candidate may read: its own folder, scratch folders, the toolkits.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        allowed = (*(str(folder.resolve()) for folder in folders), *_LIBRARIES, sys.prefix, sys.base_prefix)
        self._allowed = (*allowed, "/usr", "/lib", "/opt", "/dev", "/sys", "/etc", "/proc")
        self._here = str(Path(__file__).parent)
        self._busy = False
        self.seen: list[str] = []
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS or self._busy or len(self.seen) > 20:
            return
        self._busy = True
        try:
            if self._foreign(event, arguments) and self._candidates(direct=event == "sys._getframe"):
                what = str(arguments[0])[:200] if arguments and event in _FILES else event
                self.seen.append(f"{EVENTS[event]}: {what}")
        finally:
            self._busy = False

    def _foreign(self, event: str, arguments: tuple[Any, ...]) -> bool:
        """Is it about something outside what the candidate may use?"""
        if event == "subprocess.Popen" and Path(str(arguments[0])).name in COMPILERS:
            return False
        if event not in _FILES:
            return True
        if not arguments or not isinstance(arguments[0], (str, bytes)):
            return False
        path = os.path.realpath(os.fsdecode(arguments[0]))
        return not path.startswith(self._allowed)

    def _candidates(self, *, direct: bool) -> bool:
        """Was it the candidate that did it?  The standard library acts for its caller, other packages do not.

        Args:
            direct: only when it is the caller itself; much of the standard library looks at frames.
        """
        frame = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(self._here):
                return False
            packaged = "site-packages" in file or "dist-packages" in file
            standard = file.startswith((*_STDLIB, "<frozen"))
            if not standard or packaged:
                return not packaged
            if direct and "inspect" not in file:
                return False
            frame = frame.f_back  # type: ignore[assignment]
        return False
