"""One deadline for all of a web request: a server that sends a byte now and then cannot move it.

A time limit of a socket begins anew with every byte.  So a timer cuts the connection, in the midst of a
handshake, of headers or of a body; whoever reads from it finds it closed.
"""

import contextlib
import socket
import urllib.request
from collections.abc import Sequence
from functools import partial
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from threading import Lock, Timer
from typing import Any, Self


class Deadline:
    """A context manager; the connections of its handlers are cut `seconds` after it was entered."""

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._lock = Lock()
        self._open = list[socket.socket]()
        self._timer = Timer(seconds, self._pass)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            for connection in self._open:
                connection.close()
            self._open.clear()

    def handlers(self) -> Sequence[urllib.request.BaseHandler]:
        """What an opener of urllib's makes connections by."""
        return _Http(self), _Https(self)

    def watch(self, connection: socket.socket) -> None:
        """Cut this connection, too, when the time has come; at once when it has."""
        twin = connection.dup()  # TLS takes the first one's descriptor over
        with self._lock:
            self._open.append(twin)
            if self.passed:
                _cut(twin)

    def _pass(self) -> None:
        with self._lock:
            self.passed = True
            for connection in self._open:
                _cut(connection)


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other end was quicker
        connection.shutdown(socket.SHUT_RDWR)


class _Watched(HTTPConnection):
    deadline: Deadline

    def connect(self) -> None:
        super().connect()
        self.deadline.watch(self.sock)


class _WatchedTLS(HTTPSConnection, _Watched):
    """Watched from before the handshake: `HTTPSConnection.connect` calls `_Watched.connect` ahead of it."""


class _Http(urllib.request.HTTPHandler):
    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_watched, _Watched, self._deadline), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_watched, _WatchedTLS, self._deadline), req)


def _watched(kind: type[_Watched], deadline: Deadline, host: str, **options: Any) -> _Watched:
    connection = kind(host, **options)
    connection.deadline = deadline
    return connection
