"""``stitch config``, ``stitch themes`` and ``stitch trust``."""

from pathlib import Path
from typing import Annotated

import typer

from stitch_tui.commands.output import Json, say, say_json, table

config = typer.Typer(
    help="Show and change settings.", no_args_is_help=True, rich_markup_mode=None, add_completion=False
)
User = Annotated[bool, typer.Option("--user", help="The user's file instead of the project's.")]


def themes(json: Json = False) -> None:
    """Print the session screen's themes: those of stitch and those of your own folder."""
    from stitch_tui import themes
    from stitch_tui.config import load
    from stitch_tui.files import user_theme_folder

    worn = load(Path.cwd(), refuse=False).settings.ui.theme
    folder = user_theme_folder()
    known = [(palette, "stitch") for palette in themes.builtin()]
    faults = []
    for found in themes.of_user(folder):
        if isinstance(found, themes.InvalidTheme):
            faults.append(str(found))
        else:
            known.append((found, str(folder)))
    if json:
        rows = [{"name": p.name, "label": p.label, "dark": p.dark, "from": place} for p, place in known]
        say_json({"themes": rows, "worn": worn, "folder": str(folder), "faults": faults})
        return
    table((p.name, "worn" if p.name == worn else "", p.label, place) for p, place in known)
    for fault in faults:
        say(f"not a theme: {fault}")
    say(f"\nyour own: {folder}/*.toml; take one: stitch config set --user ui.theme NAME")


@config.command(epilog="Example: stitch config show --json")
def show(json: Json = False) -> None:
    """Print every setting in force and the layer that set it."""
    from stitch_tui.config import load

    rows = list(load(Path.cwd()).rows())
    if json:
        say_json({n: {"value": v, "layer": o.layer, "where": o.where} for n, v, o in rows})
    else:
        from stitch_tui.toml_text import render

        table((n, "unset" if v is None else render(v), o.where or o.layer) for n, v, o in rows)


@config.command(epilog="Example: stitch config path")
def path(json: Json = False) -> None:
    """Print where settings files are, and whether trusted."""
    from stitch_tui import trust
    from stitch_tui.config_layers import read
    from stitch_tui.files import project_config_file, user_config_file

    user, project = user_config_file(), project_config_file(Path.cwd())
    accepted = project.exists() and trust.is_trusted(project, read(project))
    trusted = ("trusted" if accepted else "not trusted") if project.exists() else "absent"
    states = {"user": (user, "present" if user.exists() else "absent"), "project": (project, trusted)}
    if json:
        say_json({layer: {"path": str(file), "state": state} for layer, (file, state) in states.items()})
    else:
        table((layer, str(file), state) for layer, (file, state) in states.items())


@config.command("set", epilog="Example: stitch config set limits.minutes 30")
def set_(
    key: Annotated[str, typer.Argument(help="Dotted name, such as limits.minutes.")],
    value: Annotated[str, typer.Argument(help="The value, as in TOML; text needs no quotes.")],
    user: User = False,
) -> None:
    """Set one setting in the project's file.

    Comments and everything else in it stay.
    """
    from stitch_tui.config_edit import set_setting
    from stitch_tui.config_layers import Layer
    from stitch_tui.files import project_config_file, user_config_file
    from stitch_tui.toml_text import render

    file = user_config_file() if user else project_config_file(Path.cwd())
    new = set_setting(file, Layer.USER if user else Layer.PROJECT, key, value)
    say(f"{key} = {render(new)} in {file}")


def trust(json: Json = False) -> None:
    """Accept this project's stitch.toml as it is now.

    Shows what it sets.  Until then, and again after each change by someone else, it cannot name
    providers, endpoints, key variables, headers, proxies, CA bundles, interpreters or deny rules.
    """
    from stitch_tui.config_edit import accept_project_file
    from stitch_tui.files import project_config_file

    file = project_config_file(Path.cwd())
    values = accept_project_file(file)
    if json:
        say_json({"trusted": str(file), "sets": values})
    else:
        table((name, value) for name, value in values.items())
        say(f"trusted {file}")
