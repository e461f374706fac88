"""``stitch docs``: the index of the CUDA documentation that lies on this machine."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from stitch_tui.commands.output import Json, say, say_json, table
from stitch_tui.plain_text import count, printable
from stitch_tui.tools.errors import StitchError, UsageError

if TYPE_CHECKING:
    from stitch_tui.agents.settings import Settings
    from stitch_tui.tools.docs.client import Embedding

docs = typer.Typer(
    help="Index and search the CUDA documentation on this machine.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)
Library = Annotated[
    str, typer.Option(help="Only of this library, such as cublaslt; stitch docs list names them.")
]
Version = Annotated[str, typer.Option(help="Only of this version.")]
EXCERPT = 400
"""Characters of a passage that are printed."""


@docs.command(epilog="Example: stitch docs build")
def build(
    rebuild: Annotated[bool, typer.Option(help="Make the index anew, whatever is there.")] = False,
    json: Json = False,
) -> None:
    """Index the toolkit's headers, stitch's notes, past sessions and what you added; only news is read."""
    _write_past_sessions()
    built = _call("build", {"anew": rebuild, "python": _python()}, build=True)
    _report(built, json)


@docs.command(epilog="Example: stitch docs add ptx-isa.html --library ptx --version 9.0")
def add(
    path: Annotated[
        str,
        typer.Argument(metavar="PATH|URL", help="Text, Markdown, HTML, PDF, C++ headers; or their folder."),
    ],
    library: Annotated[str, typer.Option(help="What it documents; default: the file's name.")] = "",
    version: Annotated[str, typer.Option(help="Version that it documents.")] = "",
    json: Json = False,
) -> None:
    """Add a file, a folder or a page to the index; it is looked at again with every build.

    A URL is fetched now and never again, unless you add it again.
    """
    if not path:
        raise UsageError("name a file, a folder or a URL")
    url = path if "://" in path else ""
    if url:
        from stitch_tui.tools.docs.fetch import fetched
        from stitch_tui.tools.paths import state_dir

        path = str(fetched(url, state_dir("docs", "fetched")))
    asked = {"path": str(Path(path).absolute()), "url": url, "python": _python()}
    _report(_call("add", asked | {"library": library, "version": version}, build=True), json)


@docs.command(epilog='Example: stitch docs search "allocate page-locked memory" --library runtime')
def search(
    query: str,
    library: Library = "",
    version: Version = "",
    limit: Annotated[int, typer.Option(min=1, max=50, help="Most passages.")] = 5,
    json: Json = False,
) -> int:
    """Print the passages that answer a query, best first, each with the place that it comes from."""
    asked = {"query": query, "limit": limit, "library": library, "version": version}
    found = _call("search", asked)
    if json:
        say_json(found)
        return 0 if found else 1
    for number, passage in enumerate(found, 1):
        about = " ".join(filter(None, (passage["library"], passage["version"])))
        say(f"{number}. {passage['name']}  ({about})")
        say(
            f"   {passage['file']}:{passage['line']}" + (f"#{passage['anchor']}" if passage["anchor"] else "")
        )
        text = passage["text"]
        shown = text if len(text) <= EXCERPT else f"{text[:EXCERPT].rpartition(' ')[0]} ..."
        for line in shown.splitlines():
            say(f"   | {line}")
        say()
    if not found:
        say("nothing was found")
    return 0 if found else 1


@docs.command(name="list", epilog="Example: stitch docs list --json")
def list_(json: Json = False) -> None:
    """Print what is indexed: sources, libraries and their versions."""
    rows = _call("list")
    if json:
        say_json(rows)
        return
    table(
        (
            row["library"],
            row["version"] or "-",
            f"{row['chunks']} in {count(row['files'], 'file')}",
            row["source"],
            row["licence"],
        )
        for row in rows
    )


@docs.command(epilog="Example: stitch docs remove ptx-isa.html")
def remove(
    path: Annotated[str, typer.Argument(help="A path or URL that was added, as stitch docs list shows it.")],
    json: Json = False,
) -> None:
    """Take what was added out of the index."""
    gone = _call("remove", {"path": path}, build=True)
    say_json(gone) if json else say(f"removed {gone['source']}: {count(gone['chunks'], 'chunk')}")


@docs.command(epilog="Example: stitch docs stats")
def stats(json: Json = False) -> None:
    """Print how much is indexed, how large the index is and where it lies."""
    found = _call("stats")
    if json:
        say_json(found)
        return
    table(
        [
            ("chunks", f"{found['chunks']:,} from {found['files']:,} files"),
            ("size", f"{found['bytes'] / 2**20:.1f} MiB"),
            ("longest", f"{found['limit']} tokens, {found['overlap']} overlap ({found['tokenizer']})"),
            ("vectors", found["vectors"] or "none: models.embedding"),
            ("folder", found["folder"]),
        ]
    )


def _call(method: str, params: dict[str, Any] | None = None, *, build: bool = False) -> Any:
    """What the docs worker answers, with its progress on a terminal's stderr."""
    from stitch_tui.tools.docs.client import BUILD_S, SEARCH_S, DocsWorker, NoIndex, is_indexed
    from stitch_tui.tools.paths import cache_dir

    cache_dir("docs")  # where an index has no place that is said, and not that there is none
    if not build and not is_indexed():
        raise NoIndex("nothing is indexed yet", advice="run `stitch docs build`")

    async def asked() -> Any:
        async with DocsWorker(_embedding()) as worker:
            timeout = BUILD_S if build else SEARCH_S
            return await worker.call(method, params, timeout=timeout, on_event=_progress)

    return asyncio.run(asked())


