"""What a person wrote to a session: the draft that was not sent, and what was; kept beside its journal."""

import json
from pathlib import Path

from stitch_tui.files import write_atomically
from stitch_tui.tools.errors import EnvironmentFault

KEPT = 200


class Drafts:
    """Draft and history of one session.

    Args:
        path: file that keeps them; None: they last as long as the process.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.draft = ""
        self.history: list[str] = []
        self._saved = ("", 0)
        self._load()

    def remember(self, text: str) -> None:
        """`text` was sent; the draft is empty."""
        if text not in self.history[-1:]:
            self.history = [*self.history, text][-KEPT:]
        self.draft = ""
        self.save()

    def save(self) -> None:
        """Write both down if they changed; that a disk is full keeps nobody from working."""
        state = (self.draft, len(self.history))
        if self._path is None or state == self._saved or not self._path.parent.is_dir():
            return
        try:
            write_atomically(self._path, json.dumps({"draft": self.draft, "history": self.history}))
            self._saved = state
        except EnvironmentFault:
            self._path = None

    def _load(self) -> None:
        try:
            data = json.loads(self._path.read_bytes()) if self._path else {}
            draft, history = data.get("draft", ""), data.get("history", [])
        except (OSError, ValueError, AttributeError):
            return
        if isinstance(draft, str) and isinstance(history, list):
            self.draft, self.history = draft, [text for text in history if isinstance(text, str)]
        self._saved = self.draft, len(self.history)
