"""``stitch serve``: the screens in a browser."""

from typing import Annotated

import typer

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("", "0.0.0.0", "::")  # what is refused


def serve(
    host: Annotated[
        str, typer.Option("--host", help="Where to listen; elsewhere needs --token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="TCP port.")] = 8617,
    token: Annotated[str, typer.Option("--token", help="Who knows it may steer; default: a new one.")] = "",
) -> None:
    """Serve this folder's screens to a browser; prints the address, which holds a token.

    Closing the page leaves the run alone.  The connection is not encrypted: beyond this machine go
    through an SSH tunnel, or a proxy that is.
    """
    from stitch_tui.tools.errors import EnvironmentFault, UsageError

    if host in EVERYWHERE:
        raise UsageError(
            "no browser can open that address",
            where=f"--host {host}",
            why="pages and requests name the host that they are for",
            advice="name the one that browsers will use, as --host 192.0.2.7",
        )
    if host not in LOOPBACK and len(token) < 16:
        raise UsageError(
            "others could reach it",
            where=f"--host {host}",
            advice="choose a --token of 16 characters or more",
        )
    try:
        from stitch_tui.serve import Guarded
    except ModuleNotFoundError as missing:
        raise EnvironmentFault(
            f"{missing.name} is not installed", advice="pip install 'stitch-tui[serve]'"
        ) from missing
    Guarded(host, port, token).serve()
