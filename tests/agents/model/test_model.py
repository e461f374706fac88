"""The chat client against a real server: what arrives, what is counted, and every way to fail."""

import asyncio
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from model_desk import Desk
from openai_server import USAGE, OpenAIServer, Reply, error

from stitch_tui.agents.chat.faults import FaultKind, ModelFault
from stitch_tui.agents.chat.message import Message, Usage
from stitch_tui.agents.chat.request import Answer, Ask
from stitch_tui.agents.model import ChatModel
from stitch_tui.tools.errors import Denied, ExitCode, LimitReached, UsageError


def asked(text: str = "hello", **more: Any) -> Ask:
    return Ask(lambda budget: [Message(role="user", content=text[: budget * 3])], stage="draft", **more)


def answer(model: ChatModel, ask: Ask | None = None) -> Answer:
    return asyncio.run(model.ask(ask or asked()))


def fault(model: ChatModel) -> ModelFault:
    with pytest.raises(ModelFault) as caught:
        answer(model)
    assert caught.value.exit_code == ExitCode.ENDPOINT
    return caught.value


def test_text_and_reasoning_arrive_apart_and_the_text_streams(desk: Desk) -> None:
    seen: list[str] = []
    with OpenAIServer([Reply("one two three four", reasoning="let me think")]) as server:
        got = asyncio.run(desk.model(server.url).ask(asked(), seen.append))
    assert got == Answer(text="one two three four", finish="stop")
    assert "".join(seen) == got.text
    assert len(seen) > 1
    (exchange,) = desk.events("exchange")
    assert (exchange.reasoning, exchange.answer) == ("let me think", got.text)
    assert exchange.messages[0].content == "hello"


def test_tokens_are_counted_as_the_server_counts_them_and_priced(desk: Desk) -> None:
    with OpenAIServer([Reply("x")]) as server:
        model = desk.model(server.url, input_price=2.0, output_price=10.0)
        for _ in range(3):
            answer(model)
    cost = 3 * (USAGE["prompt_tokens"] * 2.0 + USAGE["completion_tokens"] * 10.0) / 1e6
    used = desk.record.session.usage["coder"]
    assert used.cost == pytest.approx(cost)
    assert used.model_copy(update={"cost": None}) == Usage(
        input=360, output=102, reasoning=15, cached=21, calls=3
    )


def test_an_endpoint_that_counts_nothing_is_estimated_and_says_so(desk: Desk) -> None:
    with OpenAIServer([Reply("x" * 300, usage=None)]) as server:
        answer(desk.model(server.url))
    assert desk.record.session.used.estimated
    assert desk.record.session.used.output == 100


def test_the_request_carries_what_the_settings_say(desk: Desk) -> None:
    with OpenAIServer([Reply("x")]) as server:
        settings = {"temperature": 0.3, "reasoning_effort": "low", "max_tokens": 99}
        answer(desk.model(server.url, headers={"X-Team": "kernels"}, **settings))
    request, headers = server.requests[0], server.headers[0]
    assert {name: request[name] for name in settings} == settings
    assert headers["x-team"] == "kernels"
    assert headers["authorization"] == "Bearer sk-a-secret-of-the-user"
    with OpenAIServer([Reply("x")]) as server:
        answer(desk.model(server.url))
    assert not {"temperature", "reasoning_effort", "max_tokens", "tools"} & server.requests[0].keys()


