"""Themes for Textual: those that come with stitch and the user's own, which are read again as they change."""

from collections.abc import AsyncIterator

from textual.app import App
from textual.theme import BUILTIN_THEMES, Theme

from stitch_tui import themes
from stitch_tui.files import user_theme_folder
from stitch_tui.themes import InvalidTheme, Palette

DEFAULT = "stitch-night"


def textual_theme(palette: Palette) -> Theme:
    """A palette as Textual knows it."""
    core = {name: palette.colors[name] for name in themes.COLORS if name in palette.colors}
    theme = Theme(
        name=palette.name,
        primary=core.pop("primary"),
        **core,  # type: ignore[arg-type]  # as `themes.read` checked
        boost="ansi_default" if palette.ansi else None,
        dark=palette.dark,
        ansi=palette.ansi,
        variables=dict(BUILTIN_THEMES["ansi-dark"].variables) if palette.ansi else {},
    )
    wanted = themes.VARIABLES | palette.variables
    known = palette.colors
    if any(value[1:] not in known for value in wanted.values() if value.startswith("$")):
        known = theme.to_color_system().generate() | known
    resolved = {key: known[v[1:]] if v.startswith("$") else v for key, v in wanted.items()}
    theme.variables.update(resolved)
    return theme


def register(app: App[None]) -> list[str]:
    """Register all themes; what is wrong with those of the user that could not be."""
    for palette in themes.builtin():
        app.register_theme(textual_theme(palette))
    faults = []
    for found in themes.of_user(user_theme_folder()):
        if isinstance(found, InvalidTheme):
            faults.append(str(found))
        else:
            app.register_theme(textual_theme(found))
    return faults


def defaults() -> dict[str, str]:
    """stitch's variables for themes that know nothing of them, such as Textual's own."""
    plain = {"$success": "#4ebf71", "$error": "#ba3c5b", "$warning": "#ffa62b"}
    return {name: plain.get(value, value) for name, value in themes.VARIABLES.items()}


async def changes() -> AsyncIterator[None]:
    """Something changed in the user's folder; nothing comes while there is no such folder."""
    from watchfiles import awatch

    folder = user_theme_folder()
    if not folder.is_dir():
        return
    async for _ in awatch(folder, debounce=300, recursive=False):
        yield
