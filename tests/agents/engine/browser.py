"""Chromium without a window, told what to do over its DevTools protocol."""

import asyncio
import base64
import itertools
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars",
    "--remote-debugging-port=0", "--window-size=1400,900",
)  # fmt: skip
ELSEWHERE = "elsewhere.example"
"""A name that leads to this machine, for this browser alone."""
WAIT_S = 90.0
COUNT = """
new Promise(done => {
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const drawing = canvas.getContext("2d");
    drawing.drawImage(image, 0, 0);
    const pixels = drawing.getImageData(0, 0, image.width, image.height).data;
    let found = 0;
    for (let n = 0; n < pixels.length; n += 4)
      if (pixels[n] === %d && pixels[n + 1] === %d && pixels[n + 2] === %d) found++;
    done(found);
  };
  image.src = "data:image/png;base64,%s";
})
"""


class Tab:
    """One page; `close` it as a person closes a tab."""

    def __init__(self, browser: "Browser", target: str, session: str) -> None:
        self._browser, self._target, self._session = browser, target, session

    async def __call__(self, method: str, **params: Any) -> Any:
        return await self._browser(method, self._session, **params)

    async def open(self, url: str) -> None:
        await self("Page.navigate", url=url)

    async def says(self, script: str) -> Any:
        """What JavaScript answers."""
        asked = await self("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in asked, asked
        return asked["result"].get("value")

    async def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" else {}
            await self("Input.dispatchKeyEvent", type=kind, key=key, **text)

    async def picture(self) -> bytes:
        """The page as PNG."""
        return base64.b64decode((await self("Page.captureScreenshot"))["data"])

    async def pixels(self, color: str, judge: "Tab") -> int:
        """How many of the picture's pixels have a colour, such as ``#112233``; counted on another page."""
        channels = (int(color[n : n + 2], 16) for n in (1, 3, 5))
        return int(await judge.says(COUNT % (*channels, base64.b64encode(await self.picture()).decode())))

    async def close(self) -> None:
        await self._browser("Target.closeTarget", targetId=self._target)


class Browser:
    """Chromium's end of the protocol."""

    def __init__(self, line: aiohttp.ClientWebSocketResponse) -> None:
        self._line, self._numbers = line, itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    async def listen(self) -> None:
        """Hand each answer to who waits for it."""
        async for message in self._line:
            answer = json.loads(message.data)
            if future := self._waiting.pop(answer.get("id", 0), None):
                future.set_result(answer)

    async def __call__(self, method: str, session: str = "", **params: Any) -> Any:
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        about = {"sessionId": session} if session else {}
        await self._line.send_str(json.dumps({"id": number, "method": method, "params": params, **about}))
        answer = await asyncio.wait_for(self._waiting[number], WAIT_S)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    async def tab(self) -> Tab:
        """A new page."""
        target = (await self("Target.createTarget", url="about:blank"))["targetId"]
        attached = await self("Target.attachToTarget", targetId=target, flatten=True)
        return Tab(self, target, attached["sessionId"])


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Browser]:
    """A browser of its own, whose profile lies in `folder`."""
    assert PROGRAM
    rules = f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1"
    process = await asyncio.create_subprocess_exec(
        PROGRAM, *FLAGS, rules, f"--user-data-dir={folder}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    place = folder / "DevToolsActivePort"
    try:
        await until(lambda: _there(place), "the browser is there")
        port, path = place.read_text().split()
        async with (
            aiohttp.ClientSession() as client,
            client.ws_connect(f"ws://127.0.0.1:{port}{path}", max_msg_size=0) as line,
        ):
            browser = Browser(line)
            listening = asyncio.create_task(browser.listen())
            yield browser
            listening.cancel()
    finally:
        process.terminate()
        await process.wait()


async def _there(place: Path) -> bool:
    return place.exists() and len(place.read_text().split()) == 2


async def until(holds: Callable[[], Awaitable[Any]], what: str) -> None:
    """Wait until something holds, `what`."""
    try:
        async with asyncio.timeout(WAIT_S):
            while not await holds():  # noqa: ASYNC110  # the world outside tells nobody
                await asyncio.sleep(0.2)
    except TimeoutError as late:
        raise AssertionError(f"never: {what}") from late
