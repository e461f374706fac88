"""Honest kernels are never accused: joined in one emulated unit, and (slow) each as a file of its own."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from stitch_tui.tools.emulator import Emulator, Mode
from stitch_tui.tools.screen import screen_source
from stitch_tui.tools.worker.checking import Trials, examine
from stitch_tui.tools.worker.rig import Launch
from stitch_tui.tools.worker.target import Slot
from tests.hacks.judging import Court, LinearAndSums

from .kernels import HEAD, HONEST, MODEL, Honest

QUICK = HONEST[::8]
"""Programs of the default run."""
TRIALS = Trials(small=("small_1", "small_2"), full=1)


class One(LinearAndSums):
    """One output of the model, computed by the program with a number of the joined unit."""

    def __init__(self, program: int, output: int) -> None:
        super().__init__()
        self.output, self.ints = output, [program]
        self.outputs = [Slot("y", "activation", torch.float32)]

    def evaluate(
        self, tensors: list[torch.Tensor], precision: str, variant: str = "full"
    ) -> list[torch.Tensor]:
        x = tensors[0].double() if precision == "f64" else tensors[0]
        both = super().evaluate(tensors, precision, variant)
        return [[*both, torch.tanh(x) * 2 + x][self.output]]

    def operators(self) -> set[str]:
        names = ({"linear.default", "relu.default"}, {"sum.dim_IntList"}, {"tanh.default"})
        return {f"aten.{name}" for name in names[self.output]}


def joined(programs: tuple[Honest, ...]) -> str:
    """One unit with all programs, each in its namespace; the first integer of a call chooses."""
    parts = [HEAD]
    choices: dict[str, list[str]] = {"sizes": [], "bind": [], "run": []}
    for number, program in enumerate(programs):
        parts.append(f"namespace p{number} {{\n{program.body(f'p{number}')}\n}}")
        for verb, present in (("sizes", program.sizes), ("bind", program.bind), ("run", program.run)):
            more = ", workspace, bound" if verb == "sizes" else ""
            if present:
                choices[verb].append(f"    case {number}: return p{number}::p{number}_{verb}(c{more});\n")
    for verb, cases in choices.items():
        more = ", int64_t* workspace, int64_t* bound" if verb == "sizes" else ""
        zero = "  *workspace = *bound = 0;\n" if verb == "sizes" else ""
        parts.append(
            f'extern "C" int stitch_{verb}(const stitch_call* c{more}) {{\n{zero}  switch (c->ints[0]) {{\n'
            + "".join(cases)
            + "  }\n  return STITCH_OK;\n}\n"
        )
    return "\n".join(parts)


def built(folder: Path, programs: tuple[Honest, ...]) -> Launch:
    source = folder / "honest.cu"
    source.write_text(joined(programs))
    emulator = Emulator(folder / "cache")
    build = asyncio.run(emulator.build(source, Mode.FAST, timeout=280))
    assert build.ok, build.diagnostics[:3]
    return Launch(tuple(emulator.runner_argv(build)), env=emulator.runner_env(order=3), deadline_s=20.0)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    return built(tmp_path_factory.mktemp("quick"), QUICK)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    return built(tmp_path_factory.mktemp("whole"), HONEST)


def require_correct(number: int, program: Honest, launch: Launch) -> None:
    report = examine(One(number, program.output), launch, TRIALS, lambda *_: None)
    assert report["category"] == "correct", report["findings"]


def titled(program: Honest) -> str:
    return program.name


def test_there_are_more_than_sixty_different_programs() -> None:
    assert len({program.source for program in HONEST}) == len(HONEST) > 60


@pytest.mark.parametrize("program", HONEST, ids=titled)
def test_the_screen_accuses_no_honest_program(program: Honest) -> None:
    assert screen_source(program.source, "honest.cu").evidence == ()


@pytest.mark.parametrize("number", range(len(QUICK)), ids=lambda number: QUICK[number].name)
def test_the_trials_accuse_none_of_some(number: int, quick: Launch) -> None:
    require_correct(number, QUICK[number], quick)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(HONEST)), ids=lambda number: HONEST[number].name)
def test_the_trials_accuse_no_honest_program(number: int, whole: Launch) -> None:
    require_correct(number, HONEST[number], whole)


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    opened = Court(tmp_path_factory.mktemp("court"), MODEL)
    yield opened
    opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("program", HONEST, ids=titled)
def test_no_honest_file_is_accused(program: Honest, court: Court, tmp_path: Path) -> None:
    source = tmp_path / "honest.cu"
    source.write_text(program.source)
    found = court.kernel(source, program.output)
    assert found.category == "correct", found
