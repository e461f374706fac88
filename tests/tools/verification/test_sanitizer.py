"""compute-sanitizer's reports: recorded on an H200, read back as findings; and the process around it."""

import asyncio
import ctypes
import os
import sys
from pathlib import Path

import pytest

from stitch_tui.tools.sanitizer import TOOLS, sanitize
from stitch_tui.tools.sanitizer_report import errors_of, finished
from stitch_tui.tools.snapshot import STAGED
from stitch_tui.tools.solo import UNSUPPORTED_EXIT, Solo
from stitch_tui.tools.verdict import Category
from stitch_tui.tools.worker import solo as worker_solo
from stitch_tui.tools.worker import specimen as worker_specimen
from stitch_tui.tools.worker.abi import Call, Placed
from stitch_tui.tools.worker.reference import Options, Reference
from stitch_tui.tools.worker.session import Session
from stitch_tui.tools.worker.solo import CALL, DATA
from stitch_tui.tools.worker.specimen import specimen
from stitch_tui.tools.worker.task import Task

RECORDED = Path(__file__).parent / "recorded" / "sanitizer"
FAULTS = {
    "misaligned_read.memcheck": (Category.MISALIGNED, 12, 0, "misaligned"),
    "missing_barrier.racecheck": (Category.RACE, 8, 10, "write and read of shared memory"),
    "read_past_the_end.memcheck": (Category.OUT_OF_BOUNDS, 12, 0, "5 bytes after the nearest allocation"),
    "uninitialised_workspace.initcheck": (Category.UNINITIALISED, 12, 0, "read of size 4 bytes"),
    "write_past_the_end.memcheck": (Category.OUT_OF_BOUNDS, 12, 0, "1 bytes after the nearest allocation"),
}
OLDER = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at 0x100 in /somewhere/candidate.cu:30:void sums<(int)4>(const int *, int *)
=========     by thread (98,0,0) in block (194,0,0)
=========     Address 0x7fbbca800000
=========
========= ERROR SUMMARY: 1 error
"""
IN_A_HEADER = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at joined(int)+0x20 in /usr/include/barriers.h:21
=========     by thread (128,0,0) in block (0,0,0)
=========     Device Frame: tile(float*)+0x640 in candidate.cu:210
=========
========= Warning: Race reported between Write access at tile(float*)+0x90 in candidate.cu:13
=========     and Read access at tile(float*)+0xa0 in candidate.cu:14 [2 hazards]
=========
========= Program hit invalid device function (error 98) on CUDA API call to cudaLaunchKernel.
=========     Saved host backtrace up to driver entry point at error
========= ERROR SUMMARY: 2 errors
"""
MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(12, 3)

    def forward(self, x, places):
        return self.layer(x)[places]

def get_inputs():
    return [torch.rand(64, 12), torch.randint(0, 64, (9,))]
"""
FAKE = """#!{python}
import pathlib, shutil, sys
arguments = sys.argv[1:]
tool, log = arguments[arguments.index("--tool") + 1], arguments[arguments.index("--log-file") + 1]
{body}
"""


@pytest.mark.parametrize("name", FAULTS)
def test_a_recorded_fault_has_kind_kernel_and_line(name: str) -> None:
    category, line, other_line, words = FAULTS[name]
    (finding,) = errors_of((RECORDED / f"{name}.log").read_text(), STAGED, "mine.cu")
    assert (finding.category, finding.line, finding.other_line) == (category, line, other_line)
    assert finding.file == "mine.cu"
    assert finding.where.startswith("flipped")
    assert words in finding.message
    assert "0x" not in finding.message


@pytest.mark.parametrize("tool", TOOLS)
def test_a_clean_run_has_no_findings(tool: str) -> None:
    text = (RECORDED / f"correct.{tool}.log").read_text()
    assert finished(text)
    assert errors_of(text, STAGED, "mine.cu") == []


def test_older_reports_are_read_too() -> None:
    (finding,) = errors_of(OLDER, STAGED, "mine.cu")
    assert (finding.category, finding.line) == (Category.UNINITIALISED, 30)
    assert finding.where == "sums, block (194,0,0) thread (98,0,0)"


def test_a_fault_in_a_header_is_told_where_the_candidate_calls_it() -> None:
    (finding,) = errors_of(IN_A_HEADER, STAGED, "mine.cu")
    assert (finding.category, finding.file, finding.line) == (Category.BARRIER, "mine.cu", 210)


@pytest.mark.parametrize("text", ["", "========= COMPUTE-SANITIZER\n", "Segmentation fault"])
def test_a_report_that_was_cut_short_is_no_answer(text: str) -> None:
    assert not finished(text)
    assert errors_of(text, STAGED, "mine.cu") == []


def fake(folder: Path, body: str) -> Path:
    """A program in compute-sanitizer's place, with its command line."""
    path = folder / "compute-sanitizer"
    path.write_text(FAKE.format(python=sys.executable, body=body))
    path.chmod(0o755)
    return path


