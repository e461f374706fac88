"""``stitch serve``: the same screens in a browser, for whoever has the token.

Everything is refused that does not carry the token, as a cookie which the first page sets, or that names
another host: a page from elsewhere reaches neither the screens nor their websocket.
"""

import hmac
import secrets
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.server import Server

from stitch_tui.tools.own_process import STITCH

COOKIE = "stitch"
LOCAL = ("127.0.0.1", "localhost")
"""Names of one and the same loopback."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""The page asks nobody else for anything, and stands in no frame."""
PAGE = Path(__file__).resolve().parent / "web"
"""The folder of the page's template."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Guarded(Server):
    """One viewer process for each page that is open; closing the page ends it and leaves the run alone.

    Args:
        host: where to listen, and the only host that requests may name; a name or address, no wildcard.
        token: who has it may steer the runs of this folder; empty: a new one.
    """

    def __init__(self, host: str, port: int, token: str = "") -> None:
        command = shlex.join(STITCH)
        named = _named(host, port)
        super().__init__(
            command, host=host, port=port, title="stitch", public_url=f"http://{named}", templates_path=PAGE
        )
        self.token = token or secrets.token_urlsafe(24)
        self._hosts = {_named(name, port) for name in LOCAL} if host in LOCAL else {named}

    @property
    def url(self) -> str:
        """What to open in a browser."""
        return f"{self.public_url}/?token={self.token}"

    def initialize_logging(self) -> None:
        """Nothing: requests carry the token."""

    async def on_startup(self, app: web.Application) -> None:
        print(f"open {self.url}\nCtrl+C ends the serving; runs go on", flush=True)

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard)
        app.on_response_prepare.append(_with_headers)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin", "")
        if request.host not in self._hosts or (origin and urlsplit(origin).netloc not in self._hosts):
            raise web.HTTPForbidden(text="another host")
        if request.path == "/" and self._is_token(request.query.get("token", "")):
            response = web.HTTPFound("/")
            response.set_cookie(COOKIE, self.token, httponly=True, samesite="Strict")
            raise response
        if not self._is_token(request.cookies.get(COOKIE, "")):
            raise web.HTTPForbidden(text="open the address that `stitch serve` printed")
        return await handler(request)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def _named(host: str, port: int) -> str:
    """Host and port as browsers name them in a request."""
    name = f"[{host}]" if ":" in host else host
    return name if port == 80 else f"{name}:{port}"


async def _with_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
