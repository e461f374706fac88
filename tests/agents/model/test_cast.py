"""Who plays which role, what is said before anything leaves the machine, when the built-in Coder begins."""

import asyncio
from typing import Any

import pytest
from model_desk import Desk
from test_prompts import H200, graph, subtask

from stitch_tui.agents.adviser import ModelAdviser
from stitch_tui.agents.builtin.roles import BuiltinAdviser, BuiltinCoder, BuiltinPlanner
from stitch_tui.agents.cast import Cast, cast, names_of
from stitch_tui.agents.coder import ModelCoder, WarmStart
from stitch_tui.agents.planner import ModelPlanner
from stitch_tui.agents.roles import CodeBrief
from stitch_tui.agents.settings import Settings
from stitch_tui.agents.state import Candidate
from stitch_tui.tools.errors import UsageError


def made(desk: Desk, session: dict[str, Any] | None = None, **roles: str) -> tuple[Cast, Settings]:
    models = {name: {"provider": "openai", "model": "m", "base_url": url} for name, url in roles.items()}
    settings = Settings.model_validate({"models": models, "session": session or {}})
    return cast(settings, desk.record, lambda: None), settings


def test_any_mix_of_roles_can_be_played(desk: Desk) -> None:
    played, settings = made(desk)
    assert (type(played.planner), type(played.coder), type(played.adviser)) == (
        BuiltinPlanner,
        BuiltinCoder,
        BuiltinAdviser,
    )
    assert set(names_of(settings).values()) == {"builtin"}
    here = "http://127.0.0.1:1/v1"
    played, settings = made(desk, verifier=here)
    assert (type(played.planner), type(played.adviser)) == (BuiltinPlanner, ModelAdviser)
    assert names_of(settings) == {"planner": "builtin", "coder": "builtin", "verifier": "m"}
    played, _ = made(desk, {"warm_start": False}, planner=here, coder=here)
    assert (type(played.planner), type(played.coder)) == (ModelPlanner, ModelCoder)
    assert desk.events("warning") == [], "nothing leaves this machine"


def test_hosts_elsewhere_are_named_with_what_they_are_sent(desk: Desk) -> None:
    made(
        desk,
        planner="https://api.example.com/v1",
        coder="https://api.example.com/v1",
        verifier="http://[::1]:8/v1",
    )
    (warning,) = desk.events("warning")
    assert warning.text == (
        "api.example.com is sent the reference's source, its graph with times, and the kernels "
        "(as planner, coder)"
    )


def test_a_host_elsewhere_needs_its_key(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="no OPENAI_API_KEY"):
        made(desk, coder="https://api.example.com/v1")


class Asked:
    async def code(self, brief: CodeBrief) -> Candidate | None:
        return Candidate(source="", strategy="the model's")

    def variants(self, brief: CodeBrief, most: int) -> tuple[Candidate, ...]:
        return ()


@pytest.mark.parametrize(
    ("device", "attempts", "strategy"),
    [(str(H200), (), "built in"), ("emulator", (), "the model's"), (str(H200), ("one",), "the model's")],
)
def test_the_built_in_version_comes_first_only_where_speed_counts(
    device: str, attempts: Any, strategy: str
) -> None:
    brief = CodeBrief(graph(), subtask(graph()), device, attempts)
    candidate = asyncio.run(WarmStart(BuiltinCoder(), Asked()).code(brief))
    assert candidate is not None
    assert (candidate.strategy == "the model's") is (strategy == "the model's")
