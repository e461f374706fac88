"""A desk for each test; `model_desk` and `openai_server` are importable."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from model_desk import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-secret-of-the-user")
    return Desk(tmp_path)
