"""A model behind an OpenAI-compatible endpoint, as a role uses it: asked, waited for, counted, journalled."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from stitch_tui.agents import events
from stitch_tui.agents.chat.capabilities import Memory, Shape
from stitch_tui.agents.chat.client import endpoint_of, open_client
from stitch_tui.agents.chat.faults import LONGEST_TEXT, FaultKind, ModelFault, fault_of
from stitch_tui.agents.chat.message import Message, Usage
from stitch_tui.agents.chat.request import Answer, Ask, answer_text, request_of, usage_of
from stitch_tui.agents.chat.stream import LENGTH, OnText, Reply, receive
from stitch_tui.agents.chat.tokens import estimated
from stitch_tui.agents.events import Event
from stitch_tui.agents.settings import LimitSettings, RoleSettings
from stitch_tui.agents.state import Session
from stitch_tui.tools.errors import LimitReached, StitchError, UsageError
from stitch_tui.tools.paths import cache_dir

SHRINK = 0.6
"""What is left of the prompt's budget after the endpoint said that it is too long."""


@dataclass(frozen=True)
class Patience:
    """How long failures are waited for."""

    first_s: float = 1.0
    longest_s: float = 60.0
    """Of our own pauses."""
    longest_asked_s: float = 300.0
    """A server that asks for a longer pause ends the run; it can be resumed."""

    def pause(self, fault: ModelFault, attempt: int) -> float | None:
        """Seconds before the attempt after number `attempt` (from 1); None: not worth waiting for."""
        if fault.retry_after_s is not None:
            return fault.retry_after_s if fault.retry_after_s <= self.longest_asked_s else None
        return min(self.first_s * 2.0 ** (attempt - 1), self.longest_s) * random.uniform(0.8, 1.2)


class Desk(Protocol):
    """Where a model's exchanges are written down: a session's `Record`."""

    @property
    def session(self) -> Session:
        """The state so far: what was used counts against the limits."""
        ...

    def emit(self, event: Event) -> None: ...


Transport = Callable[[dict[str, Any], Reply], Awaitable[None]]
"""Carries one request and fills the reply."""


