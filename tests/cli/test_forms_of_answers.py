"""What ``stitch verify`` and ``stitch profile`` say, as text, JSON and Markdown, and why."""

import json
from pathlib import Path

import pytest

from stitch_tui.agents.diagnosis import Work
from stitch_tui.agents.reference_times import ReferenceTimes
from stitch_tui.cli import invoke
from stitch_tui.commands.output import fields, say_json
from stitch_tui.tools.errors import ExitCode
from stitch_tui.tools.graph import DType, Graph, Node, Source, TensorSpec, ValueKind
from stitch_tui.tools.profiling.ncu_csv import launches, profiles
from stitch_tui.tools.profiling.profile import Evidence, KernelTime, Profile, SystemProfile, Trace
from stitch_tui.tools.verdict import Category, Finding, Flag, Ratio, Samples, Timing, Trial, Verdict
from stitch_tui.view.judgement import diagnoses, markdown, reasons
from stitch_tui.view.profile_text import as_json, as_markdown, grounds

RECORDED = Path(__file__).parents[1] / "agents" / "recorded" / "profiles"
PRODUCT = Work(products=True, tensor_cores=True)
HOSTILE = "f<int>| **x** `y`\n# z"


def slow_product(**more: object) -> Verdict:
    """Correct on an H200, and profiled: products in half precision on the ordinary cores."""
    kernels, _ = profiles(launches((RECORDED / "no_tensor_cores.csv").read_text()))
    samples = Samples(median_us=90, low_us=89, high_us=91, count=40)
    verdict = Verdict(
        category=Category.CORRECT,
        device="cuda NVIDIA H200 sm_90",
        summary="correct",
        trials=(
            Trial(name="a", seed=1, passed=True, error=1e-6, limit=4e-6, reference_error=0, kernelbench=True),
        ),
        error=1e-6,
        error_limit=4e-6,
        timing=Timing(
            candidate=samples,
            baselines={"eager": samples},
            speedups={"eager": Ratio(value=1.2, low=1.1, high=1.3)},
        ),
        unchecked=("races: no compiler",),
        profile=Profile(
            evidence=Evidence.NCU,
            why="the one kernel",
            tool="ncu 2025.3.1",
            kernels=kernels,
            notes=("a note",),
        ),
    )
    return verdict.model_copy(update=more)


def reference() -> ReferenceTimes:
    """Measured on a device that waits for launches."""
    spec = TensorSpec(shape=(4, 4), dtype=DType.F32)
    node = Node(id="a", op="aten.relu.default", args=({"ref": "x"},), outputs=(spec,), time_us=3.0)
    source = Source(id="x", kind=ValueKind.INPUT, target="x", spec=spec)
    system = SystemProfile(
        runs=5, wall_us=533, busy_us=52.6, launch_us=432, launches=64, gaps=63, gap_us=467, longest_gap_us=91,
        kernels=(KernelTime(kernel=HOSTILE, launches=64, time_us=52.6),),
    )  # fmt: skip
    trace = Trace(system=system, evidence=Evidence.CUPTI, why="nsys is not installed")
    return ReferenceTimes(graph=Graph(sources=(source,), nodes=(node,), outputs=("a",)), trace=trace)


def test_json_names_the_disease_with_its_evidence_and_criterion() -> None:
    verdict = slow_product()
    assert verdict.profile
    first, *_ = diagnoses(verdict.profile, PRODUCT)
    assert first["disease"] == "idle tensor cores"
    assert "used 1 %" in first["evidence"]
    assert "mma.sync" in first["change"]
    assert "(ours)" in first["criterion"]


def test_why_gives_the_grounds_of_exit_code_limit_and_diagnosis() -> None:
    told = "\n".join(reasons(slow_product(), PRODUCT, ExitCode.GOAL_MET))
    assert "exit code 0: correct, and believed" in told
    assert "error 1.00e-06 is 25% of its limit" in told
    assert "not checked: races: no compiler" in told
    assert "profile by ncu 2025.3.1: the one kernel" in told
    assert "idle tensor cores, since tensor cores are used 1 %" in told
    assert "the rule: products that tensor cores may compute" in told


def test_why_admits_what_nobody_looked_at() -> None:
    bare = slow_product(profile=None, error=None, flags=(Flag.QUARANTINED,))
    told = reasons(bare, PRODUCT, ExitCode.UNPROVEN)
    assert told[0].startswith("exit code 7: neither correct nor wrong")
    assert any("faster than the device" in reason for reason in told)
    assert told[-1].startswith("not profiled")
    nothing = slow_product(profile=Profile(evidence=Evidence.NONE, why="no tool works here"))
    assert reasons(nothing, PRODUCT, ExitCode.GOAL_MET)[-1] == "no rule holds on this evidence"


def test_markdown_holds_everything_and_foreign_text_is_no_markup() -> None:
    finding = Finding(category=Category.RACE, message=HOSTILE, file="a.cu", line=3)
    text = markdown(slow_product(findings=(finding,)), PRODUCT, ExitCode.GOAL_MET, why=True)
    for head in ("# correct", "## Findings", "## Profile", "## Diagnosis", "## Why"):
        assert f"{head}\n" in text
    assert "| eager | 90 µs | 1.20x \\[1.10, 1.30\\], faster |" in text
    assert "| a.cu:3 | race | f\\<int\\>\\| \\*\\*x\\*\\* \\`y\\` \\# z |" in text
    assert "## Why" not in markdown(slow_product(), PRODUCT, ExitCode.GOAL_MET, why=False)


def test_a_profile_of_a_reference_says_what_limits_it_and_why() -> None:
    times = reference()
    assert as_json(times)["limit"].startswith("launch-bound: the device is busy 10%")
    text = as_markdown(times, why=True)
    assert "traced by cupti, as nsys is not installed" in text
    assert "| f\\<int\\>\\|" in text
    assert "| a | relu.default | 3 µs |" in text
    assert "the rule: the device is busy less than 50%" in text
    assert "fewer kernels" in "\n".join(grounds(times.trace))
    assert grounds(Trace(why="no tool"))[0] == "no trace: no tool"


def test_what_is_no_number_is_null_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    say_json(fields(slow_product(error=float("nan"), error_limit=float("inf"))))
    told = json.loads(capsys.readouterr().out)
    assert (told["error"], told["error_limit"]) == (None, None)


@pytest.mark.parametrize("words", [["verify", "a.cu"], ["profile", "a.py"]])
def test_two_forms_of_one_answer_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*words, "--json", "--markdown"]) == ExitCode.USAGE
    assert "two forms of one output" in capsys.readouterr().err
