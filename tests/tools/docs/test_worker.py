"""The docs worker as a process: warm, without any network, replaced when it dies, ended with its owner."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stitch_tui.tools.docs import client
from stitch_tui.tools.docs.client import DocsWorker, NoIndex, is_indexed
from stitch_tui.tools.errors import EnvironmentFault, UsageError
from stitch_tui.tools.locks import try_lock
from stitch_tui.tools.paths import cache_dir

CONFINE = Path(client.__file__).parents[1] / "worker" / "confine.py"


def test_it_indexes_and_searches_with_sockets_denied(
    toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel filter refuses every internet socket to the worker and whatever it starts."""
    confined = (sys.executable, str(CONFINE), "--filter", "--", *client.COMMAND)
    probe = [*confined[:4], sys.executable, "-c", "import socket; socket.socket()"]
    if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
        pytest.skip("this machine has no such filter")
    monkeypatch.setattr(client, "COMMAND", confined)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    mine = tmp_path / "mine.txt"
    mine.write_text("persistent kernels take tiles by a counter")

    folders = {"folders": [str(toolkit)]}

    async def session() -> None:
        async with DocsWorker() as worker:
            assert not is_indexed()
            with pytest.raises(NoIndex, match="nothing is indexed yet"):
                await worker.search("anything")
            first = worker._process
            assert first is not None
            environment = Path(f"/proc/{first.pid}/environ").read_bytes()
            assert b"sk-of-the-user" not in environment
            heard: list[tuple[str, dict[str, Any]]] = []
            await worker.call("build", folders, timeout=60, on_event=lambda *event: heard.append(event))
            assert heard[-1][1]["done"] == heard[-1][1]["of"]
            assert is_indexed()
            assert (await worker.search("cudaMalocHost"))[0].place.endswith("cuda_runtime_api.h:1")
            added = await worker.call("add", {"path": str(mine), "library": "own", **folders}, timeout=60)
            assert added["chunks"] == 1
            assert [p.name for p in await worker.search("tiles by a counter", library="own")] == ["mine"]
            with pytest.raises(UsageError, match="was not added"):
                await worker.call("remove", {"path": "nothing"}, timeout=60)
            assert (await worker.call("remove", {"path": str(mine)}, timeout=60))["chunks"] == 1
            assert await worker.search("tiles by a counter", library="own") == []
            assert worker._process is first, "it stays warm"
            os.kill(first.pid, signal.SIGKILL)
            with pytest.raises(EnvironmentFault, match="docs worker ended"):
                await worker.search("tiles")
            assert await worker.search("page-locked"), "another one takes its place"
            last = worker._process
        assert last is not None
        assert last.returncode is not None

    asyncio.run(session())


def test_a_worker_whose_owner_is_gone_ends_in_the_midst_of_a_file_and_frees_the_lock(
    toolkit: Path, tmp_path: Path
) -> None:
    """Its parser would look through all of the page for each `<`."""
    (tmp_path / "angles.html").write_text("<" * 5_000_000)

    async def session() -> None:
        worker = DocsWorker()
        asked = {"path": str(tmp_path / "angles.html"), "folders": [str(toolkit)]}
        await worker.call("build", {"folders": [str(toolkit)]}, timeout=60)
        call = asyncio.create_task(worker.call("add", asked, timeout=60))
        lock = cache_dir("docs") / "build.lock"
        while (free := try_lock(lock)) is not None:
            os.close(free)
            await asyncio.sleep(0)
        assert worker._process is not None
        assert worker._writer is not None
        worker._writer.transport.abort()
        assert await worker._process.wait() == 0
        with pytest.raises(EnvironmentFault, match="docs worker ended"):
            await call
        free = try_lock(lock)
        assert free is not None
        os.close(free)
        await worker.close()

    asyncio.run(session())
