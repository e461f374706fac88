"""A real HTTP server that speaks the chat-completions protocol from a script, faults included.

``with OpenAIServer(script) as server``: `script` is a list of replies, taken in order (the last one
repeats), or a function of the request and its number.  Requests are kept in `server.requests`.
"""

import json
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 34,
    "total_tokens": 154,
    "completion_tokens_details": {"reasoning_tokens": 5},
    "prompt_tokens_details": {"cached_tokens": 7},
}


@dataclass(frozen=True)
class Reply:
    """What the server does with one request; by default it streams `text`."""

    text: str = ""
    reasoning: str = ""
    finish: str = "stop"
    pieces: int = 4
    """Chunks that the text arrives in."""
    usage: dict[str, Any] | None = field(default_factory=lambda: dict(USAGE))
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Sent as it is instead of a stream."""
    content_type: str = "application/json"
    end: Literal["", "closed", "broken", "stalled", "error", "garbage", "no choices", "bad utf-8"] = ""
    """How a stream ends when not well: after half of the text."""
    prefers_tools: bool = True
    """Answers through the tool when the request forces one."""
    calls: bool = False
    """The text is what the tool is called with, where the request lets the model choose."""


def error(status: int, message: str, code: str = "", **headers: str) -> Reply:
    """An error as OpenAI-compatible servers send them."""
    body = {"error": {"message": message, "type": "invalid_request_error", "code": code or None}}
    dashed = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, body=json.dumps(body).encode(), headers=dashed)


Script = Sequence[Reply] | Callable[[dict[str, Any], int], Reply]


class OpenAIServer:
    """The server; `url` is what ``base_url`` is set to."""

    def __init__(self, script: Script, *, models: Sequence[str] = ("tiny",), certificate: Path | None = None):
        self._script, self._models = script, models
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
            self._scheme = "https"

    @property
    def url(self) -> str:
        host = "localhost" if self._scheme == "https" else "127.0.0.1"
        return f"{self._scheme}://{host}:{self._http.server_address[1]}/v1"

    def __enter__(self) -> "OpenAIServer":
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()

    def answer_to(self, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
            self.headers.append(headers)
            if callable(self._script):
                return self._script(request, number)
            return self._script[min(number, len(self._script) - 1)]

    def wait(self) -> None:
        """Until the server is closed."""
        self._closing.wait(60)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                data = [{"id": name, "object": "model"} for name in server._models]
                _send(self, Reply(body=json.dumps({"object": "list", "data": data}).encode()))

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                request = json.loads(self.rfile.read(length))
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = server.answer_to(request, headers)
                with suppress(BrokenPipeError, ConnectionResetError):  # of a client that was cancelled
                    _send(self, reply) if reply.body is not None else _stream(self, server, request, reply)

        return Handler


def _send(to: BaseHTTPRequestHandler, reply: Reply) -> None:
    assert reply.body is not None
    to.send_response(reply.status)
    to.send_header("content-type", reply.content_type)
    to.send_header("content-length", str(len(reply.body)))
    for name, value in reply.headers.items():
        to.send_header(name, value)
    to.end_headers()
    to.wfile.write(reply.body)


def _stream(to: BaseHTTPRequestHandler, server: OpenAIServer, request: dict[str, Any], reply: Reply) -> None:
    to.send_response(200)
    to.send_header("content-type", "text/event-stream")
    if reply.end == "broken":
        to.send_header("content-length", "1000000")
    to.end_headers()
    if reply.end == "no choices":
        _event(to, {"choices": []})
        _event(to, "[DONE]")
        return
    if reply.reasoning:
        _event(to, _chunk(request, {"reasoning_content": reply.reasoning}))
    pieces = _pieces(reply.text, reply.pieces)
    for piece in pieces[: len(pieces) // 2] if reply.end else pieces:
        _event(to, _chunk(request, _delta(request, reply, piece)))
    if reply.end:
        _end_badly(to, server, reply)
        return
    _event(to, _chunk(request, {}, reply.finish))
    if reply.usage and request.get("stream_options", {}).get("include_usage"):
        _event(to, {**_chunk(request, {}), "choices": [], "usage": reply.usage})
    _event(to, "[DONE]")


def _end_badly(to: BaseHTTPRequestHandler, server: OpenAIServer, reply: Reply) -> None:
    if reply.end == "stalled":
        server.wait()
    elif reply.end == "error":
        _event(to, {"error": {"message": "the model crashed", "type": "server_error"}})
    elif reply.end == "garbage":
        _event(to, '{"choices": [')
    elif reply.end == "bad utf-8":
        to.wfile.write(b'data: {"choices": [{"delta": {"content": "\xff\xfe"}}]}\n\n')


def _delta(request: dict[str, Any], reply: Reply, piece: str) -> dict[str, Any]:
    is_forced = request.get("tool_choice") not in (None, "auto")
    if "tools" in request and (reply.prefers_tools if is_forced else reply.calls):
        name = request["tools"][0]["function"]["name"]
        return {"tool_calls": [{"index": 0, "id": "c", "function": {"name": name, "arguments": piece}}]}
    return {"content": piece}


def _chunk(request: dict[str, Any], delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    common = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": request["model"]}
    return {**common, "choices": [choice]}


def _event(to: BaseHTTPRequestHandler, data: dict[str, Any] | str) -> None:
    text = data if isinstance(data, str) else json.dumps(data)
    to.wfile.write(f"data: {text}\n\n".encode())
    to.wfile.flush()


def _pieces(text: str, number: int) -> list[str]:
    size = max(-(-len(text) // number), 1)
    return [text[at : at + size] for at in range(0, len(text), size)]
