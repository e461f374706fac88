"""Recorded sessions of an expert for the examples: replayed with real builds and checks on the emulator.

The recordings hold every answer, two of the Coder's wrong on purpose and repaired after advice.
"""

import json
import shutil
from pathlib import Path

import pytest
from engine_projects import ROOT, Project

from stitch_tui.agents import replay
from stitch_tui.agents.code_answer import read_code
from stitch_tui.agents.model import Answer

RECORDED = sorted((ROOT / "tests" / "fixtures" / "replay").glob("*.jsonl"))


def test_the_recordings_hold_every_kind_of_exchange_and_no_path() -> None:
    exchanges = [e for path in RECORDED for e in replay.recording(Path(), str(path)).exchanges]
    assert len(exchanges) >= 12
    assert {exchange.stage for exchange in exchanges} == {"plan", "draft", "advise", "repair"}
    assert not any("/home/" in path.read_text() or "/tmp/" in path.read_text() for path in RECORDED)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_file_keeps_the_contract(path: Path) -> None:
    base = ""
    for exchange in replay.recording(Path(), str(path)).exchanges:
        if exchange.role == "coder":
            base = read_code(Answer(exchange.answer, exchange.finish), base).source


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recording_runs_again_to_the_same_outcomes(project: Project, path: Path) -> None:
    shutil.copy(ROOT / "examples" / f"{path.stem}.py", project.folder)
    code, out, err = project.said("replay", str(path), "--device", "emulator", "--json")
    assert code == 0, err
    assert err == "", "no outcome differs"
    assert json.loads(out.splitlines()[-1])["type"] == "session.finished"
    assert [i.outcome for i in project.session.iterations if i.verdict] == [
        i.outcome for i in replay.recording(project.folder, str(path)).session.iterations if i.verdict
    ]
