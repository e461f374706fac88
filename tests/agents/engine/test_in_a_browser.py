"""``stitch serve`` in Chromium: a run is watched and steered there, and goes on when the tab is closed."""

import asyncio
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socket import socket
from urllib.parse import urlsplit

import pytest
from browser import ELSEWHERE, PROGRAM, Browser, opened, until
from engine_projects import Project, of_type
from engine_projects import until as engine_says
from processes import ended
from test_detached import descendants

from stitch_tui import themes
from stitch_tui.agents import journal
from stitch_tui.agents.events import Decision

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed"),
]
NIGHT = next(palette for palette in themes.builtin() if palette.name == "stitch-night")
PRIMARY, ASKS = NIGHT.colors["primary"], NIGHT.colors["warning"]
LETTERS = 300
"""Pixels that a few letters on that ground have at the least."""
CONNECT = """
new Promise(done => {
  const line = new WebSocket("ws://127.0.0.1:%d/ws?width=80&height=24");
  line.onopen = () => done("open");
  line.onerror = () => done("refused");
})
"""


def free_port() -> int:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(project: Project) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """The server as a person starts it: its process, port and token."""
    port = free_port()
    server = project.stitch("serve", "--port", str(port))
    assert server.stdout
    found = re.search(r"\?token=(\S+)", server.stdout.readline())
    assert found
    try:
        yield server, port, found[1]
    finally:
        if server.poll() is None:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=60)


@contextmanager
def another_site() -> Iterator[int]:
    """A page of somebody else's on this machine, to which the browser sends the same cookies; its port."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Page) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield site.server_port
        site.shutdown()


def decided(project: Project) -> list[str]:
    return [e.action for e in journal.read(project.journal) if isinstance(e, Decision)]


def test_a_run_is_steered_in_a_browser_and_outlives_its_tab(project: Project, tmp_path: Path) -> None:
    engine = project.start(settings={"autonomy": {"mode": "ask-plan"}}, hang=[1])
    engine_says(engine, of_type("plan.proposed"))

    async def steer(browser: Browser, server: subprocess.Popen[str], url: str) -> None:
        judge = await browser.tab()
        tab = await browser.tab()
        await tab.open(url)

        async def drawn() -> bool:
            return bool(await tab.says("document.querySelector('body.-first-byte') !== null"))

        async def asks() -> bool:
            return await tab.pixels(ASKS, judge) > LETTERS and await tab.pixels(PRIMARY, judge) > LETTERS

        await until(drawn, "something is drawn")
        await until(asks, "a proposal waits on the screen")
        (tmp_path / "proposed.png").write_bytes(await tab.picture())
        assert "token" not in await tab.says("location.href")
        asked = await tab.says("performance.getEntriesByType('resource').map(entry => entry.name)")
        assert asked
        assert {urlsplit(name).netloc for name in asked} == {urlsplit(url).netloc}, "nobody else is asked"

        async def approved() -> bool:
            await tab.press("A")
            await tab.press("y")
            return "approve" in decided(project)

        await until(approved, "the keys approve the plan")

        async def begun() -> bool:
            return not await asks() and bool(project.session.iterations)

        await until(begun, "the run goes on, and the screen says so")
        (tmp_path / "approved.png").write_bytes(await tab.picture())
        viewers = descendants(server.pid)
        assert viewers
        await tab.close()
        assert all([await asyncio.to_thread(ended, viewer) for viewer in viewers])

    async def look() -> None:
        with served(project) as (server, port, token):
            async with opened(tmp_path / "profile") as browser:
                await steer(browser, server, f"http://127.0.0.1:{port}/?token={token}")
            assert server.poll() is None
        assert server.returncode is not None

    asyncio.run(look())
    assert engine.poll() is None, "the run goes on"
    assert decided(project) == ["approve"]
    assert project.said("stop")[0] == 0
    engine.communicate(timeout=120)


def test_a_browser_without_the_token_or_on_another_site_gets_nothing(
    project: Project, tmp_path: Path
) -> None:
    async def look() -> None:
        with served(project) as (server, port, token), another_site() as elsewhere:
            async with opened(tmp_path / "profile") as browser:
                tab = await browser.tab()

                async def reads(url: str, words: str) -> None:
                    async def read() -> bool:
                        return words in await tab.says("document.body ? document.body.innerText : ''")

                    await tab.open(url)
                    await until(read, f"{url} says {words}")

                here = f"http://127.0.0.1:{port}"
                refused = "open the address that `stitch serve` printed"
                await reads(here, refused)
                await reads(f"{here}/?token=wrong", refused)
                assert await tab.says(CONNECT % port) == "refused", "without the cookie"
                await reads(f"http://{ELSEWHERE}:{port}/?token={token}", "another host")
                await tab.open(f"{here}/?token={token}")

                async def is_ours() -> bool:
                    return bool(await tab.says("document.querySelector('.xterm') !== null"))

                await until(is_ours, "the page is given to who has the token")
                assert await tab.says(CONNECT % port) == "open", "from our own page"
                await reads(f"http://127.0.0.1:{elsewhere}/", "")
                assert await tab.says(CONNECT % port) == "refused", "from another page, with the cookie"
            assert server.poll() is None

    asyncio.run(look())
