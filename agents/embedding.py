"""Vectors for the documentation index from an OpenAI-compatible endpoint, or from the offline model."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from stitch_tui.agents.settings import EmbeddingSettings
from stitch_tui.tools.docs.client import Embedding
from stitch_tui.tools.errors import StitchError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ROLE = "embedding"


def embedding_of(
    settings: EmbeddingSettings, allow: Callable[[], None] = lambda: None
) -> Embedding | Literal["offline"] | None:
    """What the settings choose: an endpoint, the model that lies in a package, or nothing.

    Args:
        allow: asked before each request; raises when a rule is against it.

    Raises:
        UsageError: the settings name no endpoint or model, or a key, proxy or CA bundle that is not there.
    """
    if settings.provider == "openai":
        return EndpointEmbedding(settings, allow)
    return "offline" if settings.provider == "offline" else None


class EndpointEmbedding:
    """The ``/embeddings`` of an endpoint."""

    def __init__(self, settings: EmbeddingSettings, allow: Callable[[], None]) -> None:
        # the client library takes half a second to import: only who has an endpoint pays for it
        from stitch_tui.agents.chat.client import endpoint_of, open_client

        self.endpoint = endpoint_of(settings, ROLE)
        self._model, self._allow = settings.model, allow
        self._client: AsyncOpenAI = open_client(settings, ROLE, self.endpoint)

    @property
    def name(self) -> str:
        """The model and where it is."""
        return f"{self._model} at {self.endpoint.url}"

    async def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text.

        Raises:
            ModelFault: the endpoint does not answer, or not with as many vectors of one length.
            StitchError: a rule is against it.
        """
        import openai

        from stitch_tui.agents.chat.faults import FaultKind, ModelFault, fault_of

        self._allow()
        where = f"models.{ROLE}: {self.name}"
        try:
            answer = await self._client.embeddings.create(
                model=self._model, input=list(texts), encoding_format="float"
            )
            found = [each.embedding for each in sorted(answer.data, key=lambda each: each.index)]
        except StitchError:
            raise
        except openai.OpenAIError as error:
            raise fault_of(error, where) from error
        except Exception as error:  # whatever a server may have sent is no answer
            raise ModelFault(FaultKind.PROTOCOL, str(error), where=where) from error
        if not all(isinstance(vector, list) and vector for vector in found) or len(found) != len(texts):
            why = f"{sum(isinstance(vector, list) for vector in found)} vectors for {len(texts)} texts"
            raise ModelFault(FaultKind.PROTOCOL, why, where=where)
        return found

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close()
