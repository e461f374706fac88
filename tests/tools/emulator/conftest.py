from pathlib import Path

import pytest

from stitch_tui.tools.emulator import Emulator


@pytest.fixture(scope="session")
def emulator(pytestconfig: pytest.Config) -> Emulator:
    """Builds are keyed by content, so a cache that outlives the run (and is shared by workers) is honest."""
    assert pytestconfig.cache
    return Emulator(Path(pytestconfig.cache.mkdir("emulator")))


@pytest.fixture
def candidate(tmp_path: Path) -> Path:
    return tmp_path / "candidate.cu"