@pytest.mark.parametrize(
    ("reply", "kind", "calls"),
    [
        (error(401, "bad key"), FaultKind.AUTH, 1),
        (error(429, "You exceeded your current quota", "insufficient_quota"), FaultKind.QUOTA, 1),
        (error(429, "slow down", retry_after="0.01"), FaultKind.RATE, 3),
        (error(429, "come back tomorrow", retry_after="43200"), FaultKind.RATE, 1),
        (error(429, "slow down"), FaultKind.RATE, 3),
        (error(429, "slow down", retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), FaultKind.RATE, 3),
        (error(503, "back in a lifetime", retry_after="Fri, 21 Oct 2095 07:28:00 GMT"), FaultKind.SERVER, 1),
        (error(429, "slow down", retry_after="later, nan"), FaultKind.RATE, 3),
        (error(500, "oops"), FaultKind.SERVER, 3),
        (error(503, "loading model"), FaultKind.SERVER, 3),
        (error(404, "The model `tiny` does not exist", "model_not_found"), FaultKind.MODEL, 1),
        (error(400, "flagged", "content_filter"), FaultKind.FILTER, 1),
        (error(400, "something about your messages"), FaultKind.REQUEST, 1),
        (Reply(body=b"<html>log in</html>", content_type="text/html"), FaultKind.PROTOCOL, 1),
        (Reply(body=b'{"hello": 1}'), FaultKind.PROTOCOL, 1),
        (Reply(status=302, body=b"", headers={"location": "/login"}), FaultKind.REQUEST, 1),
        (Reply("half of it and more", end="closed"), FaultKind.SERVER, 3),
        (Reply("half of it and more", end="broken"), FaultKind.NETWORK, 3),
        (Reply("half of it and more", end="error"), FaultKind.SERVER, 3),
        (Reply("half of it and more", end="garbage"), FaultKind.SERVER, 3),
        (Reply("half of it and more", end="bad utf-8"), FaultKind.SERVER, 3),
        (Reply(end="no choices"), FaultKind.SERVER, 3),
    ],
    ids=lambda value: str(value)[:40] if not isinstance(value, Reply) else (value.end or str(value.status)),
)
def test_each_failure_has_its_kind_and_is_asked_again_only_when_it_may_pass(
    desk: Desk, reply: Reply, kind: FaultKind, calls: int
) -> None:
    with OpenAIServer([reply]) as server:
        failed = fault(desk.model(server.url, retries=2))
    assert failed.kind is kind
    assert len(server.requests) == calls
    assert len(desk.events("model.waiting")) == calls - 1
    assert len(desk.events("exchange")) == calls
    assert "tiny at http://127.0.0.1" in str(failed)
    assert "\n" not in str(failed)


def test_a_failure_that_passes_costs_a_pause_that_is_announced(desk: Desk) -> None:
    failures = [error(429, "slow down", retry_after="0.02"), error(500, "oops")]
    with OpenAIServer([*failures, Reply("at last")]) as server:
        assert answer(desk.model(server.url)).text == "at last"
    first, second = desk.events("model.waiting")
    assert (first.seconds, first.attempt, first.attempts) == (0.02, 1, 5)
    assert second.attempt == 2
    assert "oops" in second.reason


def test_silence_ends_a_request(desk: Desk) -> None:
    with OpenAIServer([Reply("half of it and more", end="stalled")]) as server:
        failed = fault(desk.model(server.url, idle_seconds=0.2, retries=0))
        assert failed.kind is FaultKind.TIMEOUT
    with OpenAIServer([Reply("", end="stalled")]) as server:
        failed = fault(desk.model(server.url, timeout_seconds=0.2, retries=0))
        assert failed.kind is FaultKind.TIMEOUT
    assert desk.events("exchange")[0].answer == "half of it"
    assert desk.record.session.used.estimated, "what arrived was paid for"


def test_an_answer_without_end_is_cut_when_its_time_is_up(desk: Desk) -> None:
    """Asked again, a model that rambles would ramble again: the role decides what is to be had of it."""
    with OpenAIServer([Reply("half of it and more", end="stalled")]) as server:
        found = answer(desk.model(server.url, timeout_seconds=0.2))
    assert (found.text, found.is_cut) == ("half of it", True)
    (exchange,) = desk.events("exchange")
    assert (exchange.finish, exchange.problem) == ("length", "cut after 0.2 s")
    assert desk.events("model.waiting") == []


def test_a_refused_connection_and_an_unknown_host_are_network_failures(desk: Desk) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    failed = fault(desk.model(f"http://127.0.0.1:{port}/v1", retries=1))
    assert failed.kind is FaultKind.NETWORK
    assert len(desk.events("model.waiting")) == 1


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("openssl"):
        pytest.skip("makes its certificate with openssl")
    folder = tmp_path_factory.mktemp("tls")
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem"
    named = "-days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    command = ["openssl", *made.split(), *named.split()]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return folder


def test_tls_needs_the_authority_and_a_bundle_gives_it(desk: Desk, certificate: Path) -> None:
    with OpenAIServer([Reply("safe")], certificate=certificate / "both.pem") as server:
        assert fault(desk.model(server.url, retries=0)).kind is FaultKind.TLS
        bundle = str(certificate / "cert.pem")
        assert answer(desk.model(server.url, ca_bundle=bundle)).text == "safe"
    with pytest.raises(UsageError, match="CA bundle"):
        desk.model(server.url, ca_bundle="/nothing/here.pem")


