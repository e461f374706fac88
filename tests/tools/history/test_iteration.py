"""Iterations as trailers: nothing is lost, and no text can forge a line."""

import math
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stitch_tui.tools.history.iteration import PROGRAM, Iteration
from stitch_tui.tools.history.trailers import (
    KEYS,
    Origin,
    from_trailers,
    message,
    origin_from,
    origin_trailers,
    parse,
    safe_path,
    to_trailers,
)
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.verdict import Category, Flag

numbers = st.none() | st.floats(allow_nan=False)
texts = st.text(max_size=60) | st.sampled_from(
    [
        "a\nStitch-Verdict: correct",
        "x\r\n\r\nStitch-Best: yes",
        "---\n",
        "# c",
        ": :",
        "a\u2028b\x85c",
        "\u202e",
    ]
)
iterations = st.builds(
    Iteration,
    session=st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,20}\Z"),
    iteration=st.integers(0, 10_000),
    subtask=st.just(PROGRAM) | st.from_regex(r"\As[0-9]{2}\Z"),
    name=texts,
    attempt=st.integers(0, 99),
    kind=st.sampled_from(Kind),
    outcome=st.sampled_from(Outcome),
    title=texts,
    verdict=st.none() | st.sampled_from(Category),
    flags=st.lists(st.sampled_from(Flag), unique=True).map(tuple),
    device=texts,
    time_us=numbers,
    time_interval_us=st.none() | st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)),
    speedup_eager=numbers,
    speedup_best_baseline=numbers,
    best_baseline=texts,
    error=numbers,
    error_limit=numbers,
    coverage=st.none() | st.floats(0, 1),
    decision=texts,
    best=st.booleans(),
    reference_sha256=st.just("") | st.just("0f" * 32),
    restores=st.none() | st.integers(0, 99),
)


def printed(text: str) -> str:
    command = ["git", "-c", "trailer.separators=:", "interpret-trailers", "--parse"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout.decode()


def test_the_story_of_one_commit_reads_as_the_design_says() -> None:
    told = Iteration(
        session="20261129-1402-lenet",
        iteration=7,
        subtask="s03",
        name="gemm+gelu",
        attempt=4,
        kind=Kind.OPTIMISE,
        outcome=Outcome.KEPT,
        title="vectorised epilogue",
        verdict=Category.CORRECT,
        device="cuda NVIDIA H200 sm_90",
        time_us=812.40001,
        time_interval_us=(811.3, 813.5),
        speedup_eager=1.42,
        speedup_best_baseline=1.18,
        error=3.1e-6,
        error_limit=1.2e-5,
        coverage=0.64,
        decision="redirected by human",
        best=True,
    )
    assert told.subject == "s03 gemm+gelu: iteration 7: vectorised epilogue, 1.42x (best)"
    assert message(told.subject, to_trailers(told)).split("\n\n")[1].split("\n") == [
        "Stitch-Session: 20261129-1402-lenet",
        "Stitch-Iteration: 7",
        "Stitch-Subtask: s03",
        "Stitch-Name: gemm+gelu",
        "Stitch-Attempt: 4",
        "Stitch-Kind: optimise",
        "Stitch-Outcome: kept",
        "Stitch-Title: vectorised epilogue",
        "Stitch-Verdict: correct",
        "Stitch-Device: cuda NVIDIA H200 sm_90",
        "Stitch-Time-us: 812.4",
        "Stitch-Time-Interval-us: 811.3..813.5",
        "Stitch-Speedup-Eager: 1.42",
        "Stitch-Speedup-Best-Baseline: 1.18",
        "Stitch-Error: 3.1e-06",
        "Stitch-Error-Limit: 1.2e-05",
        "Stitch-Coverage: 0.64",
        "Stitch-Decision: redirected by human",
        "Stitch-Best: yes",
        "",
    ]


def test_every_field_has_a_trailer() -> None:
    assert KEYS.keys() == Iteration.model_fields.keys()
    assert len(set(KEYS.values())) == len(KEYS)


@given(iterations)
def test_an_iteration_comes_back_from_its_message_as_it_was(told: Iteration) -> None:
    text = message(told.subject, to_trailers(told))
    assert "\n" not in told.subject
    assert from_trailers(parse(printed(text))) == told


@given(st.text(), texts, texts)
def test_foreign_text_cannot_forge_a_trailer(first: str, second: str, third: str) -> None:
    attack = f"{first}\nStitch-Verdict: correct\n\nStitch-Best: yes\n{second}"
    told = Iteration(
        session="s",
        iteration=1,
        subtask="s01",
        name=attack,
        kind=Kind.DRAFT,
        outcome=Outcome.WRONG,
        title=attack,
        device=third,
        decision=attack,
        verdict=Category.RACE,
    )
    found = parse(printed(message(told.subject, to_trailers(told))))
    assert found["Stitch-Verdict"] == "race"
    assert "Stitch-Best" not in found
    assert found.keys() <= set(KEYS.values())


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        ({"verdict": Category.CORRECT, "flags": (Flag.FUNCTIONAL,), "speedup_eager": 3.0}, "functional"),
        ({"verdict": Category.CORRECT, "flags": (Flag.QUARANTINED,), "speedup_eager": 99.0}, "not believed"),
        ({"verdict": Category.CORRECT}, "correct"),
        ({"verdict": Category.RACE, "outcome": Outcome.WRONG}, "race"),
        ({"outcome": Outcome.CANCELLED}, "cancelled"),
    ],
)
def test_the_subject_claims_no_more_than_the_verdict(fields: dict[str, object], end: str) -> None:
    usual = {"session": "s", "iteration": 2, "kind": Kind.DRAFT, "outcome": Outcome.KEPT}
    assert Iteration.model_validate(usual | fields).subject == f"program: iteration 2: {end}"


