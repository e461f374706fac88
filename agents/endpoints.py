"""What the doctor says of models: each is asked for one small answer, and that of vectors for one vector."""

import asyncio
from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Any

import openai
from pydantic import BaseModel

from stitch_tui.agents.cast import models_of
from stitch_tui.agents.chat.client import Endpoint, endpoint_of, open_client
from stitch_tui.agents.chat.faults import fault_of
from stitch_tui.agents.chat.message import Message
from stitch_tui.agents.embedding import ROLE, EndpointEmbedding, embedding_of
from stitch_tui.agents.events import Event
from stitch_tui.agents.model import ChatModel
from stitch_tui.agents.settings import EmbeddingSettings, LimitSettings, RoleSettings, Settings
from stitch_tui.agents.state import Session
from stitch_tui.agents.structured import Unusable, ask_for
from stitch_tui.tools.docs.client import DocsWorker
from stitch_tui.tools.docs.vectors import OfflineModel
from stitch_tui.tools.doctor import Check, State
from stitch_tui.tools.errors import StitchError

PORTS = {
    1234: "LM Studio",
    1337: "Jan",
    5001: "KoboldCpp",
    8000: "vLLM",
    8080: "llama.cpp",
    11434: "Ollama",
    30000: "SGLang",
}
"""Where servers for local models usually listen."""
SHOWN = 6
"""Models that are named; the others are counted."""
PROBE_SECONDS = 120.0
PROBE = "page-locked memory"


class _Sum(BaseModel):
    sum: int


class _Nobody:
    """Takes a model's events where there is no session."""

    session = Session()

    def emit(self, event: Event) -> None:
        """Nothing is kept."""


async def model_checks(settings: Settings, ports: Mapping[int, str] = PORTS) -> list[Check]:
    """A line for each role that is a model, for a model of vectors, and for the servers that were found."""
    roles = models_of(settings)
    checks = [_role_check(name, role) for name, role in roles.items()]
    if settings.models.embedding.provider != "none":
        checks.append(embedding_check(settings.models.embedding))
    return list(await asyncio.gather(*checks, local_servers(ports)))


async def embedding_check(settings: EmbeddingSettings) -> Check:
    """One tiny text as a vector: how many numbers it has, or why there is none."""
    name = f"{ROLE} model"
    try:
        chosen = embedding_of(settings)
        began = monotonic()
        if isinstance(chosen, EndpointEmbedding):
            about, length = chosen.name, await _length_of(chosen)
        else:
            about, length = OfflineModel.name, await _length_offline()
    except StitchError as error:
        return _missing(ROLE, error)
    found = f"{about}: vectors of {length} numbers, answered in {monotonic() - began:.1f} s"
    return Check(name, State.OK, found)


async def _length_of(embedding: EndpointEmbedding) -> int:
    try:
        (vector,) = await embedding.vectors([PROBE])
        return len(vector)
    finally:
        await embedding.close()


async def _length_offline() -> int:
    async with DocsWorker("offline") as worker:
        length: int = await worker.call("dimension", {"text": PROBE}, timeout=PROBE_SECONDS)
        return length


async def local_servers(ports: Mapping[int, str]) -> Check:
    """The OpenAI-compatible servers on this machine's usual ports, with their models."""
    timeout = openai.Timeout(2.0)
    async with openai.DefaultAsyncHttpxClient(trust_env=False, timeout=timeout) as http:
        answers = await asyncio.gather(*(_listed(http, port) for port in ports))
    served = [
        f"http://127.0.0.1:{port}/v1 ({ports[port]}'s port): {_named(models)}"
        for port, models in zip(ports, answers, strict=True)
        if models is not None
    ]
    if served:
        return Check("local models", State.OK, "; ".join(served))
    fix = "only needed when a role is a model: start a server, or set base_url to a hosted one"
    return Check("local models", State.ABSENT, f"no server on ports {', '.join(map(str, ports))}", fix)


async def _listed(http: Any, port: int) -> list[str] | None:
    """The models of a server on a port of this machine; None when none answers in the protocol."""
    try:
        response = await http.get(f"http://127.0.0.1:{port}/v1/models")
        return [str(model["id"]) for model in response.json()["data"]]
    except Exception:  # whatever listens there may say anything: it is no server for us
        return None


async def _role_check(role: str, settings: RoleSettings) -> Check:
    name = f"{role} model"
    try:
        endpoint = endpoint_of(settings, role)
        models = await _models(settings, role, endpoint)
        took, shape = await _small_answer(role, settings)
    except StitchError as error:
        return _missing(role, error)
    except Unusable as reason:
        return Check(
            name, State.OK, f"{settings.model} at {endpoint.url}: answers, but not as asked: {reason}"
        )
    listed = f"; it lists {_named(models)}" if settings.model not in models else ""
    said = f"answered in {took:.1f} s, structured answers by {shape}"
    return Check(name, State.OK, f"{settings.model} at {endpoint.url}: {said}{listed}")


def _missing(role: str, error: StitchError) -> Check:
    found = ": ".join(part for part in (error.where, error.what, error.why) if part)
    return Check(f"{role} model", State.MISSING, found, error.advice or f"look at [models.{role}]")


async def _models(settings: RoleSettings, role: str, endpoint: Endpoint) -> list[str]:
    """What the endpoint lists; empty where it has no such list.

    Raises:
        ModelFault: the endpoint cannot be reached or refuses the key.
    """
    client = open_client(settings, role, endpoint)
    try:
        return [model.id async for model in client.models.list()]
    except (openai.NotFoundError, AttributeError, TypeError):  # not every server has the list
        return []
    except Exception as error:  # typed here, whatever it is
        raise fault_of(error, endpoint.url) from error
    finally:
        await client.close()


async def _small_answer(role: str, settings: RoleSettings) -> tuple[float, str]:
    """Seconds for one small structured answer, and the way in which the endpoint gives such."""
    quick = settings.model_copy(
        update={"retries": 0, "timeout_seconds": min(settings.timeout_seconds, PROBE_SECONDS)}
    )
    model = ChatModel(role, quick, LimitSettings(), _Nobody(), lambda: None)
    question = [Message(role="user", content='What is 2 + 3? Answer with JSON: {"sum": number}')]
    began = monotonic()
    await ask_for(model, _Sum, lambda _: question, lambda answer: answer.sum, stage="probe")
    return monotonic() - began, str(model.shape)


def _named(models: Iterable[str]) -> str:
    names = list(models)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}" if names else "no models"
