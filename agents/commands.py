"""Every command that a viewer may send to an engine, and the engine's reply.

One JSON object a line, ``{"type": "redirect", "generation": 3, ...}``.  `generation` is the session's
when the sender decided: a command for an older one is refused, so nobody redirects what is gone.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from stitch_tui.agents.settings import Autonomy

Text = Annotated[str, Field(max_length=10_000)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class _Command(_Line):
    v: Literal[1] = 1
    generation: Annotated[int, Field(ge=0)]
    """The session's generation that the command was made for."""


class Attach(_Line):
    """Send the journal's events after `since`, then the live stream."""

    v: Literal[1] = 1
    type: Literal["attach"] = "attach"
    since: Annotated[int, Field(ge=0)] = 0
    """Past the journal's end: only what comes from now on."""
    generation: int = 0
    """Not looked at: whoever attaches cannot know it yet."""


class Decide(_Command):
    """Approve or reject what is proposed."""

    type: Literal["decide"] = "decide"
    subtask: str = ""
    """Empty: the whole plan."""
    choice: Literal["approve", "reject"] = "approve"
    text: Text = ""


class Edit(_Command):
    """Change a subtask; what is None stays."""

    type: Literal["edit"] = "edit"
    subtask: str
    title: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    strategy: Text | None = None
    nodes: tuple[str, ...] | None = None
    """Ids of graph nodes; only of a subtask that was not begun."""


class Redirect(_Command):
    """Tell the Coder to go another way."""

    type: Literal["redirect"] = "redirect"
    subtask: str
    text: Text
    now: bool = False
    """Cancel the current step; otherwise it ends before its next build, launch or commit."""


class Skip(_Command):
    """Leave a subtask to PyTorch, or take it back."""

    type: Literal["skip"] = "skip"
    subtask: str
    undo: bool = False
    text: Text = ""


class Reorder(_Command):
    """Move a subtask within the plan."""

    type: Literal["reorder"] = "reorder"
    subtask: str
    position: Annotated[int, Field(ge=1)]
    """Its new place, from 1."""


class Add(_Command):
    """A new subtask at the end of the plan."""

    type: Literal["add"] = "add"
    title: Annotated[str, Field(min_length=1, max_length=200)]
    nodes: Annotated[tuple[str, ...], Field(min_length=1)]
    """Ids of graph nodes, or the word ``host`` alone: the host side of the stitched program."""
    strategy: Text = ""


class SetAutonomy(_Command):
    """Change how much the run asks from now on; deny rules hold in every mode."""

    type: Literal["autonomy"] = "autonomy"
    mode: Autonomy


class Pause(_Command):
    """Wait after the current step and give up the GPU."""

    type: Literal["pause"] = "pause"


class Resume(_Command):
    """Go on after a pause."""

    type: Literal["resume"] = "resume"


class Stop(_Command):
    """End the run; the branch ends with the best iteration."""

    type: Literal["stop"] = "stop"
    text: Text = ""


class Restore(_Command):
    """Make an iteration's files current again, as a new commit."""

    type: Literal["restore"] = "restore"
    iteration: Annotated[int, Field(ge=1)]


Command = Annotated[
    Attach | Decide | Edit | Redirect | Skip | Reorder | Add | SetAutonomy | Pause | Resume | Stop | Restore,
    Field(discriminator="type"),
]


class Reply(_Line):
    """The engine's answer to one command, in the order of the commands."""

    v: Literal[1] = 1
    type: Literal["reply"] = "reply"
    ok: bool
    text: str
    """Accepted: when it takes effect.  Refused: why."""
    generation: int
    seq: int
    """Of the last event in the journal."""


_ADAPTER: TypeAdapter[Command] = TypeAdapter(Command, config=ConfigDict(defer_build=True))


def parse(line: str | bytes) -> Command:
    """The command on one line.

    Raises:
        pydantic.ValidationError: it is none.
    """
    return _ADAPTER.validate_json(line)
