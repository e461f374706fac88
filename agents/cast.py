"""Who plays the roles of a run: the built-in implementations, or models, each as the settings say."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stitch_tui.agents import events
from stitch_tui.agents.builtin.roles import BuiltinAdviser, BuiltinCoder, BuiltinPlanner
from stitch_tui.agents.embedding import ROLE, EndpointEmbedding, embedding_of
from stitch_tui.agents.record import Record
from stitch_tui.agents.roles import Adviser, Coder, Planner
from stitch_tui.agents.settings import LimitSettings, RoleSettings, Settings
from stitch_tui.tools.docs.client import Embedding

if TYPE_CHECKING:
    from stitch_tui.agents.documentation import Documentation
    from stitch_tui.agents.model import ChatModel

ROLES = ("planner", "coder", "verifier")


@dataclass(frozen=True)
class Cast:
    """The roles of one run; the Verifier's verdicts are always computed, an Adviser only comments on them."""

    planner: Planner
    coder: Coder
    adviser: Adviser
    documentation: "Documentation | None" = None

    async def close(self) -> None:
        """End what the roles keep running."""
        if self.documentation is not None:
            await self.documentation.close()


def models_of(settings: Settings) -> dict[str, RoleSettings]:
    """The roles that are models."""
    known = {name: getattr(settings.models, name) for name in ROLES}
    return {name: role for name, role in known.items() if role.provider == "openai"}


def names_of(settings: Settings) -> dict[str, str]:
    """``builtin`` or the model's name, by role."""
    models = models_of(settings)
    return {name: models[name].model if name in models else "builtin" for name in ROLES}


def require_models(settings: Settings) -> None:
    """See that each model has endpoint, name, key and prompts that can be used, before anything begins.

    Raises:
        UsageError: one has not.
    """
    if models := models_of(settings):
        from stitch_tui.agents import prompting

        for prompt in prompting.names():
            if prompt.partition("-")[0] in models:
                prompting.require_known_sections(prompt)
    for name, role in models_of(settings).items():
        from stitch_tui.agents.chat.client import endpoint_of, key_of

        key_of(role, name, endpoint_of(role, name))
    if models_of(settings) and settings.docs.retrieval and settings.models.embedding.provider == "openai":
        from stitch_tui.agents.chat.client import endpoint_of, key_of

        embedding = settings.models.embedding
        key_of(embedding, ROLE, endpoint_of(embedding, ROLE))


def cast(settings: Settings, record: Record, allow: Callable[[], None]) -> Cast:
    """The roles; those that leave this machine are announced with what is sent there.

    Args:
        allow: asked before each request to a model.

    Raises:
        UsageError: a model's settings cannot work.
    """
    if not models_of(settings):
        return Cast(BuiltinPlanner(), BuiltinCoder(), BuiltinAdviser())
    # the client library takes half a second to import: only runs with a model pay for it
    from stitch_tui.agents.model import ChatModel

    def model(role: str, chosen: RoleSettings, limits: LimitSettings) -> ChatModel:
        return ChatModel(role, chosen, limits, record, allow)

    chosen = embedding_of(settings.models.embedding, allow) if settings.docs.retrieval else None
    return cast_of(settings, record, model, chosen)


def cast_of(
    settings: Settings,
    record: Record,
    make: Callable[[str, RoleSettings, LimitSettings], "ChatModel"],
    embedding: Embedding | Literal["offline"] | None = None,
) -> Cast:
    """The roles, with models as `make` makes them from a role's name and settings."""
    from stitch_tui.agents.adviser import ModelAdviser
    from stitch_tui.agents.coder import ModelCoder, WarmStart
    from stitch_tui.agents.documentation import Documentation
    from stitch_tui.agents.planner import ModelPlanner

    models = {name: make(name, role, settings.limits) for name, role in models_of(settings).items()}
    _announce(models.values(), record)
    if isinstance(embedding, EndpointEmbedding) and not embedding.endpoint.is_local:
        text = f"{embedding.endpoint.host} is sent what is searched for in the documentation (as embedding)"
        record.emit(events.Warned(text=text))
    planner: Planner = BuiltinPlanner()
    coder: Coder = BuiltinCoder()
    searches = bool(models) and settings.docs.retrieval
    documentation = Documentation(settings.docs, record, embedding) if searches else None
    if model := models.get("planner"):
        planner = ModelPlanner(model, record, settings.goal.min_coverage, documentation)
    if model := models.get("coder"):
        asked = ModelCoder(model, record, documentation)
        coder = WarmStart(coder, asked) if settings.session.warm_start else asked
    adviser: Adviser = BuiltinAdviser()
    if model := models.get("verifier"):
        adviser = ModelAdviser(model, record, documentation)
    return Cast(planner, coder, adviser, documentation)


def _announce(models: Iterable["ChatModel"], record: Record) -> None:
    """Name the hosts outside this machine, and what goes there, before anything does."""
    hosts: dict[str, list[str]] = {}
    for model in models:
        if not model.endpoint.is_local:
            hosts.setdefault(model.endpoint.host, []).append(model.role)
    for host, roles in hosts.items():
        text = (
            f"{host} is sent the reference's source, its graph with times, and the kernels "
            f"(as {', '.join(roles)})"
        )
        record.emit(events.Warned(text=text))
