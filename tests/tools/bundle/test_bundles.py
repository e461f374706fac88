"""A bundle is deterministic, complete, readable again, and says only what verdicts say."""

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from stitch_tui.tools.bundle import Kernel, host_text, read_bundle, render
from stitch_tui.tools.bundle.module_text import without_loader
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.profiling.profile import Evidence, KernelProfile, Profile
from stitch_tui.tools.python_screen import screen_module
from stitch_tui.tools.verdict import Beside, Category, Flag, Ratio, Samples, Timing, Verdict
from stitch_tui.view.verdict_line import describe

REFERENCE = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
    def forward(self, x):
        return torch.relu(self.norm(x)) * 2
def get_inputs():
    return [torch.randn(3, 4)]
"""
FUNCTIONAL = Verdict(
    category=Category.CORRECT,
    flags=(Flag.FUNCTIONAL,),
    device="emulator",
    summary="Correct in 5 trials.",
    error=3.1e-7,
    error_limit=1.2e-6,
)
TIMED = FUNCTIONAL.model_copy(
    update={
        "flags": (),
        "device": "cuda NVIDIA H200 sm_90",
        "timing": Timing(
            candidate=Samples(median_us=10.0, low_us=9.5, high_us=10.5, count=20),
            baselines={
                "eager": Samples(median_us=20.0, low_us=19.0, high_us=21.0, count=20),
                "compile": Samples(median_us=15.0, low_us=14.0, high_us=16.0, count=20),
            },
            speedups={
                "eager": Ratio(value=2.0, low=1.9, high=2.1),
                "compile": Ratio(value=1.5, low=1.4, high=1.6),
            },
            lower_precision={
                "compile-high": Beside(
                    samples=Samples(median_us=8.0, low_us=7.9, high_us=8.1, count=20),
                    speedup=Ratio(value=0.8, low=0.7, high=0.9),
                )
            },
            replaced=Beside(
                samples=Samples(median_us=11.0, low_us=10.9, high_us=11.1, count=20),
                speedup=Ratio(value=1.1, low=1.05, high=1.15),
            ),
            bind_us=3.0,
        ),
        "profile": Profile(
            evidence=Evidence.NCU,
            why="the one kernel",
            tool="ncu 2025.3.1",
            kernels=(KernelProfile(kernel="f", launches=1, time_us=9, blocks=4000, threads=256),),
        ),
    }
)


def program(case: Any, verdict: Verdict | None = FUNCTIONAL) -> Any:
    exported = case(REFERENCE)
    kernels = [
        exported.kernel("s01", ["relu", "mul"], "// one\n", verdict=verdict, strategy="one pass"),
        exported.kernel("s02", ["add"], "", state="skipped"),
    ]
    return exported.program(kernels, verdict=verdict, session="20261129-1402-norm")


def test_the_same_program_gives_the_same_bytes(case: Any) -> None:
    whole = program(case)
    assert render(whole) == render(whole.model_copy(deep=True))
    shown = (
        "import sys; from stitch_tui.tools.bundle import Program, render; "
        "files = render(Program.model_validate_json(sys.stdin.read())); "
        "print('torch' in sys.modules, sorted(files.items()))"
    )
    result = subprocess.run(
        [sys.executable, "-c", shown],
        input=whole.model_dump_json(),
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "1", "PATH": "", "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert result.stdout == f"False {sorted(render(whole).items())}\n", "or rendering imports torch"


def test_a_bundle_has_these_files(case: Any) -> None:
    files = render(program(case))
    assert sorted(files) == [
        "kernels/s01.cu",
        "kernels/stitch.h",
        "model_new.py",
        "plan.toml",
        "reference.py",
        "report.md",
        "verdict.json",
    ]
    ast.parse(files["model_new.py"])
    assert files["kernels/s01.cu"] == b"// one\n"


def test_a_bundle_reads_back(case: Any, tmp_path: Path) -> None:
    whole = program(case)
    files = render(whole)
    for name, content in {**files, "kernels/.s01.cu.swp": b"\xff", "notes.txt": b"mine"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    bundle = read_bundle(tmp_path)
    assert bundle == read_bundle(files)
    assert bundle.reference == whole.reference
    assert bundle.verdict == whole.verdict
    assert bundle.session == whole.session
    for mine, theirs in zip(bundle.kernels, whole.kernels, strict=True):
        assert (mine.id, mine.title, mine.source, mine.state) == (
            theirs.id,
            theirs.title,
            theirs.source,
            theirs.state,
        )
        assert mine.nodes == theirs.region.nodes
        assert [value["id"] for value in mine.inputs] == list(theirs.region.inputs)
        assert [value["id"] for value in mine.outputs] == list(theirs.region.outputs)
        assert mine.verdict == theirs.verdict


@pytest.mark.parametrize(
    "name", ["plan.toml", "model_new.py", "reference.py", "verdict.json", "kernels/s01.cu"]
)
def test_a_missing_file_is_named(name: str, case: Any) -> None:
    files = render(program(case))
    del files[name]
    with pytest.raises(UsageError, match=f"{name} is missing"):
        read_bundle(files)


@pytest.mark.parametrize("name", ["reference.py", "kernels/s01.cu"])
def test_a_changed_file_is_named(name: str, case: Any) -> None:
    files = render(program(case))
    with pytest.raises(UsageError, match=f"{name} is not the file that was verified"):
        read_bundle({**files, name: files[name] + b" "})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("plan.toml", b"= 3", "plan.toml cannot be read"),
        ("plan.toml", b"format = 99", "format 99, this stitch reads 1"),
        ("plan.toml", b"format = 1", "reference is missing"),
        ("plan.toml", b"format = 1\nreference = 3\nprogram = 4", "cannot be read"),
        ("verdict.json", b"{", "verdict.json cannot be read"),
        ("verdict.json", b"[]", "verdict.json cannot be read: not an object"),
        ("verdict.json", b"{}", "subtasks is missing"),
        ("verdict.json", b'{"program": {"category": "great"}, "subtasks": {}}', "category"),
        ("reference.py", b"\xff\xfe", "reference.py cannot be read: not UTF-8"),
    ],
)
def test_a_broken_file_gives_one_clear_error(name: str, content: bytes, message: str, case: Any) -> None:
    with pytest.raises(UsageError, match=message):
        read_bundle({**render(program(case)), name: content})


def test_a_folder_without_a_bundle_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no bundle here: plan\.toml is missing"):
        read_bundle(tmp_path)


def test_the_emulator_s_numbers_are_functional_not_timed(case: Any) -> None:
    files = render(program(case))
    report = files["report.md"].decode()
    assert "*functional, not timed*" in report
    assert "µs" not in report
    assert "x |" not in report
    assert "3.1e-07 / 1.2e-06" in report
    (first, _) = tomllib.loads(files["plan.toml"].decode())["subtask"]
    assert first["verdict"] == {
        "category": "correct",
        "flags": ["functional"],
        "device": "emulator",
        "error": 3.1e-7,
        "error_limit": 1.2e-6,
    }


def test_a_gpu_s_numbers_are_the_verdict_s(case: Any) -> None:
    files = render(program(case, TIMED))
    report = files["report.md"].decode()
    assert "functional" not in report
    assert "time: 10.0 µs (9.5 to 10.5, 20 runs)" in report
    assert "against compile: 1.50x (1.40 to 1.60, faster)" in report
    assert "| 10.0 µs | 1.50x | cuda NVIDIA H200 sm_90 |" in report
    assert "beside compile-high, which multiplies in TF32: 0.80x (0.70 to 0.90)" in report
    assert "against the program before it: 1.10x (1.05 to 1.15, faster)" in report
    assert "1.50x over compile, 0.80x over compile-high (TF32)" in describe(TIMED)
    assert describe(TIMED).endswith("1.10x over the program before, faster")
    assert "## Where the time goes" in report
    assert "  * f: 9.0 us, 4000 blocks of 256" in report
    assert "  * evidence: ncu 2025.3.1, the one kernel" in report
    (first, _) = tomllib.loads(files["plan.toml"].decode())["subtask"]
    assert first["verdict"]["time_us"] == 10.0
    assert first["verdict"]["speedup"] == {"eager": 2.0, "compile": 1.5}
    assert json.loads(files["verdict.json"])["program"]["timing"]["bind_us"] == 3.0


def test_a_program_that_was_not_verified_says_so(case: Any) -> None:
    report = render(program(case, None))["report.md"].decode()
    assert "The program as a whole was not verified." in report
    assert "by an estimate from FLOPs and bytes" in report


def test_foreign_text_stays_text(case: Any, load: Any) -> None:
    exported = case(REFERENCE)
    title = 'a\nimport os\u2028raise SystemExit """ \\ | x'
    kernel = exported.kernel("s01", ["relu"], "").model_copy(update={"title": title, "source": "//\n"})
    files = render(exported.program([kernel]))
    assert load(files).ModelNew().training
    assert tomllib.loads(files["plan.toml"].decode())["subtask"][0]["title"] == title
    rows = [line for line in files["report.md"].decode().splitlines() if line.startswith("| s01")]
    assert len(rows) == 1
    assert rows[0].count("|") == 8


