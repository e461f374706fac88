"""What is asked of a model and what it answered: as data, as the protocol's parameters, and as tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stitch_tui.agents.chat.capabilities import Capabilities, Shape
from stitch_tui.agents.chat.message import Message, Usage
from stitch_tui.agents.chat.stream import LENGTH, Reply
from stitch_tui.agents.chat.tokens import estimated
from stitch_tui.agents.settings import RoleSettings

Compose = Callable[[int], Sequence[Message]]
"""Makes a prompt that takes at most that many tokens."""
TOOL = "answer"


@dataclass(frozen=True)
class Ask:
    """What is asked of a model."""

    compose: Compose
    stage: str
    """Names the request in the journal: plan, draft, repair, ..."""
    subtask: str = ""
    schema: dict[str, Any] | None = None
    """JSON schema of the answer; None: text."""
    functions: tuple[dict[str, Any], ...] = ()
    """What the model may call instead of answering in text, as the protocol's ``function`` objects; where it
    does, the answer is a fence with the function's name and its arguments."""


@dataclass(frozen=True)
class Answer:
    """A whole answer; cut only when `is_cut`."""

    text: str
    """Of a structured answer: its JSON, if the endpoint kept to what it was asked."""
    finish: str

    @property
    def is_cut(self) -> bool:
        return self.finish == LENGTH


def request_of(
    ask: Ask, messages: Sequence[Message], settings: RoleSettings, known: Capabilities
) -> dict[str, Any]:
    """The request's parameters, without those that the endpoint does not take."""
    request: dict[str, Any] = {
        "model": settings.model,
        "messages": [message.model_dump() for message in messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if settings.max_tokens:
        request[known.limit] = settings.max_tokens
    if settings.temperature is not None:
        request["temperature"] = settings.temperature
    if settings.reasoning_effort:
        request["reasoning_effort"] = settings.reasoning_effort
    if ask.schema is not None:
        request |= _shaped(known.shape, ask.schema)
    elif ask.functions and "tools" not in known.omitted:
        request |= {"tools": [{"type": "function", "function": f} for f in ask.functions]}
        request["tool_choice"] = "auto"
    return {name: value for name, value in request.items() if name not in known.omitted}


def answer_text(reply: Reply) -> str:
    """What a reply says; a call of a function other than that for the answer itself, as a fence."""
    if reply.called in ("", TOOL):
        return reply.arguments or reply.text
    return f"```{reply.called}\n{reply.arguments}\n```"


def usage_of(request: dict[str, Any], reply: Reply) -> Usage | None:
    """What an exchange took: as the endpoint counts, else estimated; None where nothing was answered."""
    if reply.usage is not None or not (reply.finish or reply.has_begun):
        return reply.usage
    sent = sum(estimated(message["content"]) for message in request["messages"])
    received = sum(map(estimated, (reply.text, reply.reasoning, reply.arguments, reply.refusal)))
    return Usage(input=sent, output=received, estimated=True)


def _shaped(shape: Shape, schema: dict[str, Any]) -> dict[str, Any]:
    """The parameters that ask for an answer of that schema."""
    if shape is Shape.SCHEMA:
        wanted = {"name": TOOL, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": wanted}}
    if shape is Shape.TOOL:
        function = {"name": TOOL, "description": "Give the answer.", "parameters": schema}
        choice = {"type": "function", "function": {"name": TOOL}}
        return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
    return {}
