"""Commit messages: an iteration and its origin as git trailers, one a line, and back."""

import re
from dataclasses import dataclass
from typing import Any

from stitch_tui.tools.history.iteration import Iteration

KEYS = {
    "session": "Stitch-Session",
    "iteration": "Stitch-Iteration",
    "subtask": "Stitch-Subtask",
    "name": "Stitch-Name",
    "attempt": "Stitch-Attempt",
    "kind": "Stitch-Kind",
    "outcome": "Stitch-Outcome",
    "title": "Stitch-Title",
    "verdict": "Stitch-Verdict",
    "flags": "Stitch-Flags",
    "device": "Stitch-Device",
    "time_us": "Stitch-Time-us",
    "time_interval_us": "Stitch-Time-Interval-us",
    "speedup_eager": "Stitch-Speedup-Eager",
    "speedup_best_baseline": "Stitch-Speedup-Best-Baseline",
    "best_baseline": "Stitch-Best-Baseline",
    "error": "Stitch-Error",
    "error_limit": "Stitch-Error-Limit",
    "coverage": "Stitch-Coverage",
    "decision": "Stitch-Decision",
    "best": "Stitch-Best",
    "reference_sha256": "Stitch-Reference-Sha256",
    "restores": "Stitch-Restores",
}
"""Field of `Iteration` -> trailer, in the order in which they are written."""

_FIELDS = {key: field for field, key in KEYS.items()}
_OBJECT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})?")


@dataclass(frozen=True)
class Origin:
    """Where a session comes from; stands in each of its commits."""

    session: str
    base: str
    """The commit that the session started from; empty when there was none yet."""
    folder: str = ""
    """The project's folder in the repository: `stitched/` lies in it."""

    @property
    def tree(self) -> str:
        """Path of `stitched/` from the repository's top level."""
        return f"{self.folder}/stitched" if self.folder else "stitched"


def message(subject: str, pairs: list[tuple[str, str]]) -> str:
    """A commit message whose last paragraph is exactly the trailers `pairs`."""
    return f"{subject}\n\n" + "".join(f"{key}: {value}\n" for key, value in pairs)


def origin_trailers(origin: Origin) -> list[tuple[str, str]]:
    """Trailers of an origin, without the session's."""
    pairs = [("Stitch-Base", origin.base), ("Stitch-Folder", origin.folder)]
    return [(key, value) for key, value in pairs if value]


def to_trailers(iteration: Iteration) -> list[tuple[str, str]]:
    """The trailers of an iteration: only the fields that say something."""
    written = ((key, _render(getattr(iteration, field))) for field, key in KEYS.items())
    return [(key, value) for key, value in written if value]


def parse(text: str) -> dict[str, str]:
    """Trailers as git prints them (``git interpret-trailers --parse``) -> key to value; ours only.

    Raises:
        ValueError: a trailer occurs twice.
    """
    found: dict[str, str] = {}
    for line in text.split("\n"):
        key, colon, value = line.partition(":")
        if not colon or not key.startswith("Stitch-"):
            continue
        if key in found:
            raise ValueError(f"{key} occurs twice")
        found[key] = value.strip()
    return found


def from_trailers(found: dict[str, str]) -> Iteration:
    """The iteration that trailers describe; keys of a newer stitch are passed over.

    Raises:
        ValueError: something required is missing, or a value is not what its field allows.
    """
    return Iteration.model_validate(
        {_FIELDS[k]: _read(_FIELDS[k], v) for k, v in found.items() if k in _FIELDS}
    )


def origin_from(found: dict[str, str]) -> Origin:
    """The origin that trailers describe.

    Raises:
        ValueError: no session, a base that is no object name, or a folder that leaves the repository.
    """
    session, base, folder = (found.get(f"Stitch-{key}", "") for key in ("Session", "Base", "Folder"))
    if not session or not _OBJECT.fullmatch(base):
        raise ValueError("not a commit of a session")
    if folder and not safe_path(folder):
        raise ValueError(f"Stitch-Folder leaves the repository: {folder!r}")
    return Origin(session, base, folder)


def safe_path(path: str) -> bool:
    """Is `path` relative, inside its root, outside .git, and free of control characters?"""
    parts = path.split("/")
    plain = all(part not in ("", ".", "..") and part.lower() != ".git" for part in parts)
    return plain and not re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", path)


def _render(value: Any) -> str:
    if value is None or value is False:
        return ""
    if value is True:
        return "yes"
    if isinstance(value, tuple):
        between = ".." if value and isinstance(value[0], float) else ", "
        return between.join(_render(item) for item in value)
    return repr(value) if isinstance(value, float) else str(value)


def _read(field: str, value: str) -> Any:
    if field == "flags":
        return tuple(flag.strip() for flag in value.split(","))
    if field == "time_interval_us":
        return tuple(value.split("..", 1))
    return value
