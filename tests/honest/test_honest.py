"""Honest kernels are never accused: joined in units, by each stage of a verdict; some as files of their own.

A file of its own costs two builds with all of CUDA's headers; a unit with all programs costs one for a stage.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from stitch_tui.tools.decorative import emptied, uses_library
from stitch_tui.tools.emulator import Emulator, Mode
from stitch_tui.tools.screen import screen_source
from stitch_tui.tools.worker.checking import examine
from stitch_tui.tools.worker.launch import Launch
from stitch_tui.tools.worker.report import Trials
from stitch_tui.tools.worker.slots import Slot
from tests.hacks.judging import Court, LinearAndSums

from .kernels import HEAD, HONEST, MODEL, Honest
from .modules import MODULES, module

QUICK = HONEST[::8]
"""Programs of the default run."""
TRIALS = Trials(small=("small_1", "small_2"), full=1)
WATCHED = Trials(small=("small_1", "small_2"), full=0, distributions=False, metamorphic=False)
HOLLOW = Trials(small=("small_1",), full=0, distributions=False, metamorphic=False, decorative=True)
QUESTIONED = tuple(program for program in HONEST if emptied(program.source) is not None)
"""Those whose result could come from elsewhere than their kernels."""
CALLS_A_LIBRARY = "\nvoid library() { cublasCreate(nullptr); }\n"
"""Makes `emptied` ask, whatever the part of a program that it sees."""


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


def built(folder: Path, programs: tuple[Honest, ...], mode: Mode = Mode.FAST) -> Launch:
    source = folder / "honest.cu"
    source.write_text(joined(programs))
    emulator = Emulator(folder / "cache")
    build = asyncio.run(emulator.build(source, mode, timeout=280))
    assert build.ok, build.diagnostics[:3]
    return Launch(tuple(emulator.runner_argv(build)), env=emulator.runner_env(order=3), deadline_s=60.0)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    return built(tmp_path_factory.mktemp("quick"), QUICK)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    return built(tmp_path_factory.mktemp("whole"), HONEST)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    return built(tmp_path_factory.mktemp("watched"), HONEST, Mode.CHECK)


@pytest.fixture(scope="module")
def hollow(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    return built(tmp_path_factory.mktemp("hollow"), tuple(map(hollowed, QUESTIONED)))


def hollowed(program: Honest) -> Honest:
    """The program with every kernel emptied."""
    device = emptied(program.device + CALLS_A_LIBRARY)
    assert device is not None
    return replace(program, device=device.removesuffix(CALLS_A_LIBRARY))


def require_correct(number: int, program: Honest, launch: Launch, trials: Trials = TRIALS) -> None:
    report = examine(One(number, program.output), launch, trials, lambda *_: None)
    assert report["category"] == "correct", report["findings"]
    assert [finding for finding in report["raw"] if finding.get("severity") == "error"] == []


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


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(HONEST)), ids=lambda number: HONEST[number].name)
def test_no_access_of_an_honest_program_is_held_against_it(number: int, watched: Launch) -> None:
    require_correct(number, HONEST[number], watched, WATCHED)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(QUESTIONED)), ids=lambda number: QUESTIONED[number].name)
def test_no_honest_program_is_right_without_its_kernels(number: int, hollow: Launch) -> None:
    program = QUESTIONED[number]
    report = examine(One(number, program.output), hollow, HOLLOW, lambda *_: None)
    assert report["category"] != "correct" or uses_library(program.source)


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    opened = Court(tmp_path_factory.mktemp("court"), MODEL)
    yield opened
    opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("program", HONEST[5::22], ids=titled)
def test_no_honest_file_is_accused(program: Honest, court: Court, tmp_path: Path) -> None:
    source = tmp_path / "honest.cu"
    source.write_text(program.source)
    found = court.kernel(source, program.output)
    assert found.category == "correct", found


@pytest.fixture(scope="module")
def of_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    opened = Court(tmp_path_factory.mktemp("modules"))
    yield opened
    opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_no_honest_module_is_accused(name: str, of_modules: Court, tmp_path: Path) -> None:
    source = tmp_path / "candidate.py"
    source.write_text(module(**MODULES[name]))
    found = of_modules.module(source)
    assert found.category == "correct", found
