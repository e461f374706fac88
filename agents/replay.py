"""A session again, its models' answers taken from its journal: no endpoint, no key, no network."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stitch_tui.agents import events, journal
from stitch_tui.agents.cast import ROLES, Cast, cast_of
from stitch_tui.agents.chat.stream import Reply
from stitch_tui.agents.model import ChatModel, Transport
from stitch_tui.agents.record import Record
from stitch_tui.agents.settings import LimitSettings, ReferenceSettings, RoleSettings, Settings
from stitch_tui.agents.state import Session
from stitch_tui.tools.errors import UsageError

NOWHERE = "http://127.0.0.1/replay"
"""Stands for the endpoint that is not asked."""
_NO_MEMORY = Path("/dev/null/replay")
"""Nothing is learnt about an endpoint from a recording."""


@dataclass(frozen=True)
class Recording:
    """What is taken from a session's journal."""

    session: Session
    roles: dict[str, str]
    """``builtin`` or the model's name, by role."""
    exchanges: tuple[events.Exchanged, ...]
    """Whole answers, in order."""


def recording(project: Path, name: str) -> Recording:
    """The recording of a session of this project, or of a journal at the path `name`.

    Raises:
        UsageError: there is none, it cannot be read, or no role in it was a model.
    """
    path = Path(name) if name.endswith(".jsonl") else journal.path_of(project, name)
    if not path.is_file():
        known = ", ".join(journal.sessions(project)[:5]) or "none"
        raise UsageError("no such session", where=name, advice=f"there is {known}")
    told = list(journal.read(path))
    started = next((event for event in told if isinstance(event, events.SessionStarted)), None)
    if started is None or set(started.roles.values()) <= {"builtin"}:
        raise UsageError("no role was a model in it", where=name, advice="run it again: stitch --auto")
    whole = [event for event in told if isinstance(event, events.Exchanged) and event.finish]
    return Recording(events.fold(told), dict(started.roles), tuple(whole))


def settings_of(recorded: Recording, settings: Settings) -> Settings:
    """The settings of a replay: the session's roles and its reference's options, limits on money aside."""
    models = {
        role: RoleSettings(provider="openai", model=name, base_url=NOWHERE, retries=0)
        for role, name in recorded.roles.items()
        if name != "builtin"
    }
    builtin = {role: RoleSettings() for role in ROLES if role not in models}
    reference = ReferenceSettings.model_validate(settings.reference.model_dump() | recorded.session.options)
    limits = settings.limits.model_copy(update={"tokens": 0, "cost": 0.0})
    return settings.model_copy(
        update={
            "models": settings.models.model_copy(update={**builtin, **models}),
            "reference": reference,
            "limits": limits,
        }
    )


def replaying(recorded: Recording) -> Callable[[Settings, Record, Callable[[], None]], Cast]:
    """Casts the roles of a run with the recording's answers."""

    def cast(settings: Settings, record: Record, allow: Callable[[], None]) -> Cast:
        def model(role: str, chosen: RoleSettings, limits: LimitSettings) -> ChatModel:
            answers = [event for event in recorded.exchanges if event.role == role]
            return ChatModel(
                role, chosen, limits, record, allow, transport=_recorded(role, answers), memory=_NO_MEMORY
            )

        return cast_of(settings, record, model)

    return cast


def differences(recorded: Session, now: Session) -> Iterator[str]:
    """Where a replay came to other outcomes than the recording, a line each."""
    for old, new in zip(recorded.iterations, now.iterations, strict=False):
        if (old.subtask, old.outcome) != (new.subtask, new.outcome):
            before, after = (f"{i.subtask or 'program'} {i.outcome}" for i in (old, new))
            yield f"iteration {old.number}: recorded {before}, now {after}"
    if len(recorded.iterations) != len(now.iterations):
        yield f"recorded {len(recorded.iterations)} iterations, now {len(now.iterations)}"


def _recorded(role: str, answers: Iterable[events.Exchanged]) -> Transport:
    left = iter(answers)

    async def carry(request: dict[str, Any], reply: Reply) -> None:
        answer = next(left, None)
        if answer is None:
            raise UsageError(f"the recording holds no further answer of the {role}")
        reply.add("reasoning", answer.reasoning)
        reply.add("text", answer.answer)
        reply.end()
        reply.finish = answer.finish

    return carry
