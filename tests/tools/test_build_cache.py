import asyncio
import errno
import os
import stat
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stitch_tui.tools import paths
from stitch_tui.tools.build_cache import BuildCache, disk_errors, key_of
from stitch_tui.tools.errors import EnvironmentFault

ROOT = Path(__file__).parents[2]
KEY = key_of("some source")


async def build(cache: BuildCache, key: str, text: str) -> Path:
    async with cache.entry(key) as entry:
        if not entry.ready:
            with entry.staging() as folder:
                (folder / "out").write_text(text)
                entry.publish(folder)
        return entry.path


@given(st.lists(st.binary(max_size=8), max_size=4), st.lists(st.binary(max_size=8), max_size=4))
def test_two_keys_are_equal_only_when_their_parts_are(one: list[bytes], other: list[bytes]) -> None:
    assert (key_of(*one) == key_of(*other)) == (one == other)


async def _twice(cache: BuildCache) -> list[Path]:
    return [await build(cache, KEY, "first"), await build(cache, KEY, "second")]


def test_a_published_build_is_taken_by_the_next_one_that_wants_it(tmp_path: Path) -> None:
    first, second = asyncio.run(_twice(BuildCache(tmp_path)))
    assert first == second
    assert (second / "out").read_text() == "first"


def test_a_build_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)

    async def fail() -> None:
        async with cache.entry(KEY) as entry:
            with entry.staging() as folder:
                (folder / "half").write_text("x")
                raise RuntimeError("compiler died")

    with pytest.raises(RuntimeError):
        asyncio.run(fail())
    assert [p for p in tmp_path.rglob("*") if p.is_file() and p.parent.name != "locks"] == []
    assert (asyncio.run(build(cache, KEY, "again")) / "out").read_text() == "again"


def test_publishing_replaces_an_older_build(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)

    async def rebuild() -> str:
        path = await build(cache, KEY, "old")
        async with cache.entry(KEY) as entry:
            with entry.staging() as folder:
                (folder / "out").write_text("new")
                entry.publish(folder)
        return (path / "out").read_text()

    assert asyncio.run(rebuild()) == "new"


def test_processes_that_want_one_build_at_once_make_it_once(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import asyncio, os, sys
        from pathlib import Path
        from stitch_tui.tools.build_cache import BuildCache, key_of
        async def main():
            async with BuildCache(Path(sys.argv[1])).entry(key_of("x")) as entry:
                if not entry.ready:
                    with entry.staging() as folder:
                        (folder / str(os.getpid())).touch()
                        for _ in range(20):
                            await asyncio.sleep(0)
                        entry.publish(folder)
                print(*os.listdir(entry.path))
        asyncio.run(main())
    """)

    async def race() -> set[bytes]:
        racers = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, str(tmp_path), cwd=ROOT, stdout=asyncio.subprocess.PIPE
            )
            for _ in range(3)
        ]
        return {(await racer.communicate())[0] for racer in racers}

    outputs = asyncio.run(race())
    assert len(outputs) == 1
    assert len(outputs.pop().split()) == 1


def test_an_entry_that_others_hold_is_waited_for_only_so_long(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)

    async def nested() -> None:
        async with cache.entry(KEY), cache.entry(KEY, timeout=0.01):
            pass

    with pytest.raises(TimeoutError):
        asyncio.run(nested())


def test_pruning_deletes_what_was_used_longest_ago_and_keeps_what_is_recent(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    keys = [key_of(str(n)) for n in range(3)]
    built = [asyncio.run(build(cache, key, "x" * 10_000)) for key in keys]
    os.utime(built[0], (2, 2))
    os.utime(built[1], (1, 1))
    assert BuildCache(tmp_path).prune(max_bytes=25_000) > 0
    assert [path.is_dir() for path in built] == [True, False, True]
    BuildCache(tmp_path).prune(max_bytes=0)
    assert [path.is_dir() for path in built] == [False, False, True]


def test_pruning_leaves_a_build_that_is_locked(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    path = asyncio.run(build(cache, KEY, "x"))

    async def prune_while_held() -> None:
        async with cache.entry(KEY):
            os.utime(path, (1, 1))
            assert cache.prune(0) == 0

    asyncio.run(prune_while_held())
    assert path.is_dir()


def test_pruning_an_absent_cache_frees_nothing(tmp_path: Path) -> None:
    assert BuildCache(tmp_path / "never").prune(0) == 0


def test_a_full_disk_is_an_environment_fault_that_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault) as caught, disk_errors(tmp_path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.where == str(tmp_path)
    assert "No space left" in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "folder"),
    [
        ("XDG_CACHE_HOME", paths.cache_dir),
        ("XDG_STATE_HOME", paths.state_dir),
        ("XDG_RUNTIME_DIR", paths.runtime_dir),
    ],
)
def test_folders_follow_the_xdg_variables_and_are_private(
    variable: str, folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    made = folder("locks")
    assert made == tmp_path / "stitch" / "locks"
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o700


def test_a_runtime_folder_that_is_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "stitch").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentFault, match="not a directory of yours"):
        paths.runtime_dir()


def test_a_cache_that_the_user_linked_to_another_disk_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "big disk").mkdir()
    (tmp_path / "stitch").symlink_to(tmp_path / "big disk")
    assert paths.cache_dir("nvcc") == tmp_path / "big disk" / "nvcc"