class ChatModel:
    """One role's model.

    Args:
        role: planner, coder or verifier: settings, journal and accounts go by it.
        allow: asked before each request; raises when a rule or a human is against it.
        transport: carries requests; default: over HTTP to the endpoint of the settings.

    Raises:
        UsageError: the settings name no endpoint or model, or files and keys that are not there.
    """

    def __init__(
        self,
        role: str,
        settings: RoleSettings,
        limits: LimitSettings,
        record: Desk,
        allow: Callable[[], None],
        *,
        patience: Patience | None = None,
        transport: Transport | None = None,
        memory: Path | None = None,
    ) -> None:
        self.role, self.settings = role, settings
        self.endpoint = endpoint_of(settings, role)
        self._limits, self._record, self._allow = limits, record, allow
        self._patience = patience or Patience()
        self._memory = Memory(memory or cache_dir("endpoints"), self.endpoint.url, settings.model)
        self._where = f"models.{role}: {settings.model} at {self.endpoint.url}"
        self._transport = transport or self._over_http()

    @property
    def shape(self) -> Shape:
        """How structured answers are asked for, as far as the endpoint is known."""
        return self._memory.known.shape

    @property
    def prompt_tokens(self) -> int:
        """What a prompt may take."""
        answer = self.settings.max_tokens or self.settings.context_tokens // 3
        return max(self.settings.context_tokens - answer, self.settings.context_tokens // 4)

    def lower_shape(self) -> None:
        """Structured answers came back wrong: ask for them in a simpler way from now on."""
        self._memory.learn(self._memory.known.simpler())

    async def ask(self, ask: Ask, on_text: OnText | None = None) -> Answer:
        """The model's answer; failures that may pass are waited for, each announced by an event.

        Raises:
            ModelFault: the endpoint did not answer (exit code 4).
            LimitReached: the limit on tokens or money is reached (exit code 5).
            Denied, Overtaken: as `allow` raises them.
        """
        budget, failures, told = self.prompt_tokens, 0, False
        while True:
            self._require_left()
            self._allow()
            messages = self._composed(ask, budget)
            request = request_of(ask, messages, self.settings, self._memory.known)
            try:
                return await self._once(ask, request, () if told else messages, on_text)
            except ModelFault as fault:
                told = True
                if fault.kind is FaultKind.CONTEXT and budget > self.prompt_tokens // 4:
                    budget, told = int(budget * SHRINK), False
                    continue
                if adapted := self._memory.known.adapted(fault, request):
                    self._tell(request, adapted.omitted)
                    self._memory.learn(adapted)
                    continue
                failures += 1
                await self._wait(fault, failures)

    def _composed(self, ask: Ask, budget: int) -> list[Message]:
        messages = list(ask.compose(budget))
        size = sum(estimated(message.content) for message in messages)
        if size > budget:
            raise UsageError(
                f"the shortest prompt for {ask.stage} takes {size:,} tokens",
                where=f"models.{self.role}.context_tokens",
                why=f"a prompt may take {budget:,}",
                advice="raise it to what the model takes, or take a model with a longer context",
            )
        return messages

    async def _once(
        self, ask: Ask, request: dict[str, Any], told: Sequence[Message], on_text: OnText | None
    ) -> Answer:
        """One request; whatever comes of it is written down and counted.

        An answer that has not ended after `timeout_seconds` is cut there, as at its limit of tokens: asked
        again, a model that rambles would ramble again.
        """
        reply, began, problem = Reply(on_text), monotonic(), "cancelled"
        try:
            try:
                async with asyncio.timeout(self.settings.timeout_seconds) as longest:
                    await self._transport(request, reply)
                problem = f"refused: {reply.refusal[:LONGEST_TEXT]}" if reply.refusal else ""
            except TimeoutError:
                if not (longest.expired() and reply.has_begun):
                    raise
                reply.finish, problem = LENGTH, f"cut after {self.settings.timeout_seconds:g} s"
            self._memory.keep()
        except asyncio.CancelledError:
            raise
        except StitchError as fault:
            problem = str(fault)
            raise
        except Exception as error:  # whatever a client, a proxy or a server may do is one typed failure
            typed = fault_of(error, self._where)
            problem = str(typed)
            raise typed from error
        finally:
            self._write_down(ask, reply, request, told, problem, monotonic() - began)
        return Answer(text=answer_text(reply) or reply.refusal, finish=reply.finish)

    def _write_down(
        self,
        ask: Ask,
        reply: Reply,
        request: dict[str, Any],
        told: Sequence[Message],
        problem: str,
        seconds: float,
    ) -> None:
        self._record.emit(
            events.Exchanged(
                role=self.role,
                stage=ask.stage,
                subtask=ask.subtask,
                model=self.settings.model,
                messages=tuple(told),
                answer=answer_text(reply),
                reasoning=reply.reasoning,
                finish=reply.finish,
                problem=problem,
                seconds=round(seconds, 3),
            )
        )
        if (usage := usage_of(request, reply)) is not None:
            priced = usage.model_copy(update={"cost": self._cost(usage)})
            self._record.emit(events.UsageCounted(role=self.role, model=self.settings.model, usage=priced))

    def _tell(self, request: dict[str, Any], omitted: tuple[str, ...]) -> None:
        """Say when a setting of the user's has no effect at this endpoint."""
        for name in ("temperature", "reasoning_effort", self._memory.known.limit):
            if name in request and name in omitted:
                text = f"{self._where} does not take {name}; it goes without"
                self._record.emit(events.Warned(text=text))

    async def _wait(self, fault: ModelFault, failures: int) -> None:
        """Pause after failure number `failures`, or give up.

        Raises:
            ModelFault: `fault` itself.
        """
        pause = self._patience.pause(fault, failures)
        if not fault.retryable or failures > self.settings.retries or pause is None:
            raise fault
        self._record.emit(
            events.ModelWaits(
                role=self.role,
                reason=f"{fault.kind}: {fault.why}",
                seconds=round(pause, 3),
                attempt=failures,
                attempts=self.settings.retries,
            )
        )
        await asyncio.sleep(pause)

    def _require_left(self) -> None:
        used, limits = self._record.session.used, self._limits
        if limits.tokens and used.total >= limits.tokens:
            raise LimitReached(f"the limit of {limits.tokens:,} tokens is reached", where="limits.tokens")
        if limits.cost and (used.cost or 0.0) >= limits.cost:
            raise LimitReached(f"the limit of {limits.cost:g} on cost is reached", where="limits.cost")

    def _cost(self, usage: Usage) -> float | None:
        prices = self.settings.input_price, self.settings.output_price
        if not any(prices):
            return None
        return (usage.input * prices[0] + usage.output * prices[1]) / 1e6

    def _over_http(self) -> Transport:
        client = open_client(self.settings, self.role, self.endpoint)

        async def carry(request: dict[str, Any], reply: Reply) -> None:
            await receive(client, request, reply, self._where)

        return carry
