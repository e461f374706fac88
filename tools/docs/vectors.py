"""Dense vectors as a second opinion: what makes them, and what of a chunk they are made of."""

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from stitch_tui.tools.errors import EnvironmentFault

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_+")


LARGEST = 3.4e38
"""Of what 32 bits hold; NaN compares as no number."""


class NoVectors(EnvironmentFault):
    """The model of vectors cannot be asked."""


class Embedder(Protocol):
    """Makes vectors of texts."""

    @property
    def name(self) -> str:
        """The model: vectors of two names cannot be compared."""
        ...

    def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """One for each text, all of one length.

        Raises:
            NoVectors: there are none to be had.
        """
        ...


def vectors_of(embedder: Embedder, texts: Sequence[str], length: int = 0) -> list[list[float]]:
    """One vector for each text, of finite numbers that the store can hold.

    Args:
        length: numbers of a vector; 0: as many as the first one has.

    Raises:
        NoVectors: there are none to be had, or what there is are no such vectors.
    """
    found = embedder.vectors(texts)
    length = length or len(found[0])
    for vector in found:
        if len(vector) != length:
            why = f"one has {len(vector)} numbers, and {length} are expected"
        elif not all(isinstance(value, int | float) and abs(value) <= LARGEST for value in vector):
            why = "one holds what is no number of 32 bits"
        else:
            continue
        advice = "choose another model, or make the index anew: stitch docs build --rebuild"
        raise NoVectors("the vectors cannot be used", where=embedder.name, why=why, advice=advice)
    return found


class OfflineModel:
    """WordLlama's static vectors of 256 numbers: the model lies in its package, and no network is used."""

    name = "wordllama l2_supercat 256"

    def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        import numpy

        made = numpy.nan_to_num(self._model.embed(list(texts), norm=True))  # of no words there is no mean
        found: list[list[float]] = made.tolist()
        return found

    @cached_property
    def _model(self) -> Any:
        try:
            import wordllama
        except ImportError as error:
            raise NoVectors(
                "the offline model of vectors is not installed",
                where="models.embedding.provider = offline",
                why=str(error),
                advice="pip install 'stitch-tui[docs]'",
            ) from error
        # named as the cache too: the package looks for its own tokenizer there alone
        folder = Path(wordllama.__file__).parent
        return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


def described(name: str, said: str, everyday: str) -> str:
    """What a chunk's vector is made of: its name in words, what it says in brief, and in everyday words."""
    return ". ".join(filter(None, (" ".join(_CAMEL.split(name)).strip(), said, everyday)))
