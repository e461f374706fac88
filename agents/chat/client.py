"""The HTTP client of one role's endpoint: key, TLS, proxy, headers, timeouts."""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import openai
from openai import AsyncOpenAI

from stitch_tui.agents.chat.bounded import bound
from stitch_tui.agents.settings import EndpointSettings
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.redaction import hide, hide_headers, hide_userinfo

NO_KEY = "not-needed"
"""What is sent where no key is configured: local servers take anything."""
CONNECT_SECONDS, WRITE_SECONDS = 10.0, 60.0


@dataclass(frozen=True)
class Endpoint:
    """Where a role's requests go."""

    url: str
    """With /v1, without a slash at its end."""

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or self.url

    @property
    def is_local(self) -> bool:
        """Nothing that is sent there leaves this machine."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


def endpoint_of(settings: EndpointSettings, role: str) -> Endpoint:
    """The endpoint that the settings name.

    Raises:
        UsageError: they name none, or no model.
    """
    where = f"models.{role}"
    if not settings.base_url:
        raise UsageError(
            "no endpoint for this role",
            where=f"{where}.base_url",
            advice="set it, or OPENAI_BASE_URL, to a URL such as http://127.0.0.1:8080/v1",
        )
    if not settings.model:
        raise UsageError(
            "no model for this role", where=f"{where}.model", advice="`stitch doctor` lists the endpoint's"
        )
    return Endpoint(settings.base_url.rstrip("/"))


def key_of(
    settings: EndpointSettings, role: str, endpoint: Endpoint, environ: Mapping[str, str] = os.environ
) -> str:
    """The role's key, hidden from now on; empty where none is needed.

    Raises:
        UsageError: the environment does not hold the variable that the settings name.
    """
    key = environ.get(settings.api_key_env, "") if settings.api_key_env else ""
    if not key and not endpoint.is_local and settings.api_key_env:
        raise UsageError(
            "no API key",
            where=f"models.{role}.api_key_env",
            why=f"the environment has no {settings.api_key_env}",
            advice=f"export {settings.api_key_env}=..., or set api_key_env to an empty text if it needs none",
        )
    hide(key)
    return key


def open_client(
    settings: EndpointSettings, role: str, endpoint: Endpoint, environ: Mapping[str, str] = os.environ
) -> AsyncOpenAI:
    """A client that retries nothing by itself; its key and secret headers are hidden from now on.

    A proxy of the environment is not used for this machine's own servers.

    Raises:
        UsageError: the CA bundle, the proxy or the variable with the key cannot be used.
    """
    key = key_of(settings, role, endpoint, environ)
    hide_headers(settings.headers)
    hide_userinfo(settings.proxy)
    encrypted = "https" in (urlsplit(url).scheme for url in (endpoint.url, settings.proxy))
    try:
        http = openai.DefaultAsyncHttpxClient(
            verify=_tls(settings, role) if encrypted else False,
            proxy=settings.proxy or None,
            trust_env=not settings.proxy and not endpoint.is_local,
            follow_redirects=False,
            headers={"Accept-Encoding": "identity"},
            event_hooks={"response": [bound]},
        )
    except (ValueError, ImportError) as error:  # SOCKS needs a package of its own
        raise UsageError(
            "is no proxy that can be used", where=f"models.{role}.proxy", why=str(error)
        ) from None
    return AsyncOpenAI(
        api_key=key or NO_KEY,
        base_url=endpoint.url,
        http_client=http,
        max_retries=0,
        default_headers=dict(settings.headers),
        timeout=openai.Timeout(
            connect=CONNECT_SECONDS, read=settings.idle_seconds, write=WRITE_SECONDS, pool=CONNECT_SECONDS
        ),
    )


def _tls(settings: EndpointSettings, role: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=settings.ca_bundle or None)
    except OSError as error:  # ssl.SSLError among them
        raise UsageError(
            "the CA bundle cannot be used",
            where=f"models.{role}.ca_bundle",
            why=f"{settings.ca_bundle}: {error.strerror or error}",
        ) from error
