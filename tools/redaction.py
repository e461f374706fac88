"""Secrets of this process, kept out of everything that is shown, written down or passed on.

Whoever reads a secret from its place calls `hide`; whatever leaves the process (journal, commits, logs,
errors, environments of workers) goes through `redacted`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from stitch_tui.tools.json_texts import with_texts

MASK = "[redacted]"
SHORTEST = 8
"""Characters; what is shorter is a placeholder such as ``none``, and would be found in ordinary words."""

_hidden: dict[str, None] = {}


def hide(secret: str) -> None:
    """From now on `secret` is replaced wherever `redacted` looks."""
    if len(secret) >= SHORTEST:
        _hidden.update(dict.fromkeys((secret, json.dumps(secret)[1:-1])))


def redacted(text: str) -> str:
    """`text` with every hidden secret replaced."""
    for secret in sorted(_hidden, key=len, reverse=True):  # one may be the beginning of another
        text = text.replace(secret, MASK)
    return text


def redacted_data(data: Any) -> Any:
    """JSON-like data with every hidden secret replaced in its texts; keys too."""
    return with_texts(data, redacted) if _hidden else data


def has_secrets() -> bool:
    """Is there anything to hide?"""
    return bool(_hidden)


def holds_secret(text: str) -> bool:
    """Does `text` hold a hidden secret?"""
    return any(secret in text for secret in _hidden)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables whose values hold no hidden secret, whatever they are called."""
    return {name: value for name, value in environment.items() if not holds_secret(value)}


class Redactor:
    """Redacts text that arrives in pieces: a secret may be split between two of them."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What may be shown so far; the beginning of what may become a secret is held back."""
        text = redacted(self._held + piece)
        keep = max((_overlap(text, secret) for secret in _hidden), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def end(self) -> str:
        """The rest."""
        rest, self._held = self._held, ""
        return rest


def _overlap(text: str, secret: str) -> int:
    """Length of the longest end of `text` that `secret` begins with."""
    for length in range(min(len(text), len(secret) - 1), 0, -1):
        if secret.startswith(text[-length:]):
            return length
    return 0


_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|AUTH", re.IGNORECASE)


def hide_headers(headers: Mapping[str, str]) -> None:
    """Hide the values of request headers that sound like secrets, and the parts of ``Bearer VALUE``."""
    for name, value in headers.items():
        if _SECRET_NAME.search(name):
            for part in (value, *value.split(" ")):
                hide(part)


def hide_userinfo(url: str) -> None:
    """Hide the password in a URL such as ``http://user:password@proxy``."""
    if match := re.match(r"[^/]+//[^/@]*:([^/@]+)@", url):
        hide(match[1])
