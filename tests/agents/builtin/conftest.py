import pytest

from stitch_tui.tools.emulator import Emulator


@pytest.fixture(scope="session")
def emulator(pytestconfig: pytest.Config) -> Emulator:
    assert pytestconfig.cache
    return Emulator(pytestconfig.cache.mkdir("emulator"))
