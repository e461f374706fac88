"""``stitch selftest``: the corpus is whole, and (slow) every candidate gets its verdict on the emulator."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stitch_tui.tools.screen import screen_source
from stitch_tui.tools.selftest import Row, passed
from stitch_tui.tools.selftest_corpus import CORPUS, Kind

ROOT = Path(__file__).resolve().parents[2]


def test_the_corpus_has_every_kind_under_names_of_its_own() -> None:
    assert len({case.name for case in CORPUS}) == len(CORPUS)
    assert {case.kind for case in CORPUS} == set(Kind)
    for case in CORPUS:
        assert case.suffix in (".cu", ".py")
        assert not case.line or case.line in case.text
        if case.kind is Kind.HONEST and case.suffix == ".cu":
            assert screen_source(case.text, "candidate.cu").evidence == ()


def test_it_passes_only_when_something_was_judged_and_all_of_it_rightly() -> None:
    good, bad = (Row("honest", "a kernel", "correct", verdict, 1.0) for verdict in (True, False))
    assert passed([good])
    assert not passed([good, bad])
    assert not passed([])


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_every_candidate_gets_the_verdict_that_it_must(tmp_path: Path, cache_home: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache_home)}
    command = [sys.executable, "-m", "stitch_tui", "selftest", "--device", "emulator", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert [row for row in report["rows"] if not row["good"]] == []
    assert report["passed"]
    assert done.returncode == 0
