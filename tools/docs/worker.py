"""The docs worker: ``python -m stitch_tui.tools.docs.worker FD``.  It alone imports LanceDB.

One JSON object a line over the socket FD, both ways, as between engine and judge: a request is
``{"id", "method", "params"}``; the answer ``{"id", "result"}`` or ``{"id", "error"}``; progress in between
is ``{"id", "event", "data"}``.  It ends when the other end is closed.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.index import Emit, Index, everything
from stitch_tui.tools.errors import EnvironmentFault, StitchError, UsageError
from stitch_tui.tools.paths import cache_dir
from stitch_tui.tools.toolkit import include_folders

Json = dict[str, Any]


def build(index: Index, params: Json, emit: Emit) -> Json:
    """Bring the index up to date: with the headers in ``folders``, else with all that are installed."""
    named = params.get("folders")
    folders = map(Path, named) if named else asyncio.run(include_folders(params.get("python", "")))
    return index.build(everything(folders), emit, anew=bool(params.get("anew")))


def search(index: Index, params: Json, emit: Emit) -> list[Json]:
    return index.search(
        params["query"],
        limit=params["limit"],
        library=params.get("library", ""),
        version=params.get("version", ""),
    )


def add(index: Index, params: Json, emit: Emit) -> Json:
    """Remember a path and index it; where nothing is indexed yet, all the rest too."""
    added = sources.checked(Path(params["path"]), params.get("library", ""), params.get("version", ""))
    sources.remember([*(one for one in sources.added_paths() if one.path != added.path), added])
    if not index.exists():
        return {"source": added.path, **build(index, params, emit)}
    return {"source": added.path, **index.build(sources.of_added(added), emit, source=added.path)}


def remove(index: Index, params: Json, emit: Emit) -> Json:
    """Forget an added path and take its chunks out.

    Raises:
        UsageError: nothing of that name was added.
    """
    known = sources.added_paths()
    path = str(Path(params["path"]).resolve())
    kept = [one for one in known if one.path not in (path, params["path"])]
    if len(kept) == len(known):
        there = ", ".join(one.path for one in known) or "nothing was added"
        raise UsageError("that was not added", where=params["path"], advice=there)
    sources.remember(kept)
    return {"source": path, "chunks": index.remove(path) if index.exists() else 0}


METHODS: dict[str, Callable[[Index, Json, Emit], Any]] = {
    "build": build,
    "search": search,
    "add": add,
    "remove": remove,
    "list": lambda index, params, emit: index.listing(),
    "stats": lambda index, params, emit: index.stats(),
}


def main() -> int:
    connection = socket.socket(fileno=int(sys.argv[1]))
    os.nice(5)  # a build takes a core for a while, and a measurement may run beside it
    index = Index(cache_dir("docs"))
    stream = connection.makefile("rwb")

    def send(message: Json) -> None:
        stream.write(json.dumps(message).encode() + b"\n")
        stream.flush()

    send({"event": "ready", "data": {"pid": os.getpid()}})
    for line in stream:
        send(_answered(index, json.loads(line), send))
    return 0


def _answered(index: Index, request: Json, send: Callable[[Json], None]) -> Json:
    number = request["id"]

    def emit(event: str, data: Json) -> None:
        send({"id": number, "event": event, "data": data})

    try:
        return {"id": number, "result": METHODS[request["method"]](index, request["params"], emit)}
    except StitchError as error:
        return {"id": number, "error": _described(error)}
    except Exception as fault:
        why = f"{type(fault).__name__}: {fault}".partition("\n")[0][:300]
        return {"id": number, "error": _described(EnvironmentFault("the docs worker failed", why=why))}


def _described(error: StitchError) -> Json:
    kind = type(error).__name__
    return {"kind": kind, "what": error.what, "where": error.where, "why": error.why, "advice": error.advice}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BrokenPipeError, ConnectionResetError):  # the other end is gone
        sys.exit(0)
