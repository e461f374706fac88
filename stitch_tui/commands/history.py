"""``stitch log``, ``show``, ``diff``, ``best``, ``restore``, ``apply``, ``export`` and ``sessions``.

They read git alone, so they work on a clone that never ran stitch; ``sessions prune`` takes `.stitch/` along.
"""

import json as json_text
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stitch_tui.commands.output import Json, say, say_json, table

if TYPE_CHECKING:
    from stitch_tui.tools.history import Commit, History

NAMES = "Its number, `best`, `last`, or the beginning of a commit's name."
Session = Annotated[
    str | None, typer.Option("--session", metavar="NAME", help="Default: the latest session.")
]
Number = Annotated[str, typer.Argument(metavar="N", help=NAMES)]
Best = Annotated[str, typer.Argument(metavar="[N]", help=f"{NAMES} Default: best.")]

sessions = typer.Typer(
    help="List sessions and remove old ones.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


def log(session: Session = None, json: Json = False) -> None:
    """Print a session's iterations, oldest first."""
    commits = _history().log(session)
    if json:
        say_json([_data(commit) for commit in commits])
    else:
        for commit in commits:
            say(_line(commit))


def show(number: Number, session: Session = None, json: Json = False) -> None:
    """Print one iteration: message, files, changes."""
    shown = _history().show(number, session)
    if json:
        say_json(_data(shown.commit) | {"files": shown.files, "diff": shown.diff})
        return
    say(f"commit {shown.commit.sha}\n{shown.commit.author}, {shown.commit.time:%Y-%m-%d %H:%M %z}\n")
    say(f"{shown.message.rstrip()}\n")
    say("\n".join(f"  stitched/{name}" for name in shown.files))
    say(f"\n{shown.diff}")


def diff(
    first: Annotated[str, typer.Argument(metavar="A", help=NAMES)],
    second: Annotated[str | None, typer.Argument(metavar="[B]", help="Default: what A changed.")] = None,
    session: Session = None,
    json: Json = False,
) -> None:
    """Print how two iterations differ, or what one changed."""
    text = _history().diff(first, second, session)
    if json:
        say_json({"diff": text})
    else:
        say(text.rstrip("\n"))


def best(session: Session = None, json: Json = False) -> int:
    """Print the best correct iteration.

    Exits 1 when there is none yet.
    """
    from stitch_tui.tools.errors import ExitCode

    commit = _history().best(session)
    if json:
        say_json(_data(commit) if commit else None)
    else:
        say(_line(commit) if commit else "no correct iteration yet")
    return ExitCode.GOAL_MET if commit else ExitCode.GOAL_NOT_MET


def restore(number: Number, session: Session = None, json: Json = False) -> None:
    """Make iteration N current again, as a new commit."""
    commit = _history().restore(number, session, decision="restored by human")
    if json:
        say_json(_data(commit))
    else:
        say(_line(commit))


def apply(
    number: Best = "best",
    session: Session = None,
    commit: Annotated[bool, typer.Option("--commit", help="As one commit on your branch.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace your edits; copies stay in .stitch/.")
    ] = False,
    json: Json = False,
) -> None:
    """Bring an iteration's stitched/ into your working tree.

    Never over your own edits, unless --force says so.
    """
    done = _history().apply(number, session, commit=commit, force=force)
    if json:
        say_json(
            {"iteration": _data(done.commit), "written": done.written, "removed": done.removed,
             "overwritten": done.overwritten, "kept_in": done.kept_in, "commit": done.sha or None}
        )  # fmt: skip
        return
    for verb, paths in (
        ("wrote", done.written),
        ("removed", done.removed),
        ("replaced your", done.overwritten),
    ):
        for path in paths:
            say(f"{verb} {path}")
    if done.kept_in:
        say(f"your versions are in {done.kept_in}")
    say(f"{_line(done.commit)}{f', committed as {done.sha[:10]}' if done.sha else ''}")


class Form(StrEnum):
    """What an export is written as."""

    BUNDLE = "bundle"
    KERNELBENCH = "kernelbench"


def export(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="PLACE", help="A folder, made or replaced when only stitch wrote it; or a new file."
        ),
    ],
    number: Best = "best",
    form: Annotated[
        Form,
        typer.Option("--format", help="The bundle's folder, or one Python file as KernelBench takes it."),
    ] = Form.BUNDLE,
    session: Session = None,
    json: Json = False,
) -> None:
    """Write an iteration's program to a folder, or as one file."""
    if form is Form.BUNDLE:
        written = _history().export(number, target, session)
    else:
        written = _single_file(_history().files(number, session), target)
    if json:
        say_json({"written": str(written)})
    else:
        say(f"wrote {written}")


def _single_file(files: dict[str, bytes], target: Path) -> Path:
    from stitch_tui.tools.bundle import single_file
    from stitch_tui.tools.errors import UsageError

    data, target = single_file(files), target.absolute()
    try:
        if not target.is_file() or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(data)
    except OSError as error:
        raise UsageError("cannot write the export", where=str(target), why=error.strerror or "") from error
    return target


@sessions.command("list", epilog="Example: stitch sessions list --json")
def list_(json: Json = False) -> None:
    """Print every session, latest first."""
    found = _history().sessions()
    if json:
        say_json(
            [{"name": s.name, "ref": s.ref, "tip": s.tip, "updated": s.updated.isoformat()} for s in found]
        )
    elif found:
        table((s.name, f"{s.updated:%Y-%m-%d %H:%M}", s.tip[:10], s.ref) for s in found)


@sessions.command(epilog="Example: stitch sessions prune --keep 5 --dry-run")
def prune(
    keep: Annotated[
        int, typer.Option("--keep", min=1, metavar="N", help="Sessions to keep, the latest ones.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    json: Json = False,
) -> None:
    """Remove old local sessions: their branches, journals and work folders.

    The one that runs stays, and one that is checked out somewhere.  Prints how to bring each branch back.
    """
    from stitch_tui.agents import old_sessions

    history = _history()
    old = old_sessions.find(Path.cwd(), history, keep)
    for session in old if not dry_run else ():
        old_sessions.remove(Path.cwd(), history, session)
    if json:
        say_json({"removed": [{"name": s.name, "tip": s.tip} for s in old], "dry_run": dry_run})
        return
    for session in old:
        branch = session.ref.removeprefix("refs/heads/")
        back = (
            f"{branch}; back: git branch {branch} {session.tip}"
            if branch
            else f"what is left of {session.name}"
        )
        say(f"{'would remove' if dry_run else 'removed'} {back}")
    if not old:
        say("nothing to remove")


def _history() -> "History":
    from stitch_tui.config import load
    from stitch_tui.tools.history import History

    git = load(Path.cwd(), refuse=False).settings.git
    return History.open(Path.cwd(), prefix=git.branch_prefix, author=git.author)


def _line(commit: "Commit") -> str:
    return f"{commit.sha[:10]}  {commit.iteration.subject}"


def _data(commit: "Commit") -> dict[str, Any]:
    entry: dict[str, Any] = json_text.loads(commit.iteration.model_dump_json())  # infinities become null
    return {"sha": commit.sha, "author": commit.author, "time": commit.time.isoformat(), **entry}
