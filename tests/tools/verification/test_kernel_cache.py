"""What one runner of a candidate builds the next one loads; no other candidate does, and nothing stays."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from stitch_tui.tools import scratch
from stitch_tui.tools.worker.abi import Call
from stitch_tui.tools.worker.candidate_fault import CandidateFault
from stitch_tui.tools.worker.channel import Channel
from stitch_tui.tools.worker.containment import Limits
from stitch_tui.tools.worker.isolation import Isolation
from stitch_tui.tools.worker.kernel_cache import KernelCache

from . import gpu_stand_in
from .gpu_stand_in import install_nvcc, judged
from .test_containment import RUNNER

BUILDS = "home = os.environ['XDG_CACHE_HOME']; open(f'{home}/{time.monotonic_ns()}', 'wb').write(bytes(4096))"


def called(folder: Path, cache: KernelCache, behaviour: str) -> CandidateFault | None:
    """What was wrong with a confined runner that does this when it is called; it has ended."""
    arena = folder / "arena"
    arena.write_bytes(bytes(4096))
    announced, argv = f"arena file {arena} 4096", (sys.executable, "-c", RUNNER, behaviour)
    try:
        runner = Channel(
            argv, arena=announced, isolation=Isolation(alone=False), cache=cache, deadline_s=20.0
        )
        try:
            runner.call("run", Call())
        finally:
            runner.close()
    except CandidateFault as fault:
        return fault
    return None


def test_a_confined_runner_keeps_what_it_builds_for_the_next_one(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path / "cache")
    for count in (1, 2):
        assert called(tmp_path, cache, BUILDS) is None
        assert len(list(cache.folder.iterdir())) == count


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(1)"])
def test_a_cache_is_emptied_after_a_runner_that_ended_in_the_midst_of_something(
    tmp_path: Path, end: str
) -> None:
    cache = KernelCache(tmp_path / "cache")
    assert called(tmp_path, cache, f"{BUILDS}; {end}") is not None
    assert len(list(cache.folder.iterdir())) == 1
    assert called(tmp_path, cache, "") is None
    assert list(cache.folder.iterdir()) == []


def test_what_a_candidate_keeps_counts_as_what_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limits, "now", classmethod(lambda cls: cls(1 << 40, disk_bytes=1 << 20)))
    cache = KernelCache(tmp_path / "cache")
    cache.folder.mkdir()
    (cache.folder / "of the runner before").write_bytes(bytes(2 << 20))
    fault = called(tmp_path, cache, "time.sleep(600)")
    assert fault is not None
    assert "MiB of files" in fault.message


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What the stand-in for nvcc has built, a line each: the kernel's file and the cache."""
    for name in ("CUDACXX", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as shared:
        path = Path(shared, "log")
        monkeypatch.setenv("PATH", f"{install_nvcc(tmp_path / 'cuda', path)}:{os.environ['PATH']}")
        yield path


def builds(log: Path) -> Counter[tuple[str, str]]:
    return Counter((what, cache) for what, cache in map(str.split, log.read_text().splitlines()))


@pytest.mark.slow
def test_a_verdict_builds_each_kernel_once_for_each_program_and_leaves_nothing(
    tmp_path: Path, log: Path
) -> None:
    verdict, caches = asyncio.run(judged(tmp_path))
    assert verdict.correct, verdict.summary
    assert verdict.timing
    assert verdict.timing.replaced
    checked, *left_out, timed, replaced = caches
    assert [checked, *left_out] == [timed] * 3
    assert replaced != timed
    assert builds(log) == {
        **{(f"{name}.cu", cache): 1 for name in ("relu", "neg") for cache in (timed, replaced)},
        ("stub", timed): 2,  # each a text of its own: the program cannot have built it before
    }
    assert not Path(timed).parent.exists()
    assert not Path(replaced).parent.exists()


@pytest.mark.slow
def test_what_a_verdict_that_was_killed_has_built_is_removed_by_the_next_start(
    tmp_path: Path, log: Path
) -> None:
    (tmp_path / "temporary").mkdir()
    environment = os.environ | {
        "TMPDIR": str(tmp_path / "temporary"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    killed = subprocess.run(
        [sys.executable, gpu_stand_in.__file__, str(tmp_path)], env=environment, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    (cache,) = {Path(cache) for _, cache in builds(log)}
    assert list(cache.rglob("*.so"))
    subprocess.run(
        [sys.executable, "-c", f"import {scratch.__name__} as s; s.own()"], env=environment, check=True
    )
    (parent,) = (tmp_path / "temporary").glob("stitch-scratch-*")
    assert list(parent.iterdir()) == []
