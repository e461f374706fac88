import asyncio
import sys
from pathlib import Path

import pytest

from stitch_tui.tools import doctor
from stitch_tui.tools.doctor import Check, Report, State
from stitch_tui.tools.gpu import CudaDevice
from stitch_tui.tools.toolkit import Toolkit

GPU = CudaDevice(
    index=0,
    uuid="GPU-1",
    name="NVIDIA H200",
    capability=(9, 0),
    memory_bytes=150_000_000_000,
    driver="580.1",
    cuda=(13, 0),
)
NOISY = """print('noise'); print('{"version": "2.13.0+cpu", "cuda": null, "gpu": false}')"""


def test_this_machine_gets_a_line_for_everything_that_matters(tmp_path: Path) -> None:
    report = asyncio.run(doctor.examine(tmp_path, "emulator", 0, ""))
    found = {check.name: check for check in report.checks}
    assert list(found) == [
        "python", "torch", "gpu", "C++17 compiler", "nvcc", "cuBLAS", "cuBLASLt", "cuDNN", "CUTLASS", "nsys",
        "ncu", "cuobjdump", "compute-sanitizer", "counters", "git", "repository", "project folder",
        "isolation", "documentation",
    ]  # fmt: skip
    assert found["python"].state is State.OK
    assert found["torch"].state is State.OK
    assert found["repository"] == Check(
        "repository", State.MISSING, "none around this folder", f"git init '{tmp_path}'"
    )
    assert not report.ready
    assert report.as_data()["ready"] is False


def test_every_check_that_is_not_ok_has_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    report = asyncio.run(doctor.examine(tmp_path, "cuda", 0, str(tmp_path / "python")))
    wrong = [check for check in report.checks if check.state is not State.OK]
    assert {"torch", "C++17 compiler", "git"} <= {check.name for check in wrong}
    assert all(check.fix and check.found for check in wrong)
    assert not report.ready


def test_a_missing_compiler_matters_on_every_device_and_nvcc_only_on_a_gpu() -> None:
    states = {
        cuda: {check.name: check.state for check in doctor.toolkit_checks(Toolkit(), cuda)}
        for cuda in (True, False)
    }
    assert states[True]["C++17 compiler"] is states[False]["C++17 compiler"] is State.MISSING
    assert (states[True]["nvcc"], states[False]["nvcc"]) == (State.MISSING, State.ABSENT)
    assert states[True]["ncu"] is State.ABSENT


def test_only_what_is_missing_makes_a_machine_not_ready() -> None:
    absent, missing = Check("ncu", State.ABSENT, "", "x"), Check("git", State.MISSING, "", "x")
    assert Report("emulator", "chosen", (absent,)).ready
    report = Report("emulator", "chosen", (absent, missing))
    assert not report.ready
    assert report.verdict == "device emulator (chosen): not ready, missing: git"


def test_the_chosen_gpu_must_be_there() -> None:
    check = doctor.gpu_check([GPU], 0, needed=True)
    assert check == Check("gpu", State.OK, "NVIDIA H200, sm_90, 140 GiB, driver 580.1 for CUDA 13.0")
    assert doctor.gpu_check([GPU], 1, needed=True).state is State.MISSING
    assert doctor.gpu_check([], 0, needed=True).state is State.MISSING
    assert doctor.gpu_check([], 0, needed=False).state is State.ABSENT


@pytest.mark.parametrize(
    ("script", "state", "found"),
    [
        (NOISY, "ok", "2.13.0+cpu, CPU"),
        ("print('{\"version\": \"2.5.1\", \"cuda\": null, \"gpu\": false}')", "missing", "2.5.1"),
        ("raise ImportError('no torch here')", "missing", "ImportError: no torch here"),
        ("raise SystemExit(1)", "missing", "does not import"),
        ("print('nonsense')", "missing", "does not import"),
    ],
)  # fmt: skip
def test_torch_is_asked_in_the_references_interpreter(
    tmp_path: Path, script: str, state: str, found: str
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable}\n{script}\n")
    python.chmod(0o755)
    check = asyncio.run(doctor.torch_check(str(python), cuda=False))
    assert check.state == state
    assert found in check.found


def test_a_cpu_build_of_torch_is_not_enough_for_a_gpu(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho \'{"version": "2.13.0+cpu", "cuda": null, "gpu": false}\'\n')
    python.chmod(0o755)
    assert asyncio.run(doctor.torch_check(str(python), cuda=True)).state is State.MISSING


@pytest.mark.parametrize(("text", "open_to_all"), [("RmProfilingAdminOnly: 1\n", False), ("X: 1\n", True)])
def test_counters_are_what_the_driver_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, open_to_all: bool
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (tmp_path / "params").write_text(text)
    check = doctor.counters_check(tmp_path / "params", [GPU])
    assert (check.state is State.OK) == open_to_all
