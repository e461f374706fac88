"""What a Python candidate reaches for while it runs, from the interpreter's audit events."""

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
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
    "ctypes.cdata": "looks into memory",
    "ctypes.PyObj_FromPtr": "looks into memory",
    "ctypes.string_at": "looks into memory",
    "ctypes.wstring_at": "looks into memory",
}
FRAMES = ("tb_frame", "gi_frame", "cr_frame", "ag_frame")
"""Attributes that lead to the frames of callers."""
GIVE_FRAMES = ("walk_stack", "walk_tb", "currentframe", "createResolutionCallbackFromFrame")
"""Functions of the standard library and of torch that look at the frames of whoever calls them."""
SYMBOLS = (
    *("dlsym", "dlopen", "dlmopen", "fork", "vfork", "clone", "system", "popen", "posix_spawn", "execve"),
    *("ptrace", "process_vm_readv", "open", "openat", "fopen", "syscall", "mprotect"),
)
"""Functions of the C library that no kernel needs."""
COMPILERS = ("nvcc", "g++", "gcc", "c++", "cc", "clang++", "ninja", "ldconfig", "hipcc")
"""Programs that a module may start: it builds its own kernels."""
PROCESS_FILES = ("mem", "pagemap", "map_files", "fd", "fdinfo", "stack", "syscall")
"""Of the candidate's own folder in ``/proc``: what leads to memory and open files past Python."""
OTHERS_FILES = ("cgroup", "comm", "stat", "statm", "status")
"""Of any other process's folder: what tells where and how large it is, and nothing that it holds."""
_FILES = ("open", "os.listdir", "os.scandir", "sqlite3.connect")
_DIRECT = ("sys._getframe", "object.__getattr__", "object.__setattr__", "compile", "exec")
"""Only when the candidate itself does it: much of the standard library looks at frames and compiles text."""
_LIBRARIES = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_STDLIB = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")})
_MOST = 20
"""Events that are kept."""


class Audit:
    """Watches from the moment it is made; a hook cannot be taken away again.

    Args:
        folders: what the candidate may read: its own folder, scratch folders, the toolkits.
        reference: the reference's file, which it may not.
        tell: given what is noticed at once, before it takes place.  A candidate that gets hold of the runner
            may never return to it.
    """

    def __init__(
        self, folders: Iterable[Path], reference: Path | None, tell: Callable[[str], object]
    ) -> None:
        own = (str(folder.resolve()) for folder in folders)
        allowed = (*own, *_LIBRARIES, *libraries(), "/dev")
        self.seen: list[str] = []
        sys.addaudithook(_hook(allowed, _forms(reference) if reference else (), self.seen, tell))


def _hook(
    allowed: tuple[str, ...], reference: tuple[str, ...], seen: list[str], tell: Callable[[str], object]
) -> Callable[[str, tuple[Any, ...]], None]:
    """The hook, with all that decides in its cells: a module's names a candidate could replace for a while,
    even those of `builtins`."""
    events, direct_events, file_events = dict(EVENTS), _DIRECT, _FILES
    here, stdlib, own_folder = str(Path(__file__).parent), (*_STDLIB, "<frozen"), f"/proc/{os.getpid()}/"
    inside = tuple(f"{folder}/" for folder in allowed)
    frames, give_frames, symbols, compilers = FRAMES, GIVE_FRAMES, SYMBOLS, COMPILERS
    process_files, others_files, most = PROCESS_FILES, OTHERS_FILES, _MOST
    get_frame, realpath, fsdecode = sys._getframe, os.path.realpath, os.fsdecode
    is_a, text, raw, size = isinstance, str, bytes, len
    named = ("object.__getattr__", "object.__setattr__", "ctypes.dlsym")
    busy = False

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal busy
        if event not in events or busy or size(seen) > most:
            return
        busy = True
        try:
            path = opened(arguments) if event in file_events else ""
            if not foreign(event, arguments, path):
                return
            if candidates(get_frame(1), event in direct_events, event in file_events):
                what = path if event in file_events else text(arguments[1]) if event in named else event
                message = f"{doing(event, what)}: {what[:200]}"
                seen.append(message)
                tell(message)
        finally:
            busy = False

    def doing(event: str, what: str) -> str:
        if event in file_events and what in reference:
            return "reads the reference"
        return "looks into memory" if event in file_events and what.startswith("/proc/") else events[event]

    def foreign(event: str, arguments: tuple[Any, ...], path: str) -> bool:
        """Is it about something outside what the candidate may use?"""
        if event == "subprocess.Popen":
            return text(arguments[0]).rpartition("/")[2] not in compilers
        if event == "object.__getattr__":
            return text(arguments[1]) in frames
        if event == "object.__setattr__":
            return text(arguments[1]) == "__code__"
        if event == "ctypes.dlsym":
            return text(arguments[1]).startswith(("Py", "_Py")) or text(arguments[1]) in symbols
        if event not in file_events:
            return True
        if path.startswith("/proc/") and path[6:7].isdigit():
            if path.startswith(own_folder):
                own = path.removeprefix(own_folder)
                return own.split("/")[0] in process_files or own.endswith("/mem")
            return path.rpartition("/")[2] not in others_files
        return path != "" and (path in reference or not (path in allowed or path.startswith(inside)))

    def opened(arguments: tuple[Any, ...]) -> str:
        """The file that is opened; empty for a descriptor or a database in memory."""
        if not arguments or not is_a(arguments[0], (text, raw)) or arguments[0] in (":memory:", ""):
            return ""
        return realpath(fsdecode(arguments[0]))

    def candidates(frame: FrameType | None, direct: bool, anyhow: bool) -> bool:
        """Was it the candidate that did it?  The standard library acts for its caller, other packages do not.

        Args:
            frame: of whoever did it.
            direct: only when it is the caller itself, or asks what looks at its callers' frames.
            anyhow: packages act for their caller too.
        """
        asked = ""
        while frame is not None:
            file, name = frame.f_code.co_filename, frame.f_code.co_name
            if file.startswith(here):
                return False
            packaged = "site-packages" in file or "dist-packages" in file
            if not packaged and not file.startswith(stdlib):
                return True
            gives = direct and (name in give_frames or (name == "<lambda>" and "logging" in file))
            if name == "walk_stack":  # whoever gives it no frame has it walk the callers' own
                asked = file
            if packaged and not (anyhow or gives):
                return False
            if not packaged and direct and not (gives or "inspect" in file or file == asked):
                return False
            frame = frame.f_back
        return False

    return heard


def _forms(source: Path) -> tuple[str, ...]:
    """A module's file, and the one that Python keeps it compiled in."""
    path = os.path.realpath(source)
    return path, importlib.util.cache_from_source(path)
