"""Answers that no protocol foresees, from a real server: each is understood, or a typed failure."""

import asyncio
import json
from typing import Any

import pytest
from model_desk import Desk
from openai_server import OpenAIServer, Reply, error

from stitch_tui.agents.chat import bounded
from stitch_tui.agents.chat.faults import FaultKind, ModelFault
from stitch_tui.agents.chat.message import Message, Usage
from stitch_tui.agents.chat.request import Answer, Ask
from stitch_tui.agents.chat.stream import LONGEST_ANSWER
from stitch_tui.agents.events import Warned

EVENTS = "text/event-stream"


def chunk(delta: Any, finish: Any = None, index: int = 0, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}], **more}


def call(index: int, name: str | None, arguments: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": {"name": name, "arguments": arguments}}]}


def streamed(*chunks: dict[str, Any] | str) -> Reply:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in chunks]
    body = "".join(f"data: {text}\n\n" for text in (*texts, "[DONE]"))
    return Reply(body=body.encode(), content_type=EVENTS)


def whole(message: Any, finish: Any = "stop") -> Reply:
    return Reply(body=json.dumps({"choices": [{"message": message, "finish_reason": finish}]}).encode())


STOP = chunk({}, "stop")
ASK = Ask(lambda _: [Message(role="user", content="hi")], stage="draft")


def answered(desk: Desk, reply: Reply) -> Answer:
    with OpenAIServer([reply]) as server:
        return asyncio.run(desk.model(server.url, retries=0).ask(ASK))


def fault(desk: Desk, reply: Reply) -> ModelFault:
    with pytest.raises(ModelFault) as caught:
        answered(desk, reply)
    return caught.value


UNDERSTOOD = {
    "a second choice": (
        streamed(
            chunk({"content": "mine"}),
            chunk({"content": "other"}, index=1),
            STOP,
            chunk({}, "length", index=1),
        ),
        Answer("mine", "stop"),
    ),
    "two calls": (
        streamed(
            chunk(call(0, "search_docs", '{"query":')),
            chunk(call(0, None, ' "a"}')),
            chunk(call(1, "search_docs", '{"query": "b"}')),
            chunk({}, "tool_calls"),
        ),
        Answer('```search_docs\n{"query": "a"}\n```', "tool_calls"),
    ),
    "two calls at once": (
        whole({"tool_calls": [{"function": {"name": "answer", "arguments": text}} for text in ("{}", "[]")]}),
        Answer("{}", "stop"),
    ),
    "half a character": (
        streamed('{"choices": [{"delta": {"content": "a\\ud800b"}}]}', STOP),
        Answer("a\N{REPLACEMENT CHARACTER}b", "stop"),
    ),
    "a finish that is no word": (streamed(chunk({"content": "a"}), chunk({}, 7)), Answer("a", "stop")),
    "a whole one's finish": (whole({"content": "a"}, {"why": 1}), Answer("a", "stop")),
    "parts of text": (
        streamed(chunk({"content": [{"type": "text", "text": "a"}, {"type": "x"}, 5]}), STOP),
        Answer("a", "stop"),
    ),
    "nothing at all": (whole({"content": None, "tool_calls": 5}), Answer("", "stop")),
    "a message of text": (whole("hello"), Answer("", "stop")),
    "a delta of text": (streamed(chunk("hello"), STOP), Answer("", "stop")),
    "reasoning alone": (streamed(chunk({"reasoning_content": "hm"}), STOP), Answer("", "stop")),
    "a line without end": (
        streamed(chunk({"content": "z" * 3_000_000}), STOP),
        Answer("z" * LONGEST_ANSWER, "length"),
    ),
    "one without end": (whole({"content": "z" * 3_000_000}), Answer("z" * LONGEST_ANSWER, "length")),
    "a refusal without end": (
        whole({"refusal": "n" * 3_000_000}),
        Answer("n" * LONGEST_ANSWER, "length"),
    ),
}


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_what_can_be_understood_is_an_answer_and_is_written_down(desk: Desk, name: str) -> None:
    reply, wanted = UNDERSTOOD[name]
    assert answered(desk, reply) == wanted
    (exchange,) = desk.events("exchange")
    assert exchange.finish == wanted.finish
    assert len(exchange.problem) < 400


NOT_OF_THE_PROTOCOL = {
    "an empty choice": Reply(body=b'{"choices": [null]}'),
    "a choice of text": Reply(body=b'{"choices": ["x"]}'),
    "JSON without end": Reply(body=b"[" * 100_000),
    "a chunk without end": Reply(body=b"data: " + b"[" * 100_000 + b"\n\n", content_type=EVENTS),
    "packed": Reply(body=b"not gzip", headers={"content-encoding": "gzip"}),
}


@pytest.mark.parametrize("name", NOT_OF_THE_PROTOCOL)
def test_what_is_no_answer_is_not_taken_for_a_failure_of_the_network(desk: Desk, name: str) -> None:
    assert fault(desk, NOT_OF_THE_PROTOCOL[name]).kind is FaultKind.PROTOCOL


@pytest.mark.parametrize("status", [200, 500])
def test_no_more_of_an_answer_is_read_than_any_answer_takes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(bounded, "MOST_BYTES", 1000)
    reply = Reply(status=status, body=b"x" * 2000, content_type=EVENTS)
    assert "over 1,000 bytes" in fault(desk, reply).why


@pytest.mark.parametrize(
    "counted",
    [
        {"prompt_tokens": -5, "completion_tokens": -7},
        {"prompt_tokens": 10**40, "completion_tokens": 1},
        {"prompt_tokens": True, "completion_tokens": 1.5},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {},
        "many",
    ],
    ids=str,
)
def test_a_count_that_can_be_none_is_estimated(desk: Desk, counted: Any) -> None:
    answered(desk, streamed(chunk({"content": "a" * 300}), STOP, {"choices": [], "usage": counted}))
    assert desk.record.session.used == Usage(input=1, output=100, estimated=True)


def test_the_words_of_a_failing_server_are_text_that_can_be_kept(desk: Desk) -> None:
    failed = fault(desk, Reply(status=400, body=b'{"error": {"message": "half \\ud800 of it"}}'))
    assert failed.why == "400: half \N{REPLACEMENT CHARACTER} of it"
    assert desk.events("exchange")[0].problem == str(failed)


def test_a_redirect_says_where_it_leads(desk: Desk) -> None:
    reply = Reply(status=307, body=b"", headers={"location": "https://elsewhere.example/v1"})
    assert fault(desk, reply).why == "307: it leads to https://elsewhere.example/v1"


@pytest.mark.parametrize("said", ["nan", "Wed, 21 Oct 99999 07:28:00 GMT"])
def test_a_pause_that_cannot_be_read_is_none_that_was_asked_for(desk: Desk, said: str) -> None:
    with OpenAIServer([error(429, "slow down", retry_after=said), Reply("at last")]) as server:
        assert asyncio.run(desk.model(server.url, retries=1).ask(ASK)).text == "at last"


def test_an_event_with_half_a_character_is_journalled_whole(desk: Desk) -> None:
    """Whoever wrote it: a reference's own error may hold one."""
    desk.record.emit(Warned(text="a\ud800b"))
    assert desk.events("warning")[0].text == "a\N{REPLACEMENT CHARACTER}b"


def test_a_refusal_that_holds_the_key_is_masked_however_it_is_cut(desk: Desk) -> None:
    pieces = [chunk({"refusal": piece}) for piece in ("no, sk-a-sec", "ret-of-the-", "user!")]
    assert answered(desk, streamed(*pieces, STOP)) == Answer("no, [redacted]!", "stop")