def test_a_mutated_buffer_is_written_by_the_kernel_s_result(case: Any, load: Any) -> None:
    exported = case(REFERENCE)
    module = load(render(exported.program([exported.kernel("s01", ["add"], "//\n")])))
    (kernel,) = module.ModelNew.stitch_program.kernels
    (counter,) = kernel.inputs
    assert (counter.name, counter.flags, counter.fixed) == ("norm.num_batches_tracked", 2, False)
    (new,) = kernel.outputs
    assert (new.flags, new.offset) == (2, 0), "a buffer's new value, alive until it is copied"


def test_arguments_that_would_hide_torch_are_refused(case: Any) -> None:
    exported = case(REFERENCE)
    with pytest.raises(UsageError, match="an argument of forward is called torch"):
        render(exported.program().model_copy(update={"inputs": {"torch": "tensor"}}))


@pytest.mark.parametrize("name", ["../s01", "s/01", "", "1", "s 01", "s01\n"])
def test_ids_name_files(name: str, case: Any) -> None:
    region = program(case).kernels[0].region
    with pytest.raises(ValidationError, match="cannot name a file"):
        Kernel(id=name, title="", region=region)


def test_ids_are_distinct_on_any_file_system(case: Any) -> None:
    exported = case(REFERENCE)
    kernels = [exported.kernel("A1", ["relu"], "//"), exported.kernel("a1", ["mul"], "//")]
    with pytest.raises(UsageError, match="two subtasks are called a1"):
        render(exported.program(kernels))


