"""One request and its answer as it arrives: text, reasoning, tool arguments, usage, why it ended."""

from collections.abc import Callable
from typing import Any

from openai import AsyncOpenAI

from stitch_tui.agents.chat.faults import FaultKind, ModelFault
from stitch_tui.agents.chat.message import Usage
from stitch_tui.tools.redaction import Redactor

LONGEST_ANSWER = 400_000
"""Characters; reading ends there, as if the model had reached its own limit."""
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
        self._parts: dict[str, list[str]] = {"text": [], "reasoning": [], "arguments": []}
        self._redactors = {name: Redactor() for name in self._parts}
        self._length = 0
        self.finish = ""
        self.called = ""
        """The function that was called first; what it was called with are the `arguments`."""
        self.usage: Usage | None = None
        self.refusal = ""

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
    def has_begun(self) -> bool:
        """Has anything of it arrived?"""
        return any(self._parts.values())

    @property
    def is_full(self) -> bool:
        return self._length >= LONGEST_ANSWER

    def add(self, part: str, piece: str | None) -> None:
        """Take a piece of ``text``, ``reasoning`` or ``arguments``."""
        if not piece:
            return
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
    """One chunk; the client does not validate, so any field may be missing."""
    if usage := getattr(chunk, "usage", None):
        reply.usage = _usage(usage)
    for choice in getattr(chunk, "choices", None) or ():
        if (delta := getattr(choice, "delta", None)) is not None:
            _take_message(delta, reply)
        reply.finish = getattr(choice, "finish_reason", None) or reply.finish


def _take_message(message: Any, reply: Reply) -> None:
    reply.add("text", _text(getattr(message, "content", None)))
    reasoning = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
    reply.add("reasoning", _text(reasoning))
    reply.refusal += _text(getattr(message, "refusal", None))
    for call in getattr(message, "tool_calls", None) or ():
        function = getattr(call, "function", None)
        reply.called = reply.called or _text(getattr(function, "name", None))
        reply.add("arguments", _text(getattr(function, "arguments", None)))


def _take_whole(data: Any, reply: Reply, where: str) -> None:
    """An answer that was not streamed, of a server that does not."""
    from openai.types.chat import ChatCompletion

    if not isinstance(data, dict) or not isinstance(data.get("choices"), list):
        raise ModelFault(FaultKind.PROTOCOL, str(data)[:200], where=where)
    completion = ChatCompletion.construct(**data)
    if usage := getattr(completion, "usage", None):
        reply.usage = _usage(usage)
    for choice in completion.choices[:1]:
        _take_message(choice.message, reply)
        reply.finish = choice.finish_reason or "stop"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _usage(counted: Any) -> Usage:
    inputs, outputs = _number(counted, "prompt_tokens"), _number(counted, "completion_tokens")
    return Usage(
        input=inputs,
        output=outputs,
        reasoning=_number(getattr(counted, "completion_tokens_details", None), "reasoning_tokens"),
        cached=_number(getattr(counted, "prompt_tokens_details", None), "cached_tokens"),
    )


def _number(holder: Any, name: str) -> int:
    value = holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)
    return value if isinstance(value, int) else 0
