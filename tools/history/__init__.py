"""Every iteration is a git commit: write, read, restore, apply and export them."""

from stitch_tui.tools.history.apply import Applied, EditsInTheWay
from stitch_tui.tools.history.best import best_of
from stitch_tui.tools.history.commits import BranchMoved, Started
from stitch_tui.tools.history.folders import session_name, state_folder, work_folder
from stitch_tui.tools.history.history import History, Shown
from stitch_tui.tools.history.iteration import PROGRAM, Iteration, Kind, Outcome
from stitch_tui.tools.history.read import Commit, Session
from stitch_tui.tools.history.repository import GitFailed

__all__ = [
    "PROGRAM",
    "Applied",
    "BranchMoved",
    "Commit",
    "EditsInTheWay",
    "GitFailed",
    "History",
    "Iteration",
    "Kind",
    "Outcome",
    "Session",
    "Shown",
    "Started",
    "best_of",
    "session_name",
    "state_folder",
    "work_folder",
]