def _progress(event: str, data: dict[str, Any]) -> None:
    if event == "waiting":
        typer.echo(f"waiting for {data['for']}", err=True)
    elif event == "warning":
        typer.echo(f"warning: {printable(data['text'])}", err=True)
    elif sys.stderr.isatty():
        what = "vectors" if event == "vectors" else f"files, {data['chunks']} chunks"
        end = "\n" if data["done"] == data["of"] else ""
        typer.echo(f"\r{data['done']} of {data['of']} {what}{end}", err=True, nl=False)


def _report(built: dict[str, Any], json: bool) -> None:
    if json:
        say_json(built)
        return
    read = f"{built['read']} of {built['files']} files read" if built["read"] else "nothing has changed"
    say(f"{read}, {count(built['chunks'], 'chunk')}, {built['seconds']:g} s")
    for line in built["unread"]:
        say(f"not read: {line}")


def _write_past_sessions() -> None:
    """Pages on this project's sessions, where it has any."""
    from stitch_tui.agents import past_sessions
    from stitch_tui.tools.history import History

    settings = _settings().git
    try:
        history = History.open(Path.cwd(), prefix=settings.branch_prefix, author=settings.author)
    except StitchError:  # no repository that could hold sessions
        return
    past_sessions.write(Path.cwd(), history)


def _python() -> str:
    """The reference's interpreter, whose wheels may hold headers too."""
    return _settings().reference.python


def _embedding() -> "Embedding | Literal['offline'] | None":
    """What makes vectors; to what is no endpoint of this machine's, texts are sent, and that is said."""
    from stitch_tui.agents.embedding import EndpointEmbedding, embedding_of

    chosen = embedding_of(_settings().models.embedding)
    if isinstance(chosen, EndpointEmbedding) and not chosen.endpoint.is_local:
        typer.echo(f"{chosen.endpoint.host} is sent what is indexed and searched for, in brief", err=True)
    return chosen


def _settings() -> "Settings":
    """The settings, without those of a project file that nobody trusts: they may not be usable yet."""
    from stitch_tui.config import load

    return load(Path.cwd(), refuse=False).settings