def test_constants_that_are_too_large_are_refused(case: Any) -> None:
    exported = case(REFERENCE.replace("* 2", "* torch.tensor([[2.0] * 4])"))
    (target,) = exported.constants
    source = next(s for s in exported.graph.sources if s.target == target)
    huge = source.spec.model_copy(update={"shape": (65537,)})
    sources = [s if s is not source else s.model_copy(update={"spec": huge}) for s in exported.graph.sources]
    graph = exported.graph.model_copy(update={"sources": tuple(sources)})
    with pytest.raises(UsageError, match="has 65537 elements"):
        render(exported.program().model_copy(update={"graph": graph}))


def test_the_screen_passes_the_shipped_loader_and_still_sees_a_changed_one(case: Any) -> None:
    text = render(program(case))["model_new.py"].decode()
    assert screen_module(without_loader(text), "model_new.py").evidence == ()
    changed = text.replace("def stitch_processes", "import os\nos.system('x')\n\n\ndef stitch_processes")
    assert changed != text
    assert screen_module(without_loader(changed), "model_new.py").evidence
    assert len(without_loader(text).splitlines()) == len(text.splitlines())


def test_a_host_program_that_catches_a_kernels_failure_and_computes_is_evidence(case: Any) -> None:
    rendered = program(case)
    own = host_text(rendered)
    call = next(line for line in own.splitlines() if 'kernel("s01"' in line)
    body = call.strip()
    result = body.partition(" = ")[0]
    fallen = own.replace(
        call,
        f"        try:\n            {body}\n        except RuntimeError:\n"
        f"            {result} = (aten.relu.default(x),)",
    )
    text = render(rendered.model_copy(update={"host": fallen}))["model_new.py"].decode()
    (finding,) = screen_module(without_loader(text), "model_new.py").evidence
    assert finding.message == "falls back to aten.relu.default when its kernel fails"
