"""Fetch one page because a person asked for it.  Nothing else here uses a network, and agents never do."""

import hashlib
import ipaddress
import re
import socket
import urllib.error
import urllib.request
from email.message import Message
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO
from urllib.parse import quote, urlsplit, urlunsplit

from stitch_tui.tools.atomic_write import replace_file, writing
from stitch_tui.tools.docs.deadline import Deadline
from stitch_tui.tools.docs.sources import LARGEST_BYTES, PAGE_KINDS
from stitch_tui.tools.errors import EnvironmentFault, UsageError

SCHEMES = ("http", "https")
LONGEST_S = 60.0
SILENCE_S = 15.0
MOST_REDIRECTS = 5
_PIECE = 1 << 16
_AS_IT_IS = "%/:=&?~+!$,;'@()*[]"
"""Characters of an address that need no other writing."""
_KINDS = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "application/pdf": ".pdf",
}


def fetched(url: str, folder: Path) -> Path:
    """The page at a URL as a file below `folder`; text of another encoding becomes UTF-8.

    At most `LARGEST_BYTES` in `LONGEST_S` seconds from the first connection to the last byte, over http or
    https alone, and never from https to http.

    Raises:
        UsageError: the URL or what lies there is of no kind that can be read.
        EnvironmentFault: it cannot be fetched or kept.
    """
    address = _address(url)
    asked = urllib.request.Request(address, headers={"User-Agent": "stitch docs add"})
    with Deadline(LONGEST_S) as deadline:
        try:
            kind, data, charset = _answered(deadline, asked, url)
        except urllib.error.HTTPError as error:
            raise EnvironmentFault(
                "the page cannot be fetched", where=url, why=" ".join(f"{error.code} {error.reason}".split())
            ) from error
        except (OSError, HTTPException, ValueError) as error:
            if deadline.passed:
                raise _too_slow(url) from error
            why = " ".join(str(getattr(error, "reason", "") or error).split())
            raise EnvironmentFault("the page cannot be fetched", where=url, why=why) from error
    path = folder / f"{_slug(url)}{kind}"
    with writing(path, "the fetched page cannot be kept"):
        replace_file(path, data if kind == ".pdf" else _utf8(data, charset))
    return path


def _answered(deadline: Deadline, asked: urllib.request.Request, url: str) -> tuple[str, bytes, str]:
    """The ending that tells what a page is, its bytes, and their encoding."""
    opener = urllib.request.build_opener(_Redirects(), *deadline.handlers())
    with opener.open(asked, timeout=SILENCE_S) as answer:
        kind = _kind(url, answer.headers)
        data = _read(answer, url)
        if deadline.passed:  # whatever came is cut short
            raise _too_slow(url)
        _require_all(data, answer.headers, url)
        return kind, data, answer.headers.get_content_charset("utf-8")


def _too_slow(url: str) -> EnvironmentFault:
    return EnvironmentFault(
        "the page takes too long", where=url, why=f"over {LONGEST_S:g} s", advice="save it, and add the file"
    )


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A few, and to addresses that could have been asked for."""

    max_redirections = MOST_REDIRECTS

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        address = _address(newurl)
        if not _is_near(req.full_url) and _is_near(address):
            raise UsageError(
                "it leads to an address of this machine or its network",
                where=newurl,
                why="only a page that lies there may",
                advice="add that address itself if you trust it",
            )
        if urlsplit(req.full_url).scheme == "https" and urlsplit(address).scheme != "https":
            raise UsageError("it leads from https to http", where=newurl)
        return super().redirect_request(req, fp, code, msg, headers, address)  # type: ignore[arg-type]


def _address(url: str) -> str:
    """The URL in ASCII, as it is asked for.

    Raises:
        UsageError: it is none that is fetched.
    """
    try:
        parts = urlsplit(url)
        host, known = parts.hostname, parts.scheme in SCHEMES
        path, query = quote(parts.path, safe=_AS_IT_IS), quote(parts.query, safe=_AS_IT_IS)
        address = urlunsplit((parts.scheme, parts.netloc.encode("idna").decode(), path, query, ""))
    except ValueError as error:
        raise UsageError("that is no URL", where=url, why=str(error)) from error
    if not known or not host:
        raise UsageError("only http and https URLs are fetched", where=url)
    if parts.username or parts.password:
        raise UsageError("a URL with a name or password is not fetched", where=host)
    return address


def _is_near(url: str) -> bool:
    """Does it lie on this machine or in its network?"""
    try:
        found = socket.getaddrinfo(urlsplit(url).hostname, None)
    except OSError:  # then nothing can be fetched from there
        return False
    return not all(ipaddress.ip_address(str(row[4][0]).partition("%")[0]).is_global for row in found)


def _kind(url: str, headers: Message) -> str:
    """The ending that tells what it is: the address's own for plain text and unknown bytes."""
    if (packed := headers.get("Content-Encoding", "identity")) != "identity":
        raise EnvironmentFault("the page is packed, unasked", where=url, why=f"Content-Encoding: {packed}")
    said = headers.get_content_type()
    own = Path(urlsplit(url).path).suffix.lower()
    if said in ("text/plain", "application/octet-stream", "text/x-rst") and own in PAGE_KINDS:
        return own
    if said not in _KINDS:
        kinds = ", ".join(sorted(_KINDS))
        raise UsageError(f"{said} is not read", where=url, advice=f"what is read: {kinds}")
    return _KINDS[said]


def _read(answer: HTTPResponse, url: str) -> bytes:
    pieces, size = list[bytes](), 0
    while piece := answer.read1(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST_BYTES:
            raise EnvironmentFault("the page is too large", where=url, why=f"over {LARGEST_BYTES:,} bytes")
    return b"".join(pieces)


def _require_all(data: bytes, headers: Message, url: str) -> None:
    promised = headers.get("Content-Length", "")
    if promised.isdecimal() and len(data) < int(promised):
        raise EnvironmentFault("the page broke off", where=url, why=f"{len(data)} of {promised} bytes came")


def _utf8(data: bytes, charset: str) -> bytes:
    try:
        return data.decode(charset, errors="replace").encode()
    except (LookupError, ValueError):  # an encoding that nobody knows, or that is none of text
        return data


def _slug(url: str) -> str:
    """A file name that tells where it is from; of two addresses never the same."""
    parts = urlsplit(url)
    path = parts.path.removesuffix(Path(parts.path).suffix)
    shown = re.sub(r"[^A-Za-z0-9]+", "-", f"{parts.hostname}{path}").strip("-")
    return f"{shown[:80]}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
