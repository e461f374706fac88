"""What a Python candidate reaches for while it runs, from the interpreter's audit events."""

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .isolation import libraries

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
    "sqlite3.connect": "opens a file outside its folder",
    "sys._getframe": "walks the stack",
    "sys._current_frames": "walks the stack",
    "sys._current_exceptions": "walks the stack",
    "sys.settrace": "walks the stack",
    "sys.setprofile": "walks the stack",
    "object.__getattr__": "walks the stack",
    "object.__setattr__": "replaces a function's code",
    "compile": "runs text as code",
    "exec": "runs text as code",
    "ctypes.dlsym": "reaches past Python",
}
FRAMES = ("tb_frame", "gi_frame", "cr_frame", "ag_frame")
"""Attributes that lead to the frames of callers."""
SYMBOLS = (
    *("dlsym", "dlopen", "dlmopen", "fork", "vfork", "clone", "system", "popen", "posix_spawn", "execve"),
    *("ptrace", "process_vm_readv", "open", "openat", "fopen", "syscall", "mprotect"),
)
"""Functions of the C library that no kernel needs."""
COMPILERS = ("nvcc", "g++", "gcc", "c++", "cc", "clang++", "ninja", "ldconfig", "hipcc")
"""Programs that a module may start: it builds its own kernels."""
_FILES = ("open", "os.listdir", "os.scandir", "sqlite3.connect")
_DIRECT = ("sys._getframe", "object.__getattr__", "object.__setattr__", "compile", "exec")
"""Only when the candidate itself does it: much of the standard library looks at frames and compiles text."""
_LIBRARIES = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_STDLIB = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")})


class Audit:
    """Watches from the moment it is made; a hook cannot be taken away again.

    Args:
        folders: what the candidate may read: its own folder, scratch folders, the toolkits.
        reference: the reference's file, which it may not.
    """

    def __init__(self, folders: Iterable[Path], reference: Path | None = None) -> None:
        own = (str(folder.resolve()) for folder in folders)
        self._allowed = (*own, *_LIBRARIES, *libraries(), "/dev")
        self._reference = _forms(reference) if reference else ()
        self._here = str(Path(__file__).parent)
        self._busy = False
        self.seen: list[str] = []
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS or self._busy or len(self.seen) > 20:
            return
        self._busy = True
        try:
            if not self._foreign(event, arguments):
                return
            if self._candidates(direct=event in _DIRECT, anyhow=event in _FILES):
                what = self._path(arguments) if event in _FILES else _name(event, arguments)
                is_reference = event in _FILES and what in self._reference
                self.seen.append(f"{'reads the reference' if is_reference else EVENTS[event]}: {what[:200]}")
        finally:
            self._busy = False

    def _foreign(self, event: str, arguments: tuple[Any, ...]) -> bool:
        """Is it about something outside what the candidate may use?"""
        match event:
            case "subprocess.Popen":
                return Path(str(arguments[0])).name not in COMPILERS
            case "object.__getattr__":
                return str(arguments[1]) in FRAMES
            case "object.__setattr__":
                return str(arguments[1]) == "__code__"
            case "ctypes.dlsym":
                return str(arguments[1]).startswith(("Py", "_Py")) or str(arguments[1]) in SYMBOLS
        if event not in _FILES:
            return True
        path = self._path(arguments)
        return bool(path) and (path in self._reference or not path.startswith(self._allowed))

    @staticmethod
    def _path(arguments: tuple[Any, ...]) -> str:
        """The file that is opened; empty for a descriptor or a database in memory."""
        if not arguments or not isinstance(arguments[0], (str, bytes)) or arguments[0] in (":memory:", ""):
            return ""
        return os.path.realpath(os.fsdecode(arguments[0]))

    def _candidates(self, *, direct: bool, anyhow: bool) -> bool:
        """Was it the candidate that did it?  The standard library acts for its caller, other packages do not.

        Args:
            direct: only when it is the caller itself.
            anyhow: packages act for their caller too.
        """
        frame = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(self._here):
                return False
            packaged = "site-packages" in file or "dist-packages" in file
            if packaged and anyhow:
                frame = frame.f_back  # type: ignore[assignment]
                continue
            standard = file.startswith((*_STDLIB, "<frozen"))
            if not standard or packaged:
                return not packaged
            if direct and "inspect" not in file:
                return False
            frame = frame.f_back  # type: ignore[assignment]
        return False


def _forms(source: Path) -> tuple[str, ...]:
    """A module's file, and the one that Python keeps it compiled in."""
    path = os.path.realpath(source)
    return path, importlib.util.cache_from_source(path)


def _name(event: str, arguments: tuple[Any, ...]) -> str:
    """What was reached for."""
    named = event in ("object.__getattr__", "object.__setattr__", "ctypes.dlsym")
    return str(arguments[1]) if named else event
