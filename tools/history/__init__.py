"""Every iteration is a git commit: write, read, restore, apply and export them."""

from stitch_tui.tools.history.apply import Applied, EditsInTheWay
from stitch_tui.tools.history.archive import Archive, Shown
from stitch_tui.tools.history.best import best_of
from stitch_tui.tools.history.commits import BranchMoved, Started
from stitch_tui.tools.history.folders import session_name, state_folder, work_folder
from stitch_tui.tools.history.history import History, Part
from stitch_tui.tools.history.iteration import PROGRAM, Iteration
from stitch_tui.tools.history.read import Commit, Session
from stitch_tui.tools.history.repository import GitFailed
from stitch_tui.tools.iteration import Kind, Outcome

__all__ = [
    "PROGRAM",
    "Applied",
    "Archive",
    "BranchMoved",
    "Commit",
    "EditsInTheWay",
    "GitFailed",
    "History",
    "Iteration",
    "Kind",
    "Outcome",
    "Part",
    "Session",
    "Shown",
    "Started",
    "best_of",
    "session_name",
    "state_folder",
    "work_folder",
]
