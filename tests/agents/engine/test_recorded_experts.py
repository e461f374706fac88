"""Recorded sessions of an expert for the examples: replayed with real builds and checks on the emulator.

The recordings hold every answer, four of the Coder's wrong on purpose and repaired after advice.  The one
of a GPU goes on to faster kernels and to the host program; there ``pytest -m gpu`` replays it.
"""

import asyncio
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from engine_projects import ROOT, Project

from stitch_tui.agents import replay
from stitch_tui.agents.chat.request import Answer
from stitch_tui.agents.code_answer import CodeAnswer, read_code
from stitch_tui.agents.host import contract as host_contract
from stitch_tui.agents.plan_answer import PlanAnswer, checked_plan
from stitch_tui.agents.replay import Recording
from stitch_tui.agents.state import Iteration
from stitch_tui.tools import reference
from stitch_tui.tools.bundle import Kernel, Program, ReferenceSource, host_text, read_layout, render
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.verdict import Category, Verdict
from stitch_tui.tools.verification import Bench, verify_program, verify_region

RECORDED = sorted((ROOT / "tests" / "fixtures" / "replay").glob("*.jsonl"))
ON_A_GPU = "vit_block"


def recording(path: Path) -> Recording:
    return replay.recording(Path(), str(path))


def candidates(recorded: Recording) -> Iterator[tuple[Iteration, CodeAnswer]]:
    """The kernels in the order of their iterations, each an edit of the subtask's one before or whole."""
    base: dict[str, str] = {}
    judged = iter([i for i in recorded.session.iterations if i.subtask.startswith("s")])
    for exchange in recorded.exchanges:
        if exchange.role == "coder" and exchange.stage != "program":
            read = read_code(Answer(exchange.answer, exchange.finish), base.get(exchange.subtask, ""))
            base[exchange.subtask] = read.source
            yield next(judged), read


def test_the_recordings_hold_every_kind_of_exchange_and_no_path() -> None:
    exchanges = [e for path in RECORDED for e in recording(path).exchanges]
    assert len(exchanges) >= 20
    stages = {exchange.stage for exchange in exchanges}
    assert stages == {"plan", "draft", "advise", "repair", "optimise", "program"}
    assert not any("/home/" in path.read_text() or "/tmp/" in path.read_text() for path in RECORDED)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_file_keeps_the_contract(path: Path) -> None:
    found = list(candidates(recording(path)))
    assert found
    assert all(read.strategy and read.note for _, read in found)


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recording_runs_again_to_the_same_outcomes(project: Project, path: Path) -> None:
    shutil.copy(ROOT / "examples" / f"{path.stem}.py", project.folder)
    code, out, err = project.said("replay", str(path), "--device", "emulator", "--json")
    assert code == 0, err
    assert json.loads(out.splitlines()[-1])["type"] == "session.finished"
    if path.stem == ON_A_GPU:
        assert err == "recorded on cuda, now on emulator: only what became of subtasks is compared\n"
        return
    assert err == "", "no outcome differs"
    assert [i.outcome for i in project.session.iterations if i.verdict] == [
        i.outcome for i in recording(path).session.iterations if i.verdict
    ]


@pytest.mark.slow
def test_a_replay_in_the_background_is_a_session_that_viewers_attach_to(project: Project) -> None:
    path = next(path for path in RECORDED if path.stem == "layernorm_gelu")
    shutil.copy(ROOT / "examples" / f"{path.stem}.py", project.folder)
    code, name, err = project.said("replay", str(path), "--device", "emulator", "--detach")
    assert code == 0, err
    code, out, err = project.said("attach", "--json")
    assert code == 0, err
    told = [json.loads(line) for line in out.splitlines()]
    assert {event["session"] for event in told} == {name.strip()}
    stages = [event["stage"] for event in told if event["type"] == "exchange"]
    assert stages == ["plan", "draft", "advise", "repair"]


@dataclass
class Judged:
    """What the emulator says of the answers that were recorded for a GPU."""

    kernels: list[tuple[Iteration, Verdict]]
    host: Verdict


async def judged(recorded: Recording, emulator: Emulator, folder: Path) -> Judged:
    name = f"{ON_A_GPU}.py"
    shutil.copy(ROOT / "examples" / name, folder)
    async with Judge(sys.executable, folder, environment={"CUDA_VISIBLE_DEVICES": ""}) as judge:
        summary = await reference.open_reference(judge, reference.ReferenceOptions(path=name))
        graph = (await reference.graph(judge)).graph
        bench = Bench(judge, emulator, python=sys.executable, deadline_s=30.0)
        plan = checked_plan(graph, PlanAnswer.model_validate_json(recorded.exchanges[0].answer))
        regions = {subtask.id: subtask.region for subtask in plan.kernels}
        kernels, best = [], {}
        for number, (iteration, read) in enumerate(candidates(recorded)):
            source = folder / f"{number}.cu"
            source.write_text(read.source)
            kernels.append((iteration, await verify_region(bench, source, regions[iteration.subtask])))
            best[iteration.subtask] = read.source
        program = Program(
            graph=graph,
            kernels=tuple(
                Kernel(id=id, title=id, region=regions[id], source=text) for id, text in best.items()
            ),
            reference=ReferenceSource(text=summary.source, class_name=summary.class_name),
            **dict(await read_layout(judge)),
        )
        own = host_text(program)
        (asked,) = [e for e in recorded.exchanges if e.stage == "program"]
        text = read_code(Answer(asked.answer, asked.finish), own, host_contract.form_of(own)).source
        modules = [written(program, folder / "own"), written(program, folder / "other", text)]
        sources = {f"{id}.cu": modules[1].parent / "kernels" / f"{id}.cu" for id in best}
        return Judged(kernels, await verify_program(bench, modules[1], sources, replaces=modules[0]))


def written(program: Program, folder: Path, host: str = "") -> Path:
    """The ``model_new.py`` of its bundle."""
    for path, data in render(program.model_copy(update={"host": host})).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder / "model_new.py"


@pytest.mark.slow
def test_the_answers_for_a_gpu_are_right_or_wrong_as_they_are_meant(
    tmp_path: Path, emulator: Emulator
) -> None:
    (path,) = [path for path in RECORDED if path.stem == ON_A_GPU]
    found = asyncio.run(judged(recording(path), emulator, tmp_path))
    categories = [(iteration.subtask, verdict.category) for iteration, verdict in found.kernels]
    assert categories == [
        ("s01", Category.CORRECT),
        ("s01", Category.NUMERICS),
        ("s01", Category.CORRECT),
        ("s02", Category.CORRECT),
        ("s02", Category.CORRECT),
    ]
    assert [verdict.category for _, verdict in found.kernels] == [
        iteration.verdict.category for iteration, _ in found.kernels if iteration.verdict
    ]
    assert found.host.correct, found.host.summary


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_recording_of_a_gpu_comes_to_the_same_outcomes_there(project: Project) -> None:
    shutil.copy(ROOT / "examples" / f"{ON_A_GPU}.py", project.folder)
    path = next(path for path in RECORDED if path.stem == ON_A_GPU)
    words = ("--device", "cuda", "--json")
    code, _, err = project.said("replay", str(path), *words)
    assert code == 0, err
    assert [(i.subtask, i.outcome) for i in project.session.iterations if i.verdict] == [
        (i.subtask, i.outcome) for i in recording(path).session.iterations if i.verdict
    ], err
