"""What can be wrong with foreign code, as one located sentence that travels to the engine as JSON."""

import contextlib
import linecache
import logging
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

LONGEST_WHY = 600
"""Characters of an exception's message that are kept."""

_MEMORY_SIGNS = ("can't allocate memory", "out of memory", "CUDA error: out of memory", "not enough memory")


class Fault(Exception):
    """One error for a person.

    `kind` is ``reference``, ``environment``, ``device`` (lost to this process), ``usage`` or ``memory``.
    """

    def __init__(self, kind: str, what: str, *, where: str = "", why: str = "", advice: str = "") -> None:
        super().__init__(what)
        self.kind, self.what, self.where, self.why, self.advice = kind, what, where, why, advice

    def as_json(self) -> dict[str, str]:
        """The ``error`` object of the protocol."""
        return {
            "kind": self.kind,
            "what": self.what,
            "where": self.where,
            "why": self.why,
            "advice": self.advice,
        }


class Located:
    """Knows which files are the user's, to say where in them something happened."""

    def __init__(self, project: Path, path: Path | None = None) -> None:
        self.project, self.path = project.resolve(), path

    def relative(self, filename: str) -> str | None:
        """`filename` relative to the project; None for files that are not the user's."""
        path = Path(filename)
        if self.path is not None and path == self.path:
            return self._short(path)
        if "site-packages" in path.parts or "dist-packages" in path.parts:
            return None
        return self._short(path) if path.is_relative_to(self.project) and path.is_file() else None

    def of_exception(self, error: BaseException) -> str:
        """``file:line`` of the innermost frame in the user's files, or empty."""
        if isinstance(error, SyntaxError) and error.filename:
            return f"{self.relative(error.filename) or error.filename}:{error.lineno or 0}"
        frames = reversed(traceback.extract_tb(error.__traceback__))
        for frame in frames:
            if name := self.relative(frame.filename):
                return f"{name}:{frame.lineno}"
        return ""

    def _short(self, path: Path) -> str:
        return str(path.relative_to(self.project)) if path.is_relative_to(self.project) else str(path)


@contextlib.contextmanager
def foreign(what: str, located: Located, *, where: str = "", advice: str = "") -> Iterator[None]:
    """Turn whatever the user's code raises into a `Fault` that says `what` raised and where.

    Args:
        what: the piece of foreign code, ``the reference's forward``.
        where: fallback location when no frame of the traceback is the user's.
    """
    try:
        yield
    except Fault:
        raise
    except SyntaxError as error:
        raise Fault(
            "reference",
            f"{what.removeprefix('importing ')} is not valid Python",
            where=located.of_exception(error) or where,
            why=error.msg,
            advice=advice,
        ) from error
    except SystemExit as error:
        raise Fault(
            "reference",
            f"{what} ended the process with sys.exit({error.code!r})",
            where=located.of_exception(error) or where,
            advice="a reference must not exit",
        ) from error
    except BaseException as error:  # KeyboardInterrupt too: foreign code raises what it likes
        raise _fault_of(error, what, located.of_exception(error) or where, advice) from error


def _fault_of(error: BaseException, what: str, where: str, advice: str) -> Fault:
    message = " ".join(str(error).split())[:LONGEST_WHY]
    if isinstance(error, MemoryError) or any(sign in message for sign in _MEMORY_SIGNS):
        return Fault(
            "memory",
            f"{what} is too large for memory",
            where=where,
            why=message,
            advice="smaller inputs in get_inputs(), or another device",
        )
    if isinstance(error, ModuleNotFoundError):
        advice = f"install it for {sys.executable}, or set [reference] python to an interpreter that has it"
    elif isinstance(error, ImportError) and "relative import" in message:
        advice = "name the reference as pkg.mod:Class instead of by its file"
    elif isinstance(error, EOFError) and not advice:
        advice = "a reference has no standard input to read"
    return Fault(
        "reference",
        f"{what} raised {type(error).__name__}",
        where=where,
        why=message,
        advice=advice,
    )


@contextlib.contextmanager
def silent_logs() -> Iterator[None]:
    """Keep torch's own reports of a failed attempt out of the user's log."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def source_line(where: str, project: Path) -> str:
    """The text of the line that ``file:line`` names, stripped; empty when it cannot be read."""
    name, _, line = where.rpartition(":")
    linecache.checkcache(str(project / name))
    return linecache.getline(str(project / name), int(line)).strip() if name and line.isdigit() else ""
