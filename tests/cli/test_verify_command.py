import json
from pathlib import Path

import pytest

from stitch_tui.cli import invoke
from stitch_tui.tools.errors import ExitCode
from stitch_tui.tools.verdict import Category, Flag, Verdict
from stitch_tui.verify import exit_code

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.relu(x)
def get_inputs(): return [torch.randn(33, 65)]
def get_init_inputs(): return []
"""
KERNEL = """
#include "stitch.h"
#include <cuda_runtime.h>
__global__ void relu(const float* x, float* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] != x[i] ? x[i] : (x[i] > FLOOR ? x[i] : FLOOR);
}
extern "C" int stitch_run(const stitch_call* c) {
  long n = c->in[0].numel;
  if (n) relu<<<(n + 255) / 256, 256, 0, (cudaStream_t)c->stream>>>((const float*)c->in[0].data, (float*)c->out[0].data, n);
  return STITCH_OK;
}
"""  # noqa: E501


@pytest.fixture
def candidate(project: Path, monkeypatch: pytest.MonkeyPatch, cache_home: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home))
    (project / "relu.py").write_text(REFERENCE)
    kernel = project / "relu.cu"
    kernel.write_text(KERNEL.replace("FLOOR", "0.f"))
    return kernel


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["none.cu", "--reference", "relu.py"], ExitCode.USAGE, "none.cu: no such candidate"),
        (["relu.txt", "--reference", "relu.py"], ExitCode.USAGE, "relu.txt: no such candidate"),
        (["relu.cu"], ExitCode.USAGE, "no reference"),
        (["relu.cu", "--reference", "none.py"], ExitCode.USAGE, "none.py: no such file"),
        (["relu.cu", "--reference", "relu.py", "--set", "device.index=99", "--device", "cuda"],
         ExitCode.ENVIRONMENT, "the CUDA device was not found"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_one_line(
    candidate: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: ExitCode, said: str
) -> None:
    (candidate.parent / "relu.txt").touch()
    assert invoke(["verify", *words]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_without_a_gpu_no_profile_is_made_up(candidate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["profile", "relu.py", "--device", "emulator"]) == ExitCode.ENVIRONMENT
    out, err = capsys.readouterr()
    assert out == ""
    assert "nothing is timed without a GPU" in err


def test_without_a_compiler_nothing_is_judged(
    candidate: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    words = ["verify", "relu.cu", "--reference", "relu.py", "--device", "emulator"]
    assert invoke(words) == ExitCode.ENVIRONMENT
    err = capsys.readouterr().err
    assert "compiler" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("category", "flags", "code"),
    [
        (Category.CORRECT, (Flag.FUNCTIONAL, Flag.PARTIAL), ExitCode.GOAL_MET),
        (Category.CORRECT, (Flag.QUARANTINED,), ExitCode.UNPROVEN),
        (Category.UNSUPPORTED, (), ExitCode.UNPROVEN),
        (Category.ENVIRONMENT, (), ExitCode.ENVIRONMENT),
        (Category.NUMERICS, (), ExitCode.GOAL_NOT_MET),
        (Category.HACK_SUSPECTED, (), ExitCode.GOAL_NOT_MET),
    ],
)
def test_only_a_verdict_that_is_correct_and_believed_is_success(
    category: Category, flags: tuple[Flag, ...], code: ExitCode
) -> None:
    verdict = Verdict(category=category, flags=flags, device="emulator", summary="")
    assert exit_code(verdict) is code


@pytest.mark.slow
def test_a_kernel_is_judged_against_the_whole_reference(
    candidate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["verify", "relu.cu", "--reference", "relu.py", "--device", "emulator", "--json"]
    assert invoke(words) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert (verdict["category"], verdict["device"]) == ("correct", "emulator")
    assert invoke([*words[:-1], "--markdown", "--why"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# correct\n")
    assert "exit code 0: correct, and believed" in text
    candidate.write_text(KERNEL.replace("FLOOR", "0.1f"))
    assert invoke(words[:-1]) == ExitCode.GOAL_NOT_MET
    assert capsys.readouterr().out.startswith("numerics, ")
