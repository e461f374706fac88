"""What a documented name is for in everyday words: a person who does not know CUDA's finds it by these."""

import re
import tomllib
from functools import cache
from pathlib import Path

from stitch_tui.tools.docs.words import stems

TABLE = Path(__file__).with_name("everyday.toml")
_VARIANT = re.compile(r"(?:_(?:v\d|64|ptsz|ptds))+$")
_DRIVER = re.compile(r"^cu(?=[A-Z])")


def call_of(name: str) -> str:
    """The call that a name is a variant of: ``cuStreamQuery_ptsz`` is the runtime's ``cudaStreamQuery``."""
    return _DRIVER.sub("cuda", _VARIANT.sub("", name))


def everyday_text(name: str) -> str:
    """What is said of a name, or of the call that it is a variant of; empty when nothing is."""
    return _table().get(call_of(name), "")


def everyday_words(name: str) -> str:
    """The stems of `everyday_text`, each once."""
    return " ".join(dict.fromkeys(stems(everyday_text(name))))


@cache
def _table() -> dict[str, str]:
    said: dict[str, list[str]] = {}
    for names, text in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        for name in names.split("; "):
            said.setdefault(call_of(name), []).append(text)
    return {name: "; ".join(dict.fromkeys(texts)) for name, texts in said.items()}
