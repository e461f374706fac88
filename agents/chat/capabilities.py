"""What an endpoint's model takes, found out by asking, and remembered between runs."""

import hashlib
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from stitch_tui.agents.chat.faults import FaultKind, ModelFault
from stitch_tui.tools.atomic_write import replace_file

LIFE = timedelta(days=7)
"""Servers are updated: what was found out is asked anew after this time."""


class Shape(StrEnum):
    """How structured answers are asked for, the surest first."""

    SCHEMA = "json_schema"
    TOOL = "tool"
    FENCED = "fenced"

    @property
    def next(self) -> "Shape":
        return Shape.TOOL if self is Shape.SCHEMA else Shape.FENCED


class Capabilities(BaseModel):
    """What is known so far; begins with the widest hopes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    shape: Shape = Shape.SCHEMA
    limit: str = "max_tokens"
    """The parameter that bounds an answer's length."""
    omitted: tuple[str, ...] = ()
    """Parameters that the endpoint refused."""
    since: datetime | None = None

    def adapted(self, fault: ModelFault, request: dict[str, object]) -> "Capabilities | None":
        """What `fault` on `request` teaches; None when it is no matter of capabilities."""
        said = fault.why.lower()
        words = ("response_format", "schema", "grammar", "tool", "json")
        of_shape = any(word in said for word in words)
        if fault.status not in (400, 404, 422, 500, 501) or fault.kind is FaultKind.CONTEXT:
            return None
        if fault.kind not in (FaultKind.REQUEST, FaultKind.SERVER) and not of_shape:
            return None
        if self.limit in request and self.limit in said:
            other = "max_completion_tokens" if self.limit == "max_tokens" else "max_tokens"
            tried = f"not {other}" in self.omitted
            changes = {"limit": other, "omitted": (*self.omitted, f"not {self.limit}")}
            return self._without(self.limit) if tried else self._changed(changes)
        for name in ("stream_options", "reasoning_effort", "temperature"):
            if name in request and name in said:
                return self._without(name)
        if fault.status >= 500 and not of_shape:
            return None
        if request.get("tool_choice") == "auto":  # it may call, and may as well answer in text
            return self._without("tools")
        if "response_format" in request or "tools" in request:
            return None if self.shape is Shape.FENCED else self.simpler()
        return None

    def simpler(self) -> "Capabilities":
        """Asks for structured answers in the next simpler way."""
        return self._changed({"shape": self.shape.next})

    def _without(self, name: str) -> "Capabilities":
        return self._changed({"omitted": (*self.omitted, name)})

    def _changed(self, changes: dict[str, Any]) -> "Capabilities":
        return self.model_copy(update={**changes, "since": None})


class Memory:
    """The capabilities of one model at one endpoint, in a file of the user's cache."""

    def __init__(self, folder: Path, url: str, model: str) -> None:
        key = hashlib.sha256(f"{url}\0{model}".encode()).hexdigest()[:32]
        self._path = folder / f"{key}.json"
        self.known = self._read()

    def learn(self, capabilities: Capabilities) -> None:
        """Go on with what was found out."""
        self.known = capabilities

    def keep(self) -> None:
        """Remember it for the next run, now that a request was answered."""
        if self.known.since is not None:
            return
        self.known = self.known.model_copy(update={"since": datetime.now(UTC)})
        with suppress(OSError):  # a cache: the next run asks again
            replace_file(self._path, self.known.model_dump_json().encode())

    def _read(self) -> Capabilities:
        try:
            known = Capabilities.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return Capabilities()
        fresh = known.since is not None and datetime.now(UTC) - known.since < LIFE
        return known if fresh else Capabilities()
