"""Old sessions and how they go: branch, journal and work folder; never those of the one that runs."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.agents import presence
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.history import History


@dataclass(frozen=True)
class OldSession:
    """A session that is one too many."""

    name: str
    ref: str = ""
    """Its local branch, in full; empty: only folders of it are left."""
    tip: str = ""
    """The commit that the branch points at: git can bring it back from there."""


def find(project: Path, history: History, keep: int) -> list[OldSession]:
    """Local sessions but for the latest `keep`, one that is checked out and the one that runs.

    Folders of sessions that have no branch any more are of no use, so they are old whatever `keep` is.

    Raises:
        UsageError: an engine is about to begin: nobody knows yet which session it will take up.
    """
    running = _running(project)
    old = [OldSession(s.name, s.ref, s.tip) for s in history.old(keep)]
    branches = {session.name for session in history.sessions()}
    old += [OldSession(name) for name in _named(project) if name not in branches]
    return [session for session in old if session.name != running]


def remove(project: Path, history: History, session: OldSession) -> None:
    """Remove what there is of an old session, its branch first.

    Raises:
        UsageError: an engine has taken it up meanwhile.
        BranchMoved, EnvironmentFault: git or the file system refuses.
    """
    if _running(project) == session.name:
        raise UsageError("the session runs", where=session.name, advice="stop it first: stitch stop")
    if session.ref:
        history.delete(session.name)
    for folder in _folders(project):
        shutil.rmtree(folder / session.name, ignore_errors=True)


def _running(project: Path) -> str:
    engine = presence.running(project)
    if engine is None:
        return ""
    if not engine.session:
        raise UsageError(
            "an engine is opening the reference", where=f"pid {engine.pid}", advice="try again in a moment"
        )
    return engine.session


def _named(project: Path) -> list[str]:
    names = {path.name for folder in _folders(project) if folder.is_dir() for path in folder.iterdir()}
    return sorted(names)


def _folders(project: Path) -> Iterator[Path]:
    """What holds a folder for each session: the journals, and the files that a human may edit."""
    yield from (project / ".stitch" / name for name in ("sessions", "work"))
