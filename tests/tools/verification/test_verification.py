"""The whole way on a CPU: a judge, a region of its graph, candidates built for the emulator."""

import asyncio
import sys
from pathlib import Path

import pytest

from stitch_tui.tools import reference
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.graph import region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.verdict import Category, Flag, Verdict
from stitch_tui.tools.verification import Bench, verify_program, verify_region

from .linear_target import REFERENCE

CANDIDATE = Path(__file__).parent / "candidates" / "linear_relu.cu"
DEFECTS = ("", "NO_RELU", "NO_BOUND", "SYNTAX", "SPIES")
SPY = 'static int spy = system("true");'


def planted(folder: Path, defect: str) -> Path:
    """The candidate with one defect, below one more line."""
    source = folder / f"{defect or 'honest'}.cu"
    head = SPY if defect == "SPIES" else f"#define {defect or 'HONEST'} 1"
    source.write_text(f"{head}\n{CANDIDATE.read_text()}")
    return source


async def judged(folder: Path, emulator: Emulator) -> dict[str, Verdict]:
    """A verdict for each defect, and one where the full size is said to be too much for the emulator."""
    (folder / "model.py").write_text(REFERENCE)
    async with Judge(sys.executable, folder) as judge:
        await reference.open_reference(judge, reference.ReferenceOptions(path="model.py"))
        graph = (await reference.graph(judge)).graph
        region = region_of(graph, [node.id for node in graph.nodes])
        bench = Bench(judge, emulator, python=sys.executable, deadline_s=10.0)
        found = {defect: await verify_region(bench, planted(folder, defect), region) for defect in DEFECTS}
        module = folder / "model_new.py"
        module.write_text(REFERENCE.replace("class Model(", "class ModelNew("))
        found["module"] = await verify_program(bench, module, small_shapes=True)
        found["too large"] = await verify_region(bench, planted(folder, ""), region, flops=1e12)
        return found


async def judged_at_its_only_size(folder: Path, emulator: Emulator) -> Verdict:
    """The honest candidate for a reference of one row, whose extents all follow from the weights."""
    (folder / "model.py").write_text(REFERENCE.replace("40, 33", "1, 33"))
    async with Judge(sys.executable, folder) as judge:
        await reference.open_reference(judge, reference.ReferenceOptions(path="model.py"))
        graph = (await reference.graph(judge)).graph
        bench = Bench(judge, emulator, python=sys.executable, deadline_s=10.0)
        region = region_of(graph, [node.id for node in graph.nodes])
        return await verify_region(bench, planted(folder, ""), region)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory, emulator: Emulator) -> dict[str, Verdict]:
    return asyncio.run(judged(tmp_path_factory.mktemp("verification"), emulator))


def test_an_honest_kernel_is_functionally_correct(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts[""]
    assert verdict.correct, verdict.summary
    assert verdict.flags == (Flag.FUNCTIONAL,)
    assert verdict.timing is None
    names = [trial.name for trial in verdict.trials]
    assert names[0].startswith("emulator: task/")
    assert "task/full" in names
    assert verdict.error is not None
    assert verdict.error_limit is not None
    assert verdict.error <= verdict.error_limit
    assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict


@pytest.mark.parametrize(
    ("defect", "category", "culprit"),
    [
        ("NO_BOUND", Category.OUT_OF_BOUNDS, "sum += x"),
        ("SYNTAX", Category.BUILD_ERROR, "NO_SUCH_NAME"),
        ("SPIES", Category.HACK_SUSPECTED, "system("),
    ],
)
def test_a_fault_carries_category_and_line(
    verdicts: dict[str, Verdict], defect: str, category: Category, culprit: str
) -> None:
    verdict = verdicts[defect]
    lines = [SPY, *CANDIDATE.read_text().splitlines()]
    assert verdict.category is category
    assert culprit in lines[verdict.findings[0].line - 1], verdict.summary


def test_a_wrong_result_says_what_was_expected(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["NO_RELU"]
    assert verdict.category is Category.NUMERICS
    assert "expected 0" in verdict.summary


def test_a_full_size_that_the_emulator_cannot_do_is_left_out_and_said(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["too large"]
    assert verdict.correct
    assert Flag.PARTIAL in verdict.flags
    assert any("full size" in reason for reason in verdict.unchecked)


@pytest.mark.slow
def test_a_reference_of_one_size_only_is_watched_and_checked_at_that(
    tmp_path: Path, emulator: Emulator
) -> None:
    verdict = asyncio.run(judged_at_its_only_size(tmp_path, emulator))
    assert verdict.correct, verdict.summary
    assert {"emulator: task/full", "task/full"} <= {trial.name for trial in verdict.trials}


def test_a_python_module_is_verified_as_a_whole_program(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["module"]
    assert verdict.correct, verdict.summary
    assert "task/full" in {trial.name for trial in verdict.trials}
    assert "scrubbed environment" in verdict.protections