async def examined(
    folder: Path, body: str, text: str = "", timeout: float = 60
) -> tuple[list[str], list[str]]:
    source = folder / "mine.cu"
    source.write_text(text)
    alone = Solo(sys.executable, folder, folder / "candidate.so", dict(os.environ))
    found = await sanitize(fake(folder, body), alone, source=source, timeout=timeout)
    return [f"{f.category} {f.line}" for f in found.findings], list(found.unchecked)


def test_each_tool_answers_for_itself(tmp_path: Path) -> None:
    body = f"""
name = dict(memcheck="write_past_the_end", racecheck="missing_barrier").get(tool, "correct")
shutil.copy(pathlib.Path({str(RECORDED)!r}) / f"{{name}}.{{tool}}.log", log)
"""
    findings, unchecked = asyncio.run(examined(tmp_path, body))
    assert findings == ["out_of_bounds 12", "race 8"]
    assert unchecked == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("sys.exit('no driver here')", "ended with status 1: no driver here"),
        (f"sys.exit({UNSUPPORTED_EXIT})", "does not support the small shape"),
        ("import time; time.sleep(60)", "took longer than"),
        ("pathlib.Path(log).write_text('========= COMPUTE-SANITIZER\\n')", "ended with status 0"),
    ],
)
def test_a_tool_without_an_answer_is_said_and_accuses_nobody(tmp_path: Path, body: str, reason: str) -> None:
    timeout = 2 if "sleep" in body else 60
    findings, unchecked = asyncio.run(examined(tmp_path, body, timeout=timeout))
    assert findings == []
    assert len(unchecked) == len(TOOLS)
    assert all(reason in line for line in unchecked), unchecked


def test_tools_that_accuse_correct_kernels_of_a_kind_are_left_out(tmp_path: Path) -> None:
    body = "pathlib.Path(log).write_text('========= ERROR SUMMARY: 0 errors')"
    text = 'asm volatile("bar.sync 1, 64;"); asm volatile("cp.async.bulk.commit_group;");'
    _, unchecked = asyncio.run(examined(tmp_path, body, text))
    assert [line.split(":")[0] for line in unchecked] == [
        "compute-sanitizer racecheck",
        "compute-sanitizer synccheck",
    ]
    _, unchecked = asyncio.run(examined(tmp_path, body, "cublasLtMatmul(handle);"))
    assert [line.split(":")[0] for line in unchecked] == ["compute-sanitizer initcheck"]


def test_a_specimen_holds_one_whole_call(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    session = Session()
    session.task = Task(Reference.open(Options(tmp_path, "model.py", "")))
    made = specimen(session, {"target": {"kind": "program"}, "folder": str(tmp_path)}, lambda *_: None)
    call = Call()
    for line in (tmp_path / CALL).read_text().splitlines():
        call.read(line.split())
    shapes = {tensor.name: tensor.shape for tensor in call.ins}
    assert made["variant"] in session.task.variants
    assert set(shapes) == {"x", "places", "layer.weight", "layer.bias"}
    assert shapes["layer.weight"] == (3, 12)
    data = (tmp_path / DATA).read_bytes()
    assert all(tensor.offset + tensor.nbytes <= len(data) for tensor in call.ins)
    assert [tensor.nbytes for tensor in call.outs] == [4 * 3 * shapes["places"][0]]


def test_a_large_tensor_is_kept_in_part_and_filled_by_repeating_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    session = Session()
    session.task = Task(Reference.open(Options(tmp_path, "model.py", "")))
    for module in (worker_specimen, worker_solo):
        monkeypatch.setattr(module, "KEPT_BYTES", 64)
    params = {"target": {"kind": "program"}, "folder": str(tmp_path), "full": True}
    assert specimen(session, params, lambda *_: None)["variant"] == "full"
    assert (tmp_path / DATA).stat().st_size == 64 + 64 + 64 + 12  # x, places, weight, bias
    line = (tmp_path / CALL).read_text().splitlines()[0].split()
    x = Placed.parse(line[1:])
    assert x.nbytes == 64 * 12 * 4
    memory = bytearray(x.nbytes)

    class Memory:
        """Device memory at address 1000."""

        def allocate(self, nbytes: int) -> int:
            return 1000

        def copy_to_device(self, pointer: int, host: int, nbytes: int) -> None:
            memory[pointer - 1000 : pointer - 1000 + nbytes] = ctypes.string_at(host, nbytes)

    with (tmp_path / DATA).open("rb") as data:
        worker_solo._filled(Memory(), x, data)  # type: ignore[arg-type]
        data.seek(0)
        assert bytes(memory) == data.read(64) * (x.nbytes // 64)
