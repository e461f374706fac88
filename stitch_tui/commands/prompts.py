"""``stitch prompts``: the texts that roles which are models are asked with."""

from typing import Annotated

import typer

from stitch_tui.commands.output import Json, say, say_json, table

prompts = typer.Typer(
    help="Show and change what models are asked with.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)
Name = Annotated[str, typer.Argument(help="Such as coder-draft; stitch prompts show lists them.")]


@prompts.command(epilog="Example: stitch prompts show coder-draft")
def show(
    name: Annotated[str, typer.Argument(help="A prompt; none: list all.")] = "", json: Json = False
) -> None:
    """Print a prompt as it is used, or list all with where each comes from."""
    from stitch_tui.agents import prompting

    if name:
        text = prompting.template(name)
        say_json({"name": name, "text": text}) if json else say(text.rstrip("\n"))
        return
    rows = [(one, "yours" if prompting.is_own(one) else "built in") for one in prompting.names()]
    say_json(dict(rows)) if json else table(rows)


@prompts.command(epilog="Example: stitch prompts edit coder-draft")
def edit(name: Name) -> None:
    """Open your version of a prompt in $VISUAL or $EDITOR; it is made from the built-in one.

    Without an editor or a terminal its path is printed.
    """
    from stitch_tui import editor
    from stitch_tui.agents import prompting
    from stitch_tui.files import write_atomically

    prompting.require_known(name)
    path = prompting.own_path(name)
    if not prompting.is_own(name):
        write_atomically(path, prompting.built_in(name))
    if editor.edit(path):
        prompting.require_known_sections(name)
    say(str(path))


@prompts.command(epilog="Example: stitch prompts diff coder-draft")
def diff(name: Name, json: Json = False) -> None:
    """Print how your version of a prompt differs from the built-in one."""
    import difflib

    from stitch_tui.agents import prompting

    own, built_in = prompting.template(name), prompting.built_in(name)
    lines = difflib.unified_diff(
        built_in.splitlines(), own.splitlines(), f"built in/{name}", f"yours/{name}", lineterm=""
    )
    text = "\n".join(lines)
    if json:
        say_json({"name": name, "diff": text})
    elif text:
        say(text)


@prompts.command(epilog="Example: stitch prompts reset coder-draft")
def reset(name: Name, json: Json = False) -> None:
    """Take your version of a prompt away: the built-in one is used again."""
    from stitch_tui.agents import prompting
    from stitch_tui.files import remove

    prompting.require_known(name)
    path = prompting.own_path(name)
    there = prompting.is_own(name)
    if there:
        remove(path)
    if json:
        say_json({"removed": str(path) if there else None})
    else:
        say(f"removed {path}" if there else f"{name} is the built-in one already")
