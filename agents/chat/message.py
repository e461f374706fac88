"""What is said to a model, and what that takes: as data."""

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Usage(_Data):
    """Tokens of one call, or of many."""

    input: int = 0
    output: int = 0
    """Reasoning tokens among them."""
    reasoning: int = 0
    cached: int = 0
    """Of `input`."""
    cost: float | None = None
    """In the unit of the configured prices; None where none is configured."""
    calls: int = 1
    estimated: bool = False
    """The endpoint did not count, so we did, from the length of the text."""

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: "Usage") -> "Usage":
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            cached=self.cached + other.cached,
            cost=sum(costs) if costs else None,
            calls=self.calls + other.calls,
            estimated=self.estimated or other.estimated,
        )


class Message(_Data):
    """One message of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str
