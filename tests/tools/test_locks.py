"""A lock ends with its holder, and one whose file was taken away guards nothing."""

import asyncio
import fcntl
import os
from pathlib import Path

import pytest

from stitch_tui.tools.locks import acquire, is_held, try_lock


def test_a_lock_is_refused_while_it_is_held_and_free_afterwards(tmp_path: Path) -> None:
    held = try_lock(tmp_path / "lock")
    assert held is not None
    assert try_lock(tmp_path / "lock") is None
    assert try_lock(tmp_path / "lock", shared=True) is None
    assert is_held(tmp_path / "lock")
    os.close(held)
    assert not is_held(tmp_path / "lock")
    again = try_lock(tmp_path / "lock")
    assert again is not None
    os.close(again)


def test_who_waited_for_a_file_that_was_removed_locks_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"

    async def wait_while_it_is_removed() -> int:
        held = try_lock(path)
        assert held is not None
        waiting = asyncio.create_task(acquire([path], timeout=10))
        await asyncio.sleep(0)
        path.unlink()
        os.close(held)
        return await waiting

    mine = asyncio.run(wait_while_it_is_removed())
    assert os.path.samestat(os.fstat(mine), path.stat())
    assert try_lock(path) is None
    os.close(mine)


def test_to_ask_whether_a_lock_is_held_writes_nothing(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "lock")
    assert not is_held(tmp_path / "gone" / "lock")
    assert list(tmp_path.iterdir()) == []
    path = tmp_path / "read-only"
    held = os.open(path, os.O_RDONLY | os.O_CREAT, 0o400)
    assert not is_held(path)
    fcntl.flock(held, fcntl.LOCK_EX)
    assert is_held(path)
    os.close(held)
    (tmp_path / "folder").mkdir()
    assert not is_held(tmp_path / "folder")
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="symbolic links"):
        is_held(tmp_path / "link")


def test_a_folder_that_is_gone_is_an_error_and_no_endless_wait(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        try_lock(tmp_path / "gone" / "lock")
