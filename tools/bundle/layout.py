"""What a bundle needs of the reference beside its graph, asked of the judge."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from stitch_tui.tools.bundle.contents import Constant, Structure
from stitch_tui.tools.judge import Judge


class Layout(BaseModel):
    """Fields of the same names in `Program`: ``Program(**dict(layout), ...)``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    inputs: dict[str, Structure]
    outputs: Structure
    constants: dict[str, Constant]


async def read_layout(judge: Judge, *, timeout: float = 120.0) -> Layout:
    """The layout of the reference that is open in `judge`; runs its forward once.

    Raises:
        ReferenceFault: arguments or results of a kind that a bundle cannot write down.
    """
    answer: Any = await judge.call("layout", timeout=timeout)
    return Layout.model_validate(answer)