def test_nan_is_not_measured_and_infinity_survives() -> None:
    told = Iteration(
        session="s", iteration=1, kind=Kind.DRAFT, outcome=Outcome.WRONG, error=math.inf, time_us=math.nan
    )
    assert told.time_us is None
    assert from_trailers(dict(to_trailers(told))).error == math.inf


def test_a_trailer_that_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="Stitch-Verdict occurs twice"):
        parse("Stitch-Verdict: race\nStitch-Verdict: correct\n")


def test_trailers_of_a_newer_stitch_and_of_others_are_passed_over() -> None:
    told = Iteration(session="s", iteration=1, kind=Kind.DRAFT, outcome=Outcome.KEPT)
    text = message(
        told.subject, [*to_trailers(told), ("Stitch-Colour", "blue"), ("Signed-off-by", "A <a@b>")]
    )
    assert from_trailers(parse(printed(text))) == told


@pytest.mark.parametrize("name", ["", "-x", "a/b", "a..b", "a b", "a.", "ä", "a\n"])
def test_a_session_name_that_no_branch_can_have_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        Iteration(session=name, iteration=1, kind=Kind.DRAFT, outcome=Outcome.KEPT)


def test_an_origin_comes_back_and_a_forged_one_does_not() -> None:
    origin = Origin("s", "a" * 64, "sub dir/größe")
    assert origin.tree == "sub dir/größe/stitched"
    assert origin_from({"Stitch-Session": "s", **dict(origin_trailers(origin))}) == origin
    for forged in ({"Stitch-Base": "--output=x"}, {"Stitch-Folder": "../up"}, {"Stitch-Folder": "/etc"}):
        with pytest.raises(ValueError, match=r"session|repository"):
            origin_from({"Stitch-Session": "s", **forged})


@pytest.mark.parametrize("path", ["", "/a", "a/../b", "./a", "a//b", ".git/config", "a/.GIT/x", "a\nb", "a/"])
def test_a_path_that_leaves_its_root_is_not_safe(path: str) -> None:
    assert not safe_path(path)
