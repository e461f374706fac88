"""Answers that are data: asked for in the surest way that the endpoint knows, checked, asked for again."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from stitch_tui.agents.chat.capabilities import Shape
from stitch_tui.agents.chat.fences import fences, normal, without_thinking
from stitch_tui.agents.chat.json_text import is_unfinished, objects, parsed
from stitch_tui.agents.chat.message import Message
from stitch_tui.agents.chat.request import Answer, Ask, Compose
from stitch_tui.agents.chat.tokens import cut_to, estimated
from stitch_tui.agents.documentation import TOOL, Documentation, query_in_data
from stitch_tui.agents.model import ChatModel

Data = TypeVar("Data", bound=BaseModel)
Result = TypeVar("Result")
ATTEMPTS = 3
"""Answers that are asked for before the role goes on without."""
PROBLEM_TOKENS = 600
ANSWER_TOKENS = 1500
"""Of a wrong answer that goes back to the model."""


class Unusable(Exception):
    """No answer kept to what was asked; the message says what was wrong with the last one."""


class Rejected(Exception):
    """A well-formed answer that is wrong for a reason of the role's; the message goes to the model."""


async def ask_for(
    model: ChatModel,
    wanted: type[Data],
    compose: Compose,
    check: Callable[[Data], Result],
    *,
    stage: str,
    subtask: str = "",
    docs: Documentation | None = None,
) -> Result:
    """What `check` makes of the model's answer; what is wrong goes back to it, a bounded number of times.

    Args:
        check: raises `Rejected` with the reason when the data will not do.
        docs: what the model may search before it answers.

    Raises:
        Unusable: the last answer would not do either.
        StitchError: as `ChatModel.ask` raises them.
    """
    schema = strict_schema(wanted)
    shown: list[Message] = []
    turns: list[Message] = []
    problem, attempts = "", 0
    left = docs.lookups if docs else 0
    while attempts < ATTEMPTS:
        shape = model.shape
        asked = _searching(schema) if left else schema
        ask = Ask(with_turns(compose, [*shown, *turns]), stage=stage, subtask=subtask, schema=asked)
        answer = await model.ask(ask)
        if docs and left and (query := query_in_data(answer.text)):
            left -= 1
            found = await docs.look_up(model.role, subtask, query, left=left)
            shown += [_said(answer), Message(role="user", content=found)]
            continue
        attempts += 1
        try:
            return check(decoded(answer, wanted))
        except Rejected as reason:
            problem = str(reason)
        if model.shape is shape and _is_free_text(answer) and shape is not Shape.FENCED:
            model.lower_shape()  # the endpoint took the parameter and did not keep to it
        turns = [_said(answer), Message(role="user", content=_again(problem))]
    raise Unusable(problem)


def decoded(answer: Answer, wanted: type[Data]) -> Data:
    """The last thing in an answer that is what was wanted: in a closed JSON fence, else outside of fences.

    Raises:
        Rejected: nothing is; says what is wrong with the last candidate.
    """
    text = without_thinking(normal(answer.text))
    fenced = [f.text for f in fences(text) if f.is_closed and f.kind in ("json", "jsonc", "json5", "")]
    candidates = [*objects(text), *(value for block in fenced for value in objects(block))]
    problem = "there is no JSON object in it"
    for value in reversed(candidates):
        try:
            return wanted.model_validate({name: part for name, part in value.items() if name != TOOL})
        except ValidationError as error:
            if problem.startswith("there is no"):
                problem = _described(error)
    if answer.is_cut:
        detail = "" if is_unfinished(text) else f" ({problem})"
        problem = f"it was cut at the limit of its length; be shorter{detail}"
    raise Rejected(problem)


def strict_schema(wanted: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of `wanted` as strict endpoints take it: no defaults, every property required."""
    schema = wanted.model_json_schema()
    _tighten(schema)
    return schema


def with_turns(compose: Compose, turns: Sequence[Message]) -> Compose:
    """The prompt that `compose` makes, with more messages behind it, all within the budget.

    What a model said before is cut to an eighth of the budget.
    """

    def composed(budget: int) -> list[Message]:
        last = [
            turn.model_copy(update={"content": cut_to(turn.content, budget // 8)})
            if turn.role == "assistant"
            else turn
            for turn in turns
        ]
        return [*compose(budget - sum(estimated(turn.content) for turn in last)), *last]

    return composed


def _said(answer: Answer) -> Message:
    """What the model said, as a turn before the next."""
    text = cut_to(without_thinking(answer.text), ANSWER_TOKENS) or "(nothing)"
    return Message(role="assistant", content=text)


def _searching(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an answer that may ask for documentation instead."""
    properties = {TOOL: {"type": "string"}, **schema["properties"]}
    return {**schema, "properties": properties, "required": list(properties)}


def _tighten(schema: object) -> None:
    if isinstance(schema, list):
        for item in schema:
            _tighten(item)
    if not isinstance(schema, dict):
        return
    for name in ("default", "title", "maxLength", "minLength", "maxItems", "minItems", "pattern"):
        if not isinstance(schema.get(name), dict):
            schema.pop(name, None)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        schema["required"] = list(properties)
        schema["additionalProperties"] = False
    for value in schema.values():
        _tighten(value)


def _is_free_text(answer: Answer) -> bool:
    """Is it no object at all?  One that was cut shows nothing: it may have been one so far."""
    return not answer.is_cut and not isinstance(parsed(answer.text.strip()), dict)


def _described(error: ValidationError) -> str:
    """The first few faults of an object, one a line."""
    lines = [
        f"{'.'.join(map(str, fault['loc'])) or 'the object'}: {fault['msg']}" for fault in error.errors()[:8]
    ]
    return "; ".join(lines)


def _again(problem: str) -> str:
    said = cut_to(problem, PROBLEM_TOKENS)
    return (
        f"Your answer cannot be used: {said}.\n"
        "Answer again, whole, with one JSON object in a ```json fence and nothing else."
    )
