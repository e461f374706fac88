"""A session's journal in a folder of its own, and models at a scripted server that write into it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stitch_tui.agents import journal
from stitch_tui.agents.events import Event
from stitch_tui.agents.journal import Journal
from stitch_tui.agents.model import ChatModel, Patience
from stitch_tui.agents.record import Record
from stitch_tui.agents.settings import LimitSettings, RoleSettings

QUICK = Patience(first_s=0.01, longest_s=0.02, longest_asked_s=2.0)


class Desk:
    """A session's journal, and the models that write into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "events.jsonl"
        self.record = Record(Journal(self.path, "test"))
        self.allow: Callable[[], None] = lambda: None

    def model(self, url: str, role: str = "coder", **settings: Any) -> ChatModel:
        limits = LimitSettings(**settings.pop("limits", {}))
        known = {"provider": "openai", "model": "tiny", "base_url": url} | settings
        return ChatModel(
            role,
            RoleSettings(**known),
            limits,
            self.record,
            lambda: self.allow(),
            patience=QUICK,
            memory=self.folder,
        )

    def events(self, kind: str) -> list[Any]:
        return [event for event in self.all_events if event.type == kind]

    @property
    def all_events(self) -> list[Event]:
        return list(journal.read(self.path))
