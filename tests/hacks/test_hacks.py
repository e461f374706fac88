"""Every hack is caught, with its category and its evidence."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .judging import MODELS, Court, hosted, path_of, screened
from .table import CASES, HACKS, Case, Run

QUICK = ("02_hidden_thread", "21_hidden_flags", "23_later", "23_silenced")
"""Module candidates of the default run; each needs an interpreter with torch."""


def cases(*runs: Run, quick: bool | None = None) -> list[Case]:
    chosen = [case for case in CASES if case.run in runs]
    return [case for case in chosen if quick is None or (case.name in QUICK) is quick]


def titled(case: Case) -> str:
    return f"{case.number:02} {HACKS[case.number]}: {case.name or 'native'}"


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    opened = Court(tmp_path_factory.mktemp("court"))
    yield opened
    opened.close()


def test_every_hack_of_the_list_has_a_candidate() -> None:
    assert {case.number for case in CASES} == set(HACKS) == set(range(1, 39))


@pytest.mark.parametrize("case", cases(Run.SCREEN), ids=titled)
def test_the_screen_sees(case: Case) -> None:
    found = screened(case)
    assert found.catches(case), found


@pytest.mark.parametrize("case", cases(Run.HOST), ids=titled)
def test_the_trials_catch(case: Case, tmp_path: Path) -> None:
    found = hosted(case.number, tmp_path)
    assert found.catches(case), found


def test_the_honest_form_of_the_native_candidate_passes(tmp_path: Path) -> None:
    found = hosted(0, tmp_path)
    assert found.category == "correct", found


def test_a_process_started_by_a_library_is_refused(tmp_path: Path) -> None:
    found = hosted(33, tmp_path)
    assert found.category == "correct", "the fork fails, what remains is honest"


@pytest.mark.parametrize("case", cases(Run.MODULE, quick=True), ids=titled)
def test_the_module_runner_notices(case: Case, court: Court) -> None:
    found = court.module(path_of(case), small_shapes=False)
    assert found.catches(case), found


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(Run.MODULE, quick=False), ids=titled)
def test_a_module_is_caught(case: Case, court: Court, tmp_path: Path) -> None:
    judged = Court(tmp_path, MODELS[case.name]) if case.name in MODELS else court
    found = judged.module(path_of(case), beside=case.beside)
    assert found.catches(case), found
    if judged is not court:
        judged.close()


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(Run.EMULATOR), ids=titled)
def test_the_emulator_catches(case: Case, court: Court) -> None:
    found = court.kernel(path_of(case))
    assert found.catches(case), found


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(Run.DEVICE), ids=titled)
def test_a_library_on_a_device_is_caught(case: Case, court: Court) -> None:
    found = court.numbered(case.number)
    assert found.catches(case), found


@pytest.mark.slow
def test_the_honest_form_of_the_device_s_candidate_passes(court: Court) -> None:
    found = court.numbered(0)
    assert found.category == "correct", found
