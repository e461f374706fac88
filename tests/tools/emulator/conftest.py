from pathlib import Path

import pytest


@pytest.fixture
def candidate(tmp_path: Path) -> Path:
    return tmp_path / "candidate.cu"
