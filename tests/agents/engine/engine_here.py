"""Engines in the test's own process, their judge a recording: a session with models in a second."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import scripted_engine
from engine_projects import Project
from scripted_engine import RecordedWorkbench, ScriptedVerifier
from scripted_model import ScriptedModel, settings

from stitch_tui.agents import engine
from stitch_tui.agents.engine import Parts, Request
from stitch_tui.agents.events import Event
from stitch_tui.agents.settings import Settings

KEY = "sk-the-key-of-this-test"
AUTO = {"autonomy": {"mode": "auto"}}


class Run:
    """Runs engines in this process, in a project of the test's own."""

    def __init__(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project, self._monkeypatch = project, monkeypatch
        for name, value in project.environment.items():
            if name.startswith("XDG_"):
                monkeypatch.setenv(name, value)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def __call__(
        self,
        model: ScriptedModel,
        *roles: str,
        resume: str | None = None,
        wrong: Any = (),
        guilty: str = "",
        timed: Sequence[float] | None = None,
        **tables: Any,
    ) -> tuple[int, list[Event]]:
        """Exit code and events; `tables` are settings, the rest is as in `scripted_engine`."""
        with model.served() as server:
            models = settings(server.url, *roles) if roles else {}
            return self.with_settings(models | tables, resume=resume, wrong=wrong, guilty=guilty, timed=timed)

    def with_settings(
        self,
        tables: dict[str, Any],
        *,
        resume: str | None = None,
        wrong: Any = (),
        guilty: str = "",
        timed: Sequence[float] | None = None,
        listener: Callable[[Event], None] = lambda _: None,
        hang: Sequence[int] = (),
        patient: Sequence[int] = (),
        **parts: Any,
    ) -> tuple[int, list[Event]]:
        """The same with other parts than the settings give; `listener` hears the events too."""
        files = {"project": str(self.project.folder), "recording": str(self.project.recording)}
        script = files | {
            "script": str(self.project.folder.parent / "script.json"),
            "wrong": wrong,
            "guilty": guilty,
            "hang": hang,
            "patient": patient,
        }
        script |= {} if timed is None else {"timed": timed}
        self._monkeypatch.setattr(scripted_engine, "SCRIPT", script)
        printed: list[Event] = []
        chosen = {"limits": {"iterations": 3}} | AUTO | tables
        request = Request(
            self.project.folder, Settings.model_validate(chosen), reference="model.py", resume=resume
        )
        made = Parts(verifier=ScriptedVerifier, workbench=RecordedWorkbench, **parts)

        def emit(event: Event) -> None:
            printed.append(event)
            listener(event)

        code = asyncio.run(engine.run(request, emit, made))
        return int(code), printed
