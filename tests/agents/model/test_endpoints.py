"""What the doctor says of models: found on ports, listed, asked once; never a traceback, never a key."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from model_desk import Desk
from openai_server import OpenAIServer, Reply, error

from stitch_tui.agents.endpoints import model_checks
from stitch_tui.agents.settings import Settings
from stitch_tui.tools.doctor import Check, State

KEY = "sk-a-secret-of-the-user"


@pytest.fixture(autouse=True)
def cache(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def checks(url: str, ports: dict[int, str] | None = None, **role: str) -> list[Check]:
    settings = {"provider": "openai", "model": "tiny", "base_url": url} | role
    return asyncio.run(model_checks(Settings.model_validate({"models": {"coder": settings}}), ports or {}))


def test_each_role_is_asked_once_and_its_model_is_listed() -> None:
    with OpenAIServer([Reply('{"sum": 5}')], models=["big", "small"]) as server:
        port = urlsplit(server.url).port
        assert port
        role, local = checks(server.url, {port: "ours", 1: "nobody"})
    assert (role.name, role.state) == ("coder model", State.OK)
    assert "structured answers by json_schema" in role.found
    assert "it lists big, small" in role.found, "there is no tiny among them"
    assert local == Check("local models", State.OK, f"{server.url} (ours's port): big, small")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (error(401, f"wrong key {KEY}"), "authentication failure"),
        (Reply(body=b"<html>", content_type="text/html"), "not an OpenAI-compatible answer"),
        (error(500, "out of memory"), "server failure"),
    ],
)
def test_a_failing_endpoint_is_a_line_with_a_fix(reply: Reply, found: str) -> None:
    with OpenAIServer([reply]) as server:
        role, _ = checks(server.url)
    assert role.state is State.MISSING
    assert found in role.found
    assert role.fix
    assert KEY not in str(role)


def test_nobody_there_and_nothing_set_are_lines_too() -> None:
    role, local = checks("http://127.0.0.1:1/v1", {1: "nobody"})
    assert role.state is State.MISSING
    assert "network failure" in role.found
    assert local.state is State.ABSENT
    assert checks("")[0].found == "models.coder.base_url: no endpoint for this role"


def test_a_model_that_answers_in_prose_works_and_is_said_to() -> None:
    with OpenAIServer([Reply("Five!", prefers_tools=False)]) as server:
        role, _ = checks(server.url)
    assert role.state is State.OK
    assert "answers, but not as asked" in role.found