def test_a_proxy_is_used_when_it_is_set_and_the_environment_s_never_for_this_machine(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer([Reply("direct")]) as server, OpenAIServer([Reply("by proxy")]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        assert answer(desk.model(server.url)).text == "direct"
        via = proxy.url.removesuffix("/v1")
        assert answer(desk.model("http://models.example/v1", proxy=via)).text == "by proxy"


def test_a_cut_answer_says_so_and_a_huge_one_is_cut(desk: Desk) -> None:
    with OpenAIServer([Reply("abc", finish="length"), Reply("y" * 1_000_000, pieces=50)]) as server:
        model = desk.model(server.url)
        assert answer(model).is_cut
        huge = answer(model)
    assert huge.is_cut
    assert 400_000 <= len(huge.text) < 500_000


def test_parameters_that_an_endpoint_refuses_are_left_out_once_and_for_all(desk: Desk) -> None:
    def picky(request: dict[str, Any], _: int) -> Reply:
        if "max_tokens" in request:
            return error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        if "temperature" in request:
            return error(400, "Unsupported value: 'temperature' does not support 0.2 with this model.")
        return Reply("x")

    with OpenAIServer(picky) as server:
        answer(desk.model(server.url, max_tokens=50, temperature=0.2))
        answer(desk.model(server.url, max_tokens=50, temperature=0.2))
    assert len(server.requests) == 4
    assert server.requests[-1]["max_completion_tokens"] == 50
    (warning,) = desk.events("warning")
    assert "does not take temperature" in warning.text


def test_a_prompt_that_is_too_long_for_the_endpoint_is_composed_anew(desk: Desk) -> None:
    def small(request: dict[str, Any], _: int) -> Reply:
        if len(request["messages"][0]["content"]) > 30_000:
            return error(400, "This model's maximum context length is 10000 tokens")
        return Reply("fits")

    with OpenAIServer(small) as server:
        assert answer(desk.model(server.url), asked("z" * 200_000)).text == "fits"
    sizes = [len(request["messages"][0]["content"]) for request in server.requests]
    assert sizes == sorted(sizes, reverse=True)
    with pytest.raises(UsageError, match="context_tokens"):
        answer(desk.model(server.url), Ask(lambda _: [Message(role="user", content="z" * 90_000)], "draft"))


@pytest.mark.parametrize("limits", [{"tokens": 150}, {"cost": 0.0001}])
def test_a_limit_ends_the_run_before_the_next_request(desk: Desk, limits: dict[str, float]) -> None:
    with OpenAIServer([Reply("x")]) as server:
        model = desk.model(server.url, limits=limits, input_price=1.0)
        answer(model)
        with pytest.raises(LimitReached) as caught:
            answer(model)
    assert caught.value.exit_code == ExitCode.LIMIT
    assert len(server.requests) == 1


def test_a_rule_against_the_network_is_asked_before_each_request(desk: Desk) -> None:
    def deny() -> None:
        raise Denied("no network")

    desk.allow = deny
    with OpenAIServer([Reply("x")]) as server, pytest.raises(Denied):
        answer(desk.model(server.url))
    assert server.requests == []


def test_a_cancelled_request_keeps_what_had_arrived(desk: Desk) -> None:
    async def cancelled(url: str) -> None:
        arrived = asyncio.Event()
        task = asyncio.create_task(desk.model(url).ask(asked(), lambda _: arrived.set()))
        await arrived.wait()
        task.cancel()
        async with asyncio.timeout(0.3):
            with pytest.raises(asyncio.CancelledError):
                await task

    with OpenAIServer([Reply("half of it and more", end="stalled")]) as server:
        asyncio.run(cancelled(server.url))
    (exchange,) = desk.events("exchange")
    assert exchange.problem == "cancelled"
    assert "half of it".startswith(exchange.answer)
    assert exchange.answer


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"base_url": ""}, "no endpoint"),
        ({"model": ""}, "no model"),
        ({"base_url": "https://api.example/v1", "api_key_env": "NOT_SET_ANYWHERE"}, "no API key"),
    ],
)
def test_settings_that_cannot_work_are_usage_errors(desk: Desk, settings: dict[str, str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        desk.model("http://127.0.0.1:1/v1", **settings)


def test_the_key_never_reaches_the_journal_or_an_error(desk: Desk) -> None:
    key = "sk-a-secret-of-the-user"
    echo = f"Incorrect API key provided: {key}"
    with OpenAIServer([Reply(f"// {key}\nint x;", pieces=40), error(401, echo)]) as server:
        model = desk.model(server.url)
        seen: list[str] = []
        got = asyncio.run(model.ask(asked(f"my key is {key}"), seen.append))
        failed = fault(model)
    for text in (got.text, "".join(seen), str(failed), desk.path.read_text()):
        assert key not in text
        assert "[redacted]" in text
