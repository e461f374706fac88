"""Forty planted bugs: each is reported with the right kind on the line that its comment marks."""

import asyncio
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from stitch_tui.tools.emulator import Emulator, FrontEnd, Mode
from stitch_tui.tools.verdict import Category, Finding
from tests.tools.emulator.judge import Answer, Call, findings_of, running

BUGS = Path(__file__).parent / "bugs"
MARK = re.compile(r"// BUG: (\S+)")
ENDLESS, STALE = "b24_endless_loop", "b27_stale_read_back"
WHOLE_PROGRAM = {"b12_unjoined_stream": "unjoined-stream", "b19_tail_unwritten": "output-not-written"}
"""Bugs of the whole program, reported without a line."""
UNSEEN_AFTER_NVCC = {
    "b08_int_overflow",
    "b21_local_array",
    "b22_shared_row",
    "b13_misaligned",
    "b26_cublas_ld",
}
"""nvcc compiles the first three away, names b13 one line late, and b26 needs cuBLAS's headers."""


@dataclass(frozen=True)
class Planted:
    path: Path
    lines: frozenset[int]
    kinds: frozenset[str]


def planted(path: Path) -> Planted:
    marks = ((number, MARK.search(line)) for number, line in enumerate(path.read_text().splitlines(), 1))
    marked = [(number, mark[1]) for number, mark in marks if mark]
    kinds = (kind for _, text in marked for kind in text.split("|"))
    return Planted(path, frozenset(number for number, _ in marked), frozenset(kinds))


def names() -> list[str]:
    return sorted(path.stem for path in BUGS.glob("b*.cu"))


LOCATED = sorted(set(names()) - set(WHOLE_PROGRAM) - {ENDLESS, STALE})


def slow(names: list[str]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


def call() -> Call:
    x = torch.arange(1, 4097, dtype=torch.float32)
    return Call([x], [torch.empty_like(x)])


async def reported(
    emulator: Emulator, name: str, front_end: FrontEnd = FrontEnd.SOURCE, mode: Mode = Mode.CHECK
) -> tuple[Answer | None, list[Finding]]:
    build = await emulator.build(BUGS / f"{name}.cu", mode, front_end=front_end)
    return await findings_of(emulator, build, call())


def found(bug: Planted, findings: list[Finding]) -> bool:
    return any(
        f.line in bug.lines and f.file == bug.path.name and f.detail["kind"] in bug.kinds for f in findings
    )


@pytest.mark.parametrize("name", [*LOCATED[::3], *slow(LOCATED[1::3]), *slow(LOCATED[2::3])])
def test_a_planted_bug_is_found_on_its_line(emulator: Emulator, name: str) -> None:
    _, findings = asyncio.run(reported(emulator, name))
    assert found(planted(BUGS / f"{name}.cu"), findings), findings


@pytest.mark.parametrize(("name", "kind"), WHOLE_PROGRAM.items())
def test_a_bug_of_the_whole_program_is_reported(emulator: Emulator, name: str, kind: str) -> None:
    _, findings = asyncio.run(reported(emulator, name))
    assert kind in {f.detail["kind"] for f in findings}


def test_reading_back_before_synchronising_shows_in_the_result(emulator: Emulator) -> None:
    answer, _ = asyncio.run(reported(emulator, STALE))
    assert answer
    assert answer.outputs[0][5] == 0, "the candidate saw the stale value and cleared its output"


def test_an_endless_loop_is_ended_by_the_judge(emulator: Emulator) -> None:
    async def run() -> int | None:
        build = await emulator.build(BUGS / f"{ENDLESS}.cu", Mode.FAST)
        async with running(emulator, build) as runner:
            with pytest.raises(TimeoutError):
                await runner.call("run", call(), timeout=1)
        return runner.process.returncode

    assert asyncio.run(run()) != 0


def test_a_race_names_both_accesses_and_the_thread(emulator: Emulator) -> None:
    _, findings = asyncio.run(reported(emulator, "b01_missing_sync"))
    race = next(f for f in findings if f.detail["kind"] == "race-read-after-write")
    assert race.category is Category.RACE
    assert (race.other_line, race.line) == (6, 8)
    assert re.fullmatch(r"rev block \(\d+,0,0\) thread \(\d+,0,0\)", race.where)


def test_an_access_past_a_tensor_says_which_and_how_far(emulator: Emulator) -> None:
    _, findings = asyncio.run(reported(emulator, "b03_oob_write"))
    past = next(f for f in findings if f.category is Category.OUT_OF_BOUNDS)
    assert "past the end of out:0" in past.message


def test_fast_mode_notices_a_write_past_a_tensor(emulator: Emulator) -> None:
    _, findings = asyncio.run(reported(emulator, "b03_oob_write", mode=Mode.FAST))
    assert Category.OUT_OF_BOUNDS in {f.category for f in findings}


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="the ptx front end needs nvcc")
@pytest.mark.parametrize("name", sorted(set(LOCATED) - UNSEEN_AFTER_NVCC))
def test_a_planted_bug_is_found_after_nvcc(emulator: Emulator, name: str) -> None:
    _, findings = asyncio.run(reported(emulator, name, FrontEnd.PTX))
    assert found(planted(BUGS / f"{name}.cu"), findings), findings
