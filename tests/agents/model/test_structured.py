"""Structured answers from servers that know schemas, only tools, or neither; and answers that are wrong."""

import asyncio
import json
from typing import Any

import pytest
from model_desk import Desk
from openai_server import OpenAIServer, Reply, error
from pydantic import BaseModel

from stitch_tui.agents.chat.message import Message
from stitch_tui.agents.chat.request import Answer
from stitch_tui.agents.model import ChatModel
from stitch_tui.agents.structured import Rejected, Unusable, ask_for, decoded


class Count(BaseModel):
    count: int


RIGHT = Reply(json.dumps({"count": 3}))


def counted(model: ChatModel, most: int = 9) -> int:
    def check(data: Count) -> int:
        if data.count > most:
            raise Rejected(f"count is above {most}")
        return data.count

    def compose(budget: int) -> list[Message]:
        return [Message(role="user", content="how many?")]

    return asyncio.run(ask_for(model, Count, compose, check, stage="count"))


def knows(*parameters: str) -> Any:
    """A server that refuses the other ways to ask for structure."""

    def reply(request: dict[str, Any], _: int) -> Reply:
        for name in ("response_format", "tools"):
            if name in request and name not in parameters:
                return error(400, f"{name} is not supported")
        return RIGHT

    return reply


@pytest.mark.parametrize(
    ("parameters", "calls"), [(("response_format",), 1), (("tools",), 2), ((), 3)], ids=str
)
def test_the_surest_way_is_found_once_and_remembered(
    desk: Desk, parameters: tuple[str, ...], calls: int
) -> None:
    with OpenAIServer(knows(*parameters)) as server:
        assert counted(desk.model(server.url)) == 3
        assert len(server.requests) == calls
        assert counted(desk.model(server.url)) == 3, "another run's model"
        assert len(server.requests) == calls + 1
    assert set(parameters) <= server.requests[-1].keys()


def test_a_server_that_ignores_the_schema_is_asked_for_a_fence(desk: Desk) -> None:
    proses = [Reply(text, prefers_tools=False) for text in ("Three, I think.", "```json\n{'count'")]
    with OpenAIServer([*proses, RIGHT]) as server:
        assert counted(desk.model(server.url)) == 3
    assert "response_format" in server.requests[0]
    assert "tools" in server.requests[1]
    assert not {"response_format", "tools"} & server.requests[2].keys()


def test_an_answer_that_was_cut_says_nothing_about_what_a_server_knows(desk: Desk) -> None:
    cut = Reply('{"count": 3, "why": "becau', finish="length")
    with OpenAIServer([cut, cut, RIGHT]) as server:
        assert counted(desk.model(server.url)) == 3
    assert all("response_format" in request for request in server.requests)
    assert "cut at the limit of its length" in server.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"parts": [{"number": 1}, {"number": 2}, {"num', "cut at the limit of its length; be shorter"),
        ('{"number": 3} and further', "cut at the limit of its length; be shorter (count: Field required)"),
    ],
)
def test_parts_of_an_answer_that_was_cut_are_not_judged_as_the_answer(text: str, said: str) -> None:
    with pytest.raises(Rejected) as caught:
        decoded(Answer(text, "length"), Count)
    assert str(caught.value) == f"it was {said}"


def test_what_is_wrong_goes_back_to_the_model_with_its_answer(desk: Desk) -> None:
    with OpenAIServer([Reply('{"count": 30}'), RIGHT]) as server:
        assert counted(desk.model(server.url)) == 3
    first, again = server.requests
    assert again["messages"][0] == first["messages"][0]
    assert again["messages"][1] == {"role": "assistant", "content": '{"count": 30}'}
    assert "count is above 9" in again["messages"][2]["content"]
    assert [exchange.stage for exchange in desk.events("exchange")] == ["count", "count"]


def test_a_model_that_never_learns_is_given_up(desk: Desk) -> None:
    with OpenAIServer([Reply('{"count": 30}')]) as server, pytest.raises(Unusable, match="above 9"):
        counted(desk.model(server.url))
    assert len(server.requests) == 3
    sizes = [len(request["messages"]) for request in server.requests]
    assert sizes == [1, 3, 3], "only the last wrong answer goes back"
