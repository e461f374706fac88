"""A session again, its models' answers taken from its journal: no endpoint, no key, no network."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stitch_tui.agents import events, journal
from stitch_tui.agents.cast import ROLES, Cast, cast_of, models_of
from stitch_tui.agents.chat.stream import Reply
from stitch_tui.agents.model import ChatModel
from stitch_tui.agents.record import Record
from stitch_tui.agents.recorded_options import as_recorded
from stitch_tui.agents.roles import AdviceBrief, Adviser, CodeBrief, Coder, PlanBrief, Planner
from stitch_tui.agents.settings import LimitSettings, ModelSettings, RoleSettings, Settings
from stitch_tui.agents.state import Advice, Author, Candidate, Plan, Session, Subtask
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
    if not os.path.isfile(path):  # also where no file can have that name
        known = ", ".join(journal.sessions(project)[:5]) or "none"
        raise UsageError("no such session", where=name, advice=f"there is {known}")
    told = list(journal.read(path))
    started = next((event for event in told if isinstance(event, events.SessionStarted)), None)
    roles = {role: name for role, name in started.roles.items() if role in ROLES} if started else {}
    if set(roles.values()) <= {"builtin"}:
        raise UsageError("no role was a model in it", where=name, advice="run it again: stitch --auto")
    whole = [event for event in told if isinstance(event, events.Exchanged) and event.finish]
    return Recording(events.fold(told), roles, tuple(whole))


def settings_of(recorded: Recording, settings: Settings) -> Settings:
    """The settings of a replay: the session's roles and its reference's options, limits on money aside.

    No endpoint is among them, not even the user's for vectors.

    Raises:
        UsageError: no reference may have those options.
    """
    models = {
        role: RoleSettings(provider="openai", model=name, base_url=NOWHERE, retries=0)
        for role, name in recorded.roles.items()
        if name != "builtin" and role in ROLES
    }
    builtin = {role: RoleSettings() for role in ROLES if role not in models}
    reference = as_recorded(settings.reference, recorded.session)
    limits = settings.limits.model_copy(update={"tokens": 0, "cost": 0.0})
    candidates = [iteration.candidate for iteration in recorded.session.iterations]
    warm = any(candidate and candidate.author is Author.BUILTIN for candidate in candidates)
    return settings.model_copy(
        update={
            "models": ModelSettings.model_validate({**builtin, **models}),
            "reference": reference,
            "limits": limits,
            "session": settings.session.model_copy(update={"warm_start": warm}),
        }
    )


class Answers:
    """A role's recorded answers, each for the subtask that it was given for, in order.

    Another device measures other times and asks for more attempts, or for fewer: what is left of a
    subtask's answers is let go, and where none is left the role has nothing more to say.
    """

    def __init__(self, role: str, exchanges: Iterable[events.Exchanged]) -> None:
        self._role = role
        self._about = ""
        self._left: dict[str, deque[events.Exchanged]] = {}
        for exchange in exchanges:
            if exchange.role == role:
                self._left.setdefault(exchange.subtask, deque()).append(exchange)

    def any_on(self, subtask: str) -> bool:
        """Is one left for this subtask?  From now on it is the one that requests are about."""
        self._about = subtask
        return bool(self._left.get(subtask))

    async def carry(self, request: dict[str, Any], reply: Reply) -> None:
        """Answer a request: a `Transport`.

        Raises:
            UsageError: nothing is left.
        """
        if not self.any_on(self._about):
            about = f" on {self._about}" if self._about else ""
            raise UsageError(f"the recording holds no further answer of the {self._role}{about}")
        answer = self._left[self._about].popleft()
        reply.add("reasoning", answer.reasoning)
        reply.add("text", answer.answer)
        reply.end()
        reply.finish = answer.finish


@dataclass(frozen=True)
class ReplayedPlanner:
    answers: Answers
    then: Planner

    async def plan(self, brief: PlanBrief) -> Plan:
        self.answers.any_on("")
        return await self.then.plan(brief)

    async def replan(self, brief: PlanBrief, session: Session, failed: Subtask, reason: str) -> Plan | None:
        known = self.answers.any_on(failed.id)
        return await self.then.replan(brief, session, failed, reason) if known else None


@dataclass(frozen=True)
class ReplayedCoder:
    answers: Answers
    then: Coder

    async def code(self, brief: CodeBrief) -> Candidate | None:
        known = self.answers.any_on(brief.subtask.id)
        return await self.then.code(brief) if known or not brief.attempts else None

    def variants(self, brief: CodeBrief, most: int) -> tuple[Candidate, ...]:
        return self.then.variants(brief, most)


@dataclass(frozen=True)
class ReplayedAdviser:
    answers: Answers
    then: Adviser

    async def advise(self, brief: AdviceBrief) -> Advice | None:
        return await self.then.advise(brief) if self.answers.any_on(brief.subtask.id) else None


def replaying(recorded: Recording) -> Callable[[Settings, Record, Callable[[], None]], Cast]:
    """Casts the roles of a run with the recording's answers."""

    def cast(settings: Settings, record: Record, allow: Callable[[], None]) -> Cast:
        answers = {role: Answers(role, recorded.exchanges) for role in models_of(settings)}

        def model(role: str, chosen: RoleSettings, limits: LimitSettings) -> ChatModel:
            transport = answers[role].carry
            return ChatModel(role, chosen, limits, record, allow, transport=transport, memory=_NO_MEMORY)

        made = cast_of(settings, record, model)
        if known := answers.get("planner"):
            made = replace(made, planner=ReplayedPlanner(known, made.planner))
        if known := answers.get("coder"):
            made = replace(made, coder=ReplayedCoder(known, made.coder))
        if known := answers.get("verifier"):
            made = replace(made, adviser=ReplayedAdviser(known, made.adviser))
        return made

    return cast


def differences(recorded: Session, now: Session) -> Iterator[str]:
    """Where a replay came to other outcomes than the recording, a line each.

    On another kind of device attempts differ in number: there only what became of the subtasks is compared.
    """
    if recorded.device[:4] != now.device[:4]:
        yield f"recorded on {recorded.device}, now on {now.device}: only what became of subtasks is compared"
        for old in recorded.subtasks:
            new = next((subtask for subtask in now.subtasks if subtask.id == old.id), None)
            if new is None or (old.best is None) != (new.best is None):
                yield f"{old.id}: recorded {_became(old)}, now {_became(new)}"
        return
    for old_one, new_one in zip(recorded.iterations, now.iterations, strict=False):
        if (old_one.subtask, old_one.outcome) != (new_one.subtask, new_one.outcome):
            before, after = (f"{i.subtask or 'program'} {i.outcome}" for i in (old_one, new_one))
            yield f"iteration {old_one.number}: recorded {before}, now {after}"
    if len(recorded.iterations) != len(now.iterations):
        yield f"recorded {len(recorded.iterations)} iterations, now {len(now.iterations)}"


def _became(subtask: Subtask | None) -> str:
    if subtask is None:
        return "not planned"
    return "without a version that was kept" if subtask.best is None else "with one that was kept"
