"""Fetch one page because a person asked for it.  Nothing else here uses a network, and agents never do."""

import hashlib
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from stitch_tui.tools.atomic_write import replace_file, writing
from stitch_tui.tools.docs.sources import LARGEST_BYTES, PAGE_KINDS
from stitch_tui.tools.errors import EnvironmentFault, UsageError

SCHEMES = ("http", "https")
LONGEST_S = 60.0
SILENCE_S = 15.0
MOST_REDIRECTS = 5
_PIECE = 1 << 16
_KINDS = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "application/pdf": ".pdf",
}


def fetched(url: str, folder: Path, clock: Callable[[], float] = time.monotonic) -> Path:
    """The page at a URL as a file below `folder`; text of another encoding becomes UTF-8.

    At most `LARGEST_BYTES` in `LONGEST_S` seconds, over http or https alone, and never from https to http.

    Raises:
        UsageError: the URL or what lies there is of no kind that can be read.
        EnvironmentFault: it cannot be fetched or kept.
    """
    _require_address(url)
    until = clock() + LONGEST_S
    opener = urllib.request.build_opener(_Redirects())
    asked = urllib.request.Request(url, headers={"User-Agent": "stitch docs add"})
    try:
        with opener.open(asked, timeout=SILENCE_S) as answer:
            kind = _kind(url, answer.headers)
            data = _read(answer, url, until, clock)
            charset = answer.headers.get_content_charset("utf-8")
    except urllib.error.HTTPError as error:
        raise EnvironmentFault(
            "the page cannot be fetched", where=url, why=f"{error.code} {error.reason}"
        ) from error
    except (OSError, HTTPException, ValueError) as error:
        why = str(getattr(error, "reason", "") or error)
        raise EnvironmentFault("the page cannot be fetched", where=url, why=why) from error
    path = folder / f"{_slug(url)}{kind}"
    with writing(path, "the fetched page cannot be kept"):
        replace_file(path, data if kind == ".pdf" else _utf8(data, charset))
    return path


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A few, and to addresses that could have been asked for."""

    max_redirections = MOST_REDIRECTS

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        _require_address(newurl)
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
            raise UsageError("it leads from https to http", where=newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def _require_address(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise UsageError("only http and https URLs are fetched", where=url)
    if parts.username or parts.password:
        raise UsageError("a URL with a name or password is not fetched", where=parts.hostname)


def _kind(url: str, headers: Message) -> str:
    """The ending that tells what it is: the address's own for plain text and unknown bytes."""
    said = headers.get_content_type()
    own = Path(urlsplit(url).path).suffix.lower()
    if said in ("text/plain", "application/octet-stream", "text/x-rst") and own in PAGE_KINDS:
        return own
    if said not in _KINDS:
        kinds = ", ".join(sorted(_KINDS))
        raise UsageError(f"{said} is not read", where=url, advice=f"what is read: {kinds}")
    return _KINDS[said]


def _read(answer: HTTPResponse, url: str, until: float, clock: Callable[[], float]) -> bytes:
    pieces, size = list[bytes](), 0
    while piece := answer.read1(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST_BYTES:
            raise EnvironmentFault("the page is too large", where=url, why=f"over {LARGEST_BYTES:,} bytes")
        if clock() > until:
            raise EnvironmentFault("the page takes too long", where=url, why=f"over {LONGEST_S:g} s")
    return b"".join(pieces)


def _utf8(data: bytes, charset: str) -> bytes:
    try:
        return data.decode(charset, errors="replace").encode()
    except LookupError:
        return data


def _slug(url: str) -> str:
    """A file name that tells where it is from; of two addresses never the same."""
    parts = urlsplit(url)
    shown = re.sub(r"[^A-Za-z0-9]+", "-", f"{parts.hostname}{Path(parts.path).with_suffix('')}").strip("-")
    return f"{shown[:80]}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
