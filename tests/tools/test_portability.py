"""Candidates built for other architectures than their own, by the real nvcc."""

import asyncio
import json
from pathlib import Path

import pytest

from stitch_tui.cli import invoke
from stitch_tui.tools.errors import ExitCode
from stitch_tui.tools.portability import OnArch, Outcome, across
from stitch_tui.tools.toolkit import Toolkit, find_toolkit
from stitch_tui.view.across import MEANINGS, as_json, as_markdown, criteria

BULK = """
#include "stitch.h"
#include <cuda_runtime.h>
__global__ void wait() { asm volatile("cp.async.bulk.commit_group;"); }
extern "C" int stitch_run(const stitch_call* c) {
  cudaFuncSetAttribute(wait, cudaFuncAttributeMaxDynamicSharedMemorySize, 120 << 10);
  wait<<<1, 1, 120 << 10, (cudaStream_t)c->stream>>>();
  return STITCH_OK;
}
"""


@pytest.fixture(scope="module")
def toolkit() -> Toolkit:
    found = asyncio.run(find_toolkit())
    if found.nvcc is None or found.host_compiler is None:
        pytest.skip("needs nvcc and g++")
    return found


def test_each_architecture_has_its_answer(toolkit: Toolkit, tmp_path: Path) -> None:
    source = tmp_path / "bulk.cu"
    source.write_text(BULK)
    archs = ["sm_80", "sm_90", "sm_35"]
    older, own, unknown = asyncio.run(across([source], archs, toolkit, tmp_path / "cache"))
    assert (older.outcome, own.outcome, unknown.outcome) == (
        Outcome.FALLBACK,
        Outcome.COMPILES,
        Outcome.NOT_RUN,
    )
    assert "cp.async.bulk" in older.reason
    assert own.arch == "sm_90a"
    assert own.registers > 0
    assert "227 KiB" in own.reason
    assert "sm_35" in unknown.reason or "compute_35" in unknown.reason


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bulk.cu", "--arch", "hopper"], "hopper is no architecture"),
        (["none.cu", "--arch", "sm_90"], "no such candidate"),
        (["model.py", "--arch", "sm_90"], "no kernels here to build"),
        (["bulk.cu", "--arch", "sm_90", "--profile"], "nothing to profile"),
    ],
)
def test_what_cannot_be_built_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bulk.cu").write_text(BULK)
    (tmp_path / "model.py").write_text("")
    assert invoke(["verify", *words]) == ExitCode.USAGE
    assert said in capsys.readouterr().err


FOUND = (
    OnArch(file="a|b.cu", arch="sm_90a", outcome=Outcome.COMPILES, registers=40, shared_bytes=1024),
    OnArch(file="a|b.cu", arch="sm_80", outcome=Outcome.FALLBACK, reason="needs *sm_90*"),
)


def test_builds_are_told_in_every_form_with_what_their_outcomes_mean() -> None:
    text = as_markdown(FOUND, why=True)
    assert "| a\\|b.cu | sm\\_90a | compiles | 40 | 1024 | 0 |  |" in text
    assert "| needs fallback |  |  |  | needs \\*sm\\_90\\* |" in text
    assert "* needs fallback: it does not build there" in text
    assert "Why" not in as_markdown(FOUND, why=False)
    assert criteria(FOUND[:1]) == [f"compiles: {MEANINGS[Outcome.COMPILES]}"]
    assert [one["why"] for one in as_json(FOUND, why=True)] == [MEANINGS[one.outcome] for one in FOUND]
    assert "why" not in as_json(FOUND, why=False)[0]


def test_the_command_prints_the_form_that_is_asked_for(
    toolkit: Toolkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bulk.cu").write_text(BULK)
    words = ["verify", "bulk.cu", "--arch", "sm_80,sm_90", "--why"]
    assert invoke([*words, "--markdown"]) == ExitCode.GOAL_NOT_MET
    assert capsys.readouterr().out.startswith("# Built for other architectures\n")
    assert invoke([*words, "--json"]) == ExitCode.GOAL_NOT_MET
    assert [one["arch"] for one in json.loads(capsys.readouterr().out)] == ["sm_80", "sm_90a"]
    assert invoke(words) == ExitCode.GOAL_NOT_MET
    assert "why: compiles: nvcc and ptxas accept it" in capsys.readouterr().out
