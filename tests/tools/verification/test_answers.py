"""A runner's lines as the judge reads them: what no runner writes is evidence, and never an error of ours."""

import json
from typing import Any

import pytest

from stitch_tui.tools.verdict import Category
from stitch_tui.tools.worker.answers import (
    Busy,
    done_of,
    finding_of,
    is_category,
    reported_fault,
    times_of,
    watched_of,
)
from stitch_tui.tools.worker.candidate_fault import CATEGORIES, CandidateFault
from stitch_tui.tools.worker.module_faults import finding

EMULATORS = {
    "kind": "race-write-write",
    "severity": "error",
    "file": "a.cu",
    "line": 3,
    "line2": 0,
    "pc": "0x55d0c0ffee",
    "pc2": "0x0",
    "where": "block 0, thread 1",
    "msg": "two threads write",
}


def test_the_judge_knows_every_category_of_a_fault() -> None:
    assert {category.value for category in Category} == CATEGORIES | {"correct"}
    assert is_category("in_reference")
    assert not is_category("correct")


def test_findings_of_both_runners_are_taken_as_they_are() -> None:
    assert finding_of(json.dumps(EMULATORS)) == EMULATORS
    kind, _, told = finding("shape", "y is flat").rstrip().partition(" ")
    fault = reported_fault([finding_of(told)], "in run")
    assert kind == "finding"
    assert fault
    assert (fault.category, fault.message) == ("shape", "y is flat")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"severity": "error", "category": "nonsense"}',
        '{"severity": "error", "category": "correct"}',
        '{"severity": ["error"]}',
        '{"more": "of it"}',
        *(json.dumps(EMULATORS | changed) for changed in (
            {"pc": "zz"}, {"pc": 5}, {"pc2": "0x"}, {"line": "3"}, {"line": 3.5}, {"line2": True},
            {"msg": None},
        )),
    ],
)  # fmt: skip
def test_a_finding_that_no_runner_writes_is_evidence(text: str) -> None:
    with pytest.raises(CandidateFault, match="no runner writes") as raised:
        finding_of(text)
    assert raised.value.category == "hack_suspected"


def test_answers_to_what_was_asked_are_read() -> None:
    assert times_of("n 1.5 2", "n") == [1.5, 2.0]
    assert watched_of("n 12.5 3", "n") == {"busy": Busy(12.5, 3)}
    assert watched_of("n - another profiler", "n") == {"unwatched": "another profiler"}
    done = done_of("n 0 700 1.5 64 32", "n", 9.0, [], {"times": [1.0], "host": [2.0]})
    assert (done.rc, done.cuda_error, done.event_us, done.wall_us) == (0, 700, 1.5, 9.0)
    assert (done.workspace_bytes, done.bound_bytes, done.times_us, done.host_us) == (64, 32, [1.0], [2.0])


def done(text: str) -> Any:
    return done_of(text, "n", 0.0, [], {})


@pytest.mark.parametrize(
    ("read", "text"),
    [
        *((lambda text: times_of(text, "n"), text) for text in ("", "m 1", "n one")),
        *((lambda text: watched_of(text, "n"), text) for text in
          ("", "m 1 2", "n", "n 1", "n 1 2 3", "n x 2", "n nan 2", "n 1 2.5")),
        *((done, text) for text in
          ("", "m 0 0 0 0 0", "n 0 0 0 0", "n 0 0 0 0 0 0", "n x 0 0 0 0", "n 0 0 inf 0 0", "n 0 0 0 1e9 0",
           "\xe9 0 0 0 0 0")),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_to_what_was_asked_is_forged(read: Any, text: str) -> None:
    with pytest.raises(CandidateFault, match="forged") as raised:
        read(text)
    assert raised.value.category == "hack_suspected"
