"""What all tests share: deterministic properties, bytecode, and one cache of builds for the emulator.

Property tests have no deadline: the machine may be busy.  Bytecode is kept even where the environment says
not to: else each of some hundred processes that tests start would compile the whole package first.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from stitch_tui.tools.emulator import Emulator

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("stitch", deadline=None, derandomize=True)
settings.load_profile("stitch")


@pytest.fixture(scope="session")
def cache_home(pytestconfig: pytest.Config) -> Path:
    """An XDG_CACHE_HOME that outlives the run and that workers share: builds are keyed by content."""
    assert pytestconfig.cache
    return Path(pytestconfig.cache.mkdir("home"))


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What stitch remembers of this machine, hangs above all, is neither read nor changed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def emulator(cache_home: Path) -> Emulator:
    """With the cache that a command run under `cache_home` uses."""
    return Emulator(cache_home / "stitch" / "emulator")
