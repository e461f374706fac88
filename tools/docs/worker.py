"""The docs worker: ``python -m stitch_tui.tools.docs.worker FD``.  It alone imports LanceDB.

One JSON object a line over the socket FD, both ways, as between engine and judge: a request is
``{"id", "method", "params", "embedding"}``; the answer ``{"id", "result"}`` or ``{"id", "error"}``; progress
in between is ``{"id", "event", "data"}``.  The event ``embed`` asks the other end for vectors of ``texts``;
its answer is ``{"vectors"}`` or ``{"error"}``.  The worker ends when the other end is closed.
"""

import asyncio
import json
import os
import re
import select
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.index import Emit, Index, everything
from stitch_tui.tools.docs.vectors import Embedder, NoVectors, OfflineModel, vectors_of
from stitch_tui.tools.errors import EnvironmentFault, StitchError, UsageError
from stitch_tui.tools.paths import cache_dir
from stitch_tui.tools.toolkit import include_folders

Json = dict[str, Any]


@dataclass(frozen=True)
class Desk:
    """What a request may use."""

    index: Index
    emit: Emit
    embedder: Embedder | None


class Asked:
    """A model of vectors that the other end asks for us: this process uses no network and knows no key."""

    def __init__(self, name: str, exchange: Callable[[Json], Json]) -> None:
        self.name, self._exchange = name, exchange

    def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        answer = self._exchange({"texts": list(texts)})
        if why := answer.get("error"):
            raise NoVectors("there are no vectors to be had", where=self.name, why=why)
        found: list[list[float]] = answer["vectors"]
        return found


def build(desk: Desk, params: Json) -> Json:
    """Bring the index up to date: with the headers in ``folders``, else with all that are installed."""
    named = params.get("folders")
    folders = map(Path, named) if named else asyncio.run(include_folders(params.get("python", "")))
    files = everything(folders)
    built = desk.index.build(files, desk.emit, anew=bool(params.get("anew")), embedder=desk.embedder)
    gone = [added for added in sources.added_paths() if not Path(added.path).exists()]
    told = [f"{added.source}: it is gone; to forget it: stitch docs remove" for added in gone]
    return {**built, "unread": [*built["unread"], *told]}


def search(desk: Desk, params: Json) -> list[Json]:
    """The best passages; where vectors fail, those that words alone find, and that is said."""
    asked = {name: params.get(name, "") for name in ("library", "version")} | {"limit": params["limit"]}
    if desk.embedder is not None:
        try:
            if desk.index.is_made_with(desk.embedder):
                return desk.index.search(params["query"], embedder=desk.embedder, **asked)
            why = f"the index holds no vectors of {desk.embedder.name}: run `stitch docs build`"
        except NoVectors as fault:
            why = str(fault)
        desk.emit("warning", {"text": f"searched by words alone: {why}"})
    return desk.index.search(params["query"], **asked)


def add(desk: Desk, params: Json) -> Json:
    """Remember a path and index it; where nothing is indexed yet, or otherwise, all the rest too.

    Of what cannot be indexed nothing is remembered: it would stand in the way of every other build.
    """
    about = [str(params.get(name, "")) for name in ("library", "version", "url")]
    added = sources.checked(Path(params["path"]), *about)
    before = sources.added_paths()
    sources.remember([*(one for one in before if one.source != added.source), added])
    try:
        if not desk.index.is_made_with(desk.embedder):
            return {"source": added.source, **build(desk, params)}
        files = sources.of_added(added)
        built = desk.index.build(files, desk.emit, source=added.source, embedder=desk.embedder)
        _require_text(added, built)
        return {"source": added.source, **built}
    except Exception:
        sources.remember(before)
        raise


def _require_text(added: sources.Added, built: Json) -> None:
    """See that a single file that was added came into the index; of a folder some may not.

    Raises:
        UsageError: it did not.
    """
    if not Path(added.path).is_file():
        return
    if built["unread"]:
        raise UsageError("it cannot be indexed", why=built["unread"][0])
    if built["read"] and not built["chunks"]:
        raise UsageError("there is no text in it", where=added.source)


def remove(desk: Desk, params: Json) -> Json:
    """Forget an added path or URL and take its chunks out.

    Raises:
        UsageError: nothing of that name was added.
    """
    known = sources.added_paths()
    names = (os.path.realpath(params["path"]), params["path"])
    gone = next((one for one in known if one.source in names), None)
    if gone is None:
        there = ", ".join(one.source for one in known) or "nothing was added"
        raise UsageError("that was not added", where=params["path"], advice=there)
    sources.remember([one for one in known if one != gone])
    if gone.url:
        Path(gone.path).unlink(missing_ok=True)
    source = gone.source
    return {"source": source, "chunks": desk.index.remove(source) if desk.index.exists() else 0}


def dimension(desk: Desk, params: Json) -> int:
    """How many numbers the vector of a text has; 0 without a model of vectors.

    Raises:
        NoVectors: it cannot be asked.
    """
    if desk.embedder is None:
        return 0
    (vector,) = vectors_of(desk.embedder, [params["text"]])
    return len(vector)


def at(desk: Desk, params: Json) -> Json | None:
    """The passage at ``FILE:LINE`` or ``FILE:LINE#ANCHOR``, where a citation said that it is."""
    found = re.fullmatch(r"(.*?):(\d+)(?:#(.*))?", params["place"], re.DOTALL)
    return desk.index.at(found[1], int(found[2]), found[3] or "") if found else None


METHODS: dict[str, Callable[[Desk, Json], Any]] = {
    "build": build,
    "search": search,
    "at": at,
    "dimension": dimension,
    "add": add,
    "remove": remove,
    "list": lambda desk, _: desk.index.listing(),
    "stats": lambda desk, _: desk.index.stats(),
}


def _end_with(connection: socket.socket) -> None:
    """End this process, and give up the lock of a build, when the other end is closed; what is on the disk
    stays as it was."""
    watched = select.poll()
    watched.register(connection, select.POLLRDHUP)
    watched.poll()
    os._exit(0)


def main() -> int:
    connection = socket.socket(fileno=int(sys.argv[1]))
    Thread(target=_end_with, args=(connection,), daemon=True).start()
    os.nice(5)  # a build takes a core for a while, and a measurement may run beside it
    index = Index(cache_dir("docs"))
    stream = connection.makefile("rwb")

    def send(message: Json) -> None:
        stream.write(json.dumps(message).encode() + b"\n")
        stream.flush()

    def exchange(data: Json) -> Json:
        send({"event": "embed", "data": data})
        answer: Json = json.loads(stream.readline())
        return answer

    offline = OfflineModel()
    send({"event": "ready", "data": {"pid": os.getpid()}})
    for line in stream:
        request = json.loads(line)
        kind, name = request["embedding"]
        embedders: dict[str, Embedder] = {"offline": offline, "asked": Asked(name, exchange)}
        send(_answered(index, request, send, embedders.get(kind)))
    return 0


def _answered(index: Index, request: Json, send: Callable[[Json], None], embedder: Embedder | None) -> Json:
    number = request["id"]

    def emit(event: str, data: Json) -> None:
        send({"id": number, "event": event, "data": data})

    desk = Desk(index, emit, embedder)
    try:
        return {"id": number, "result": METHODS[request["method"]](desk, request["params"])}
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
