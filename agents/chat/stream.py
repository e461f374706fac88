"""One request and its answer as it arrives: text, reasoning, tool arguments, usage, why it ended."""

from collections.abc import Callable
from typing import Any

from openai import AsyncOpenAI

from stitch_tui.agents.chat.faults import FaultKind, ModelFault
from stitch_tui.agents.chat.message import Usage
from stitch_tui.tools.encodable import encodable
from stitch_tui.tools.redaction import Redactor

LONGEST_ANSWER = 400_000
"""Characters; reading ends there, as if the model had reached its own limit."""
MOST_COUNTED = 1_000_000_000
"""Tokens of one exchange; a server that counts more has miscounted."""
LENGTH = "length"
"""The finish_reason of an answer that was cut at its limit."""

OnText = Callable[[str], None]


class Reply:
    """What has arrived of an answer so far; whole once `finish` says why it ended.

    Args:
        on_text: shown each new piece of the answer's text.
    """

    def __init__(self, on_text: OnText | None = None) -> None:
        self._on_text = on_text
        self._parts: dict[str, list[str]] = {"text": [], "reasoning": [], "arguments": [], "refusal": []}
        self._redactors = {name: Redactor() for name in self._parts}
        self._length = 0
        self.finish = ""
        self.called = ""
        """The function that was called first; what it was called with are the `arguments`."""
        self.usage: Usage | None = None

    @property
    def text(self) -> str:
        return "".join(self._parts["text"])

    @property
    def reasoning(self) -> str:
        return "".join(self._parts["reasoning"])

    @property
    def arguments(self) -> str:
        """JSON of tool calls."""
        return "".join(self._parts["arguments"])

    @property
    def refusal(self) -> str:
        """What the model says instead of an answer."""
        return "".join(self._parts["refusal"])

    @property
    def has_begun(self) -> bool:
        """Has anything of it arrived?"""
        return any(self._parts.values())

    @property
    def is_full(self) -> bool:
        return self._length >= LONGEST_ANSWER

    def add(self, part: str, piece: str | None) -> None:
        """Take a piece of ``text``, ``reasoning``, ``arguments`` or ``refusal``."""
        if not piece:
            return
        piece = encodable(piece[: LONGEST_ANSWER - self._length])
        self._length += len(piece)
        self._show(part, self._redactors[part].feed(piece))

    def end(self) -> None:
        """Nothing more will come."""
        for part, redactor in self._redactors.items():
            self._show(part, redactor.end())

    def _show(self, part: str, text: str) -> None:
        if text:
            self._parts[part].append(text)
            if part == "text" and self._on_text:
                self._on_text(text)


async def receive(client: AsyncOpenAI, request: dict[str, Any], reply: Reply, where: str) -> None:
    """Make a request and fill `reply`, which holds what arrived also when this raises.

    Raises:
        ModelFault: no answer of the protocol, or one that broke off.
        openai.OpenAIError, ValueError: as the client raises them; `faults.fault_of` types them.
    """
    call = client.chat.completions.with_streaming_response.create(**request)
    try:
        async with call as response:
            kind = response.headers.get("content-type", "")
            if "event-stream" in kind:
                async for chunk in await response.parse():
                    _take(chunk, reply)
                    if reply.is_full:
                        reply.finish = LENGTH
                        break
            elif "json" in kind:
                _take_whole(await response.json(), reply, where)
            else:
                start = (await response.text())[:200]
                raise ModelFault(FaultKind.PROTOCOL, f"{kind or 'no type'}: {start}", where=where)
    finally:
        reply.end()
    if not reply.finish:
        if reply.has_begun:
            raise ModelFault(FaultKind.SERVER, "the answer broke off", where=where)
        raise ModelFault(FaultKind.SERVER, "an answer without any choice", where=where)


def _take(chunk: Any, reply: Reply) -> None:
    """One chunk; the client does not validate, so any field may be missing, or anything."""
    reply.usage = _usage(getattr(chunk, "usage", None)) or reply.usage
    for choice in _list(chunk, "choices"):
        if getattr(choice, "index", 0):  # nobody asked for a second answer
            continue
        if (delta := getattr(choice, "delta", None)) is not None:
            _take_message(delta, reply)
        reply.finish = _finish(choice) or reply.finish


def _take_message(message: Any, reply: Reply) -> None:
    reply.add("text", _text(getattr(message, "content", None)))
    reasoning = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
    reply.add("reasoning", _text(reasoning))
    reply.add("refusal", _text(getattr(message, "refusal", None)))
    for at, call in enumerate(_list(message, "tool_calls")):
        if getattr(call, "index", None) or (at and getattr(call, "index", None) is None):
            continue  # one call is one answer: of several the first
        function = getattr(call, "function", None)
        reply.called = reply.called or _text(getattr(function, "name", None))
        reply.add("arguments", _text(getattr(function, "arguments", None)))


def _take_whole(data: Any, reply: Reply, where: str) -> None:
    """An answer that was not streamed, of a server that does not."""
    from openai.types.chat import ChatCompletion

    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise ModelFault(FaultKind.PROTOCOL, str(data)[:200], where=where)
    completion = ChatCompletion.construct(**data)
    reply.usage = _usage(getattr(completion, "usage", None))
    for choice in completion.choices[:1]:
        _take_message(getattr(choice, "message", None), reply)
        reply.finish = LENGTH if reply.is_full else _finish(choice) or "stop"


def _list(holder: Any, name: str) -> list[Any]:
    value = getattr(holder, name, None)
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""


def _finish(choice: Any) -> str:
    """Why an answer ended; ``stop`` where a server gives something else than a word for it."""
    reason = getattr(choice, "finish_reason", None)
    return reason if isinstance(reason, str) else "stop" if reason else ""


def _usage(counted: Any) -> Usage | None:
    """What a server counted; None where it did not, or where that can be no count."""
    inputs, outputs = _number(counted, "prompt_tokens"), _number(counted, "completion_tokens")
    if not inputs:  # every request has a prompt
        return None
    return Usage(
        input=inputs,
        output=outputs,
        reasoning=_number(getattr(counted, "completion_tokens_details", None), "reasoning_tokens"),
        cached=_number(getattr(counted, "prompt_tokens_details", None), "cached_tokens"),
    )


def _number(holder: Any, name: str) -> int:
    """A count between nothing and `MOST_COUNTED`; 0 for whatever else stands there."""
    value = holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value <= MOST_COUNTED else 0
