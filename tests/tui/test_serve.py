"""``stitch serve``: only who has the token gets anything, and what a browser gets is the screen."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import WSServerHandshakeError, web

from stitch_tui.cli import invoke
from stitch_tui.serve import COOKIE, Guarded

TOKEN = "the-token-of-this-test"


@asynccontextmanager
async def served(host: str = "127.0.0.1") -> AsyncIterator[tuple[Guarded, aiohttp.ClientSession]]:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as free:
        free.bind((host, 0))
        port = free.getsockname()[1]
    guarded = Guarded(host, port, TOKEN)
    runner = web.AppRunner(await guarded._make_app())
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    try:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
            yield guarded, client
    finally:
        await runner.cleanup()


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as free:
            free.bind(("::1", 0))
    except OSError:
        return False
    return True


def children() -> set[str]:
    """Processes that this one started."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_nothing_is_given_without_the_token_or_to_another_host() -> None:
    async def ask() -> None:
        async with served() as (guarded, client):
            for path in ("/", "/static/js/textual.js", "/?token=wrong", "/download/x", "/ws"):
                async with client.get(guarded.public_url + path) as answer:
                    assert answer.status == 403, path
            with pytest.raises(WSServerHandshakeError):
                await client.ws_connect(f"{guarded.public_url}/ws")
            async with client.get(guarded.url, allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (302, "/")
                cookie = answer.cookies[COOKIE]
                assert (cookie.value, cookie["samesite"], cookie["httponly"]) == (TOKEN, "Strict", True)
            async with client.get(guarded.public_url) as answer:
                page = await answer.text()
                assert answer.status == 200
                assert TOKEN not in page
                assert "://" not in page.replace(f'"ws://127.0.0.1:{guarded.port}', "").replace(
                    f'"{guarded.public_url}', ""
                ), "nobody else is asked for anything"
                assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
            for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
                async with client.get(guarded.public_url, headers=headers) as answer:
                    assert answer.status == 403, headers
                with pytest.raises(WSServerHandshakeError):
                    await client.ws_connect(f"{guarded.public_url}/ws", headers=headers)

    asyncio.run(ask())


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")
def test_an_ipv6_address_stands_in_brackets_and_is_let_in() -> None:
    async def ask() -> None:
        async with served("::1") as (guarded, client), client.get(guarded.url) as answer:
            assert guarded.url.startswith("http://[::1]:")
            assert answer.status == 200
            assert f"ws://[::1]:{guarded.port}" in await answer.text()

    asyncio.run(ask())


def test_the_websocket_carries_the_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))

    async def look() -> None:
        others = children()
        async with served() as (guarded, client), asyncio.timeout(60):
            async with client.get(guarded.url):
                pass
            seen = b""
            async with client.ws_connect(f"{guarded.public_url}/ws?width=80&height=24") as line:
                while b"Begin or go on" not in seen:
                    message = await line.receive()
                    if message.type is aiohttp.WSMsgType.BINARY:
                        seen += message.data
                viewer = children() - others
                assert viewer
            while viewer & children():  # noqa: ASYNC110  # it ends with its page
                await asyncio.sleep(0.01)

    asyncio.run(look())


def test_other_machines_need_a_token_that_was_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["--token", "short"]):
        assert invoke(["serve", "--host", "192.0.2.7", *words]) == 2
        assert "others could reach it" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_an_address_that_no_browser_opens_is_refused(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["serve", "--host", host, "--token", TOKEN]) == 2
    assert "no browser can open that address" in capsys.readouterr().err
