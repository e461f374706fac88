"""What can go wrong with a model's endpoint, as one typed error made from whatever the client raises."""

import json
import math
import re
import ssl
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from enum import StrEnum
from time import time

import openai

from stitch_tui.tools.encodable import encodable
from stitch_tui.tools.errors import EndpointError
from stitch_tui.tools.redaction import redacted

LONGEST_TEXT = 300
"""Characters of a server's own words in an error."""


class FaultKind(StrEnum):
    """Classes of failure; what a person does about each differs."""

    AUTH = "authentication"
    QUOTA = "quota"
    RATE = "rate limit"
    CONTEXT = "context length"
    FILTER = "content filter"
    MODEL = "model name"
    REQUEST = "bad request"
    NETWORK = "network"
    TLS = "tls"
    TIMEOUT = "timeout"
    SERVER = "server"
    PROTOCOL = "not an OpenAI-compatible answer"


_ADVICE = {
    FaultKind.AUTH: "set the variable that api_key_env names to a valid key",
    FaultKind.QUOTA: "the account has no credit or quota left",
    FaultKind.RATE: "wait, or choose another endpoint; then: stitch --auto --resume",
    FaultKind.CONTEXT: "set context_tokens of this role to what the model takes",
    FaultKind.FILTER: "the endpoint's filter refused; choose another model",
    FaultKind.MODEL: "`stitch doctor` lists the endpoint's models",
    FaultKind.REQUEST: "the endpoint does not take this request; `stitch doctor` makes a small one",
    FaultKind.NETWORK: "look at base_url and proxy; `stitch doctor` tries each endpoint",
    FaultKind.TLS: "set ca_bundle to the authority that signed the endpoint's certificate",
    FaultKind.TIMEOUT: "raise timeout_seconds or idle_seconds of this role",
    FaultKind.SERVER: "try again later; then: stitch --auto --resume",
    FaultKind.PROTOCOL: "look at base_url: it usually ends in /v1",
}
_UNREADABLE = (AttributeError, TypeError, LookupError, ValueError, RecursionError)
"""What a client runs into that takes for granted how an answer is built."""
_RETRYABLE = {
    FaultKind.RATE,
    FaultKind.NETWORK,
    FaultKind.TIMEOUT,
    FaultKind.SERVER,
}


class ModelFault(EndpointError):
    """The endpoint did not answer as asked.

    Args:
        why: the server's or the system's own words; redacted and shortened here.
        retry_after_s: what the server asked to wait, None when it did not say.
    """

    def __init__(
        self,
        kind: FaultKind,
        why: str,
        *,
        where: str = "",
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        text = _shortened(redacted(encodable(why)))
        what = f"{kind} failure" if kind is not FaultKind.PROTOCOL else str(kind)
        super().__init__(what, where=where, why=text, advice=_ADVICE[kind])
        self.kind, self.status, self.retry_after_s = kind, status, retry_after_s
        self.retryable = kind in _RETRYABLE


def fault_of(error: Exception, where: str) -> ModelFault:
    """The typed failure behind an exception of the client's or of the transport."""
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, where)
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return ModelFault(FaultKind.TIMEOUT, "no answer in time", where=where)
    if isinstance(error, openai.APIConnectionError):
        return _of_connection(error, where)
    if isinstance(error, openai.APIError):  # an error object inside a stream
        kind = _kind_in_words(error.message, str(error.code or error.type or "")) or FaultKind.SERVER
        return ModelFault(kind, error.message, where=where)
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return ModelFault(FaultKind.SERVER, f"malformed data in the stream: {error}", where=where)
    if isinstance(error, _UNREADABLE):
        return ModelFault(FaultKind.PROTOCOL, f"it cannot be read: {error}", where=where)
    return _of_connection(error, where)


def _of_status(error: openai.APIStatusError, where: str) -> ModelFault:
    code = str(error.code or error.type or "")
    kind = _kind_in_words(error.message, code) or _kind_of_status(error.status_code)
    if error.status_code == 429 and kind is not FaultKind.QUOTA:
        kind = FaultKind.RATE
    why = f"{error.status_code}: {_server_words(error)}"
    if error.response.is_redirect:
        why = f"{error.status_code}: it leads to {error.response.headers.get('location', 'nowhere')}"
    wait = _retry_after(error.response.headers.get("retry-after"))
    return ModelFault(kind, why, where=where, status=error.status_code, retry_after_s=wait)


def _of_connection(error: BaseException, where: str) -> ModelFault:
    chain = list(_causes(error))
    tls = next((e for e in chain if isinstance(e, ssl.SSLError) or "CERTIFICATE" in str(e).upper()), None)
    if tls is not None:
        return ModelFault(FaultKind.TLS, str(tls), where=where)
    said = next((str(e) for e in reversed(chain) if str(e)), type(error).__name__)
    return ModelFault(FaultKind.NETWORK, said, where=where)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _kind_of_status(status: int) -> FaultKind:
    if status in (401, 403):
        return FaultKind.AUTH
    if status == 402:
        return FaultKind.QUOTA
    if status in (408, 409, 425) or status >= 500:
        return FaultKind.SERVER
    return FaultKind.MODEL if status == 404 else FaultKind.REQUEST


def _kind_in_words(message: str, code: str) -> FaultKind | None:
    """What the error's code or text says more exactly than its status."""
    text = f"{code} {message}".lower()
    if "insufficient_quota" in text or "billing" in text:
        return FaultKind.QUOTA
    if re.search(r"context.{0,12}(length|size|window)|context_length|maximum context|too many tokens", text):
        return FaultKind.CONTEXT
    if "content_filter" in text or "content management policy" in text:
        return FaultKind.FILTER
    if "model_not_found" in text or re.search(r"model .{0,80}(does not exist|not found)", text):
        return FaultKind.MODEL
    return None


def _server_words(error: openai.APIStatusError) -> str:
    body = error.body
    if isinstance(body, dict):
        return str(body.get("message") or body)
    return re.sub(r"<[^>]*>", " ", str(body or error.message))


def _retry_after(value: str | None) -> float | None:
    """Seconds of a ``Retry-After`` header: a number, or a date."""
    if value is None:
        return None
    try:
        seconds = float(value)
        return None if math.isnan(seconds) else max(seconds, 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(value).timestamp() - time(), 0.0)
    except (ValueError, OverflowError, OSError):
        return None


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TEXT else f"{line[: LONGEST_TEXT - 3]}..."
