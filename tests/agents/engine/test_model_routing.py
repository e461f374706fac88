"""Where a session with models goes after each kind of answer, event by event; the judge is a recording."""

import subprocess
from typing import Any

import pytest
from engine_here import AUTO, KEY, Run
from engine_projects import Project, of_type, send, until
from openai_server import Reply, error
from scripted_engine import ScriptedVerifier
from scripted_model import ADVICE, ScriptedModel, answer, plan, pointwise, settings

from stitch_tui.agents import commands
from stitch_tui.agents.events import Event
from stitch_tui.tools.errors import ReferenceFault, UsageError
from stitch_tui.tools.iteration import Outcome

CODE = answer(pointwise("v"))
WHOLE = ["relu", "mul", "layer_norm"]
LEFT = [(["logcumsumexp", "sigmoid"], "a scan is as fast in PyTorch")]
FRONT = plan(("front", WHOLE), left=LEFT)
AGAIN = plan(("relu, doubled", ["relu", "mul"]), ("norm", ["layer_norm"]), left=LEFT)


def said(printed: list[Event], kind: str) -> list[Any]:
    return [event for event in printed if event.type == kind]


def test_the_story_of_a_session_with_three_models(run: Run) -> None:
    model = ScriptedModel([FRONT], [CODE, answer(pointwise("v * 2.0f"), followed="yes")], [ADVICE])
    code, printed = run(model, "planner", "coder", "verifier", wrong=[1])
    assert code == 0
    wanted = (
        "exchange",
        "plan.proposed",
        "code.written",
        "verdict",
        "iteration.committed",
        "advice",
        "route",
    )
    assert [event.type for event in printed if event.type in wanted] == [
        "exchange",
        "plan.proposed",
        "exchange",
        "code.written",
        "verdict",
        "iteration.committed",
        "exchange",
        "advice",
        "route",
        "exchange",
        "code.written",
        "verdict",
        "iteration.committed",
        "route",
        "verdict",
        "iteration.committed",
    ]
    (started,) = said(printed, "session.started")
    assert started.roles == {"planner": "tiny", "coder": "tiny", "verifier": "tiny"}
    assert [event.stage for event in said(printed, "exchange")] == ["plan", "draft", "advise", "repair"]
    assert "".join(event.text for event in said(printed, "coder.delta")) == CODE + answer(
        pointwise("v * 2.0f"), followed="yes"
    )
    session = run.project.session
    assert session.used.input == 4 * 120
    assert session.used.calls == 4


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (plan(("a", ["relu"]), ("b", ["relu", "mul"])), "belongs to"),
        (plan(("a", ["nothing"])), "no such node"),
        (plan(("a", ["relu", "sigmoid"]), ("b", ["mul"])), "not convex|wait for each other|given|belongs"),
        (plan(), "no subtask"),
        ("I would fuse everything.", "no JSON object"),
    ],
    ids=["overlapping", "unknown", "cyclic", "empty", "prose"],
)
def test_a_plan_that_does_not_hold_goes_back_with_the_reason(
    run: Run, bad: dict[str, Any] | str, why: str
) -> None:
    model = ScriptedModel([bad, FRONT], [CODE])
    code, _ = run(model, "planner", "coder")
    assert code == 0
    assert len(model.prompts["planner"]) == 2
    assert any(word in model.prompts["planner"][1] for word in why.split("|"))
    assert [s.title for s in run.project.session.subtasks] == ["front"]


def test_what_does_not_build_hangs_or_is_slower_is_routed_event_by_event(run: Run) -> None:
    answers = [answer(pointwise(f"v + {number}.0f"), f"way {number}") for number in range(1, 6)]
    model = ScriptedModel([FRONT], answers)
    code, printed = run(
        model,
        *("planner", "coder"),
        wrong={"1": "build_error", "2": "hang"},
        timed=[],
        limits={"iterations": 9},
        goal={"stagnation": 2},
        session={"host_program": False},
    )
    assert code == 0
    verdicts = [(e.verdict.category, e.outcome) for e in said(printed, "verdict") if e.subtask]
    assert verdicts == [
        ("build_error", Outcome.ERROR),
        ("hang", Outcome.WRONG),
        ("correct", Outcome.KEPT),
        ("correct", Outcome.SLOWER),
        ("correct", Outcome.SLOWER),
    ]
    routes = [(event.next, event.reason) for event in said(printed, "route")]
    assert routes == [
        ("repair", "the last attempt was not correct"),
        ("repair", "the last attempt was not correct"),
        ("optimise", "correct; the next strategy may be faster"),
        ("optimise", "correct; the next strategy may be faster"),
        ("done", "no improvement in 2 attempts"),
    ]
    stages = [event.stage for event in said(printed, "exchange") if event.role == "coder"]
    assert stages == ["draft", "repair", "repair", "optimise", "optimise"]
    assert run.project.session.subtask("s01").best == 3


MALFORMED = {
    "```python\nimport torch\n```": "holds Python",
    "```cuda\nint x;\n": "no complete ```cuda fence",
    answer("int x;\n// ... rest unchanged\n__global__ void f() {}\n"): "something is left out",
    answer('#include "stitch.h"\nextern "C" int stitch_run(const stitch_call* c) { return 0; }\n'): (
        "there is no `__global__` kernel"
    ),
    answer(pointwise("v").replace("stitch_run", "run")): "there is no `extern",
    "<<<<<<< SEARCH\nint z;\n=======\nint y;\n>>>>>>> REPLACE\n": "fits no place in the file",
    "<think>```cuda\nint x;\n```": "the answer is empty",
    "```makefile\nall: s01.cu\n```": "no complete ```cuda fence",
    '{"code": "see the attachment"}': "no complete ```cuda fence",
}
WRAPPED = f"<think>first ```cuda\nint x;\n```</think>\r\n{CODE}".replace("\n", "\r\n")


def test_every_malformed_answer_has_its_reason_and_none_ends_the_session(run: Run) -> None:
    """Three to an iteration; then a good one, in carriage returns and behind a thought."""
    model = ScriptedModel([FRONT], [*MALFORMED, WRAPPED])
    code, printed = run(model, "planner", "coder", limits={"iterations": 4})
    assert code == 0
    outcomes = [i.outcome for i in run.project.session.iterations if i.subtask]
    assert outcomes == [Outcome.ERROR, Outcome.ERROR, Outcome.ERROR, Outcome.KEPT]
    refused = [i.candidate.refused for i in run.project.session.iterations if i.candidate]
    told = [*model.prompts["coder"], *refused]
    for reason in MALFORMED.values():
        assert any(reason in text for text in told), reason
    assert all(i.commit for i in run.project.session.iterations)
    assert said(printed, "error") == []


def test_a_planner_that_never_learns_is_replaced_by_the_built_in_one(run: Run) -> None:
    code, printed = run(ScriptedModel(["no"]), "planner")
    assert code == 0
    assert any("the built-in plan is used" in event.text for event in said(printed, "warning"))


def test_a_hot_node_is_left_out_only_with_a_reason(run: Run) -> None:
    model = ScriptedModel([plan(("front", ["relu"])), FRONT], [CODE])
    run(model, "planner", "coder")
    assert "`left` gives no reason" in model.prompts["planner"][1]
    assert run.project.session.plan
    assert LEFT[0][1] in {left.reason for left in run.project.session.plan.uncovered}


def test_a_plan_that_covers_less_than_the_goal_is_not_taken(run: Run) -> None:
    model = ScriptedModel([plan(("front", ["relu"])), FRONT], [CODE])
    _, printed = run(model, "planner", "coder", goal={"min_coverage": 1.0})
    assert "100% are wanted" in model.prompts["planner"][1]
    assert any("the built-in plan is used" in event.text for event in said(printed, "warning"))


def test_an_answer_without_a_candidate_is_an_iteration_and_is_never_built(run: Run) -> None:
    model = ScriptedModel([FRONT], [*["I cannot help with that."] * 3, CODE])
    code, _ = run(model, "planner", "coder")
    assert code == 0
    first = run.project.session.iterations[0]
    assert first.outcome is Outcome.ERROR
    assert first.candidate is not None
    assert first.candidate.refused == "the answer holds no complete ```cuda fence"
    assert first.commit
    assert len(model.prompts["coder"]) == 4
    assert "cannot be used" in model.prompts["coder"][1]


def test_a_plan_anew_takes_the_place_of_a_subtask_that_gets_nowhere(run: Run) -> None:
    model = ScriptedModel([FRONT, AGAIN], [CODE])
    code, printed = run(
        model, "planner", "coder", wrong=[1, 2], limits={"iterations": 9}, goal={"replan_after": 2}
    )
    assert code == 0
    states = {s.id: str(s.state) for s in run.project.session.subtasks}
    assert states == {"s01": "skipped", "s02": "done", "s03": "done"}
    assert said(printed, "plan.updated")
    assert "got nowhere" in model.prompts["planner"][1]
    assert "replan" in [event.next for event in said(printed, "route")]


def test_recommendations_that_are_ignored_twice_lead_to_a_plan_anew(run: Run) -> None:
    stubborn = answer(pointwise("v + 1.0f"), followed="no, I know better")
    unchanged = answer(pointwise("v + 1.0f"), followed="yes, as you said")
    model = ScriptedModel([FRONT, AGAIN], [CODE, stubborn, unchanged, CODE], [ADVICE])
    code, printed = run(model, "planner", "coder", "verifier", wrong=[1, 2, 3], limits={"iterations": 9})
    reasons = [event.reason for event in said(printed, "route") if event.next == "replan"]
    assert reasons == ["what was recommended was not followed 2 times"]
    assert code == 0


def test_a_plan_anew_that_drops_the_hard_part_is_no_success(run: Run) -> None:
    drops = plan(("relu", ["relu"]), left=[(["mul", "layer_norm"], "too hard")])
    model = ScriptedModel([FRONT, drops], [CODE])
    code, _ = run(model, "planner", "coder", wrong=[1, 2], limits={"iterations": 9}, goal={"replan_after": 2})
    assert code == 1
    assert run.project.session.subtask("s01").state == "failed"


def test_a_kernel_that_makes_the_program_wrong_is_found_and_its_subtask_reopened(run: Run) -> None:
    coder = [CODE, answer(pointwise("v * 3.0f")), answer(pointwise("v * 4.0f"))]
    model = ScriptedModel([AGAIN], coder)
    code, printed = run(model, "planner", "coder", wrong=[0], guilty="v * 3.0f")
    assert code == 0
    (reopened,) = said(printed, "subtask.reopened")
    assert reopened.subtask == "s02"
    assert "wrong in the program" in model.prompts["coder"][2]
    outcomes = [(i.subtask, i.outcome) for i in run.project.session.iterations if i.verdict]
    assert outcomes == [
        ("s01", Outcome.KEPT),
        ("s02", Outcome.WRONG),
        ("", Outcome.WRONG),
        ("s02", Outcome.KEPT),
        ("", Outcome.KEPT),
    ]


def test_a_reference_that_fails_in_the_program_ends_the_run_and_no_kernel_is_reopened(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def constructed(*_: Any, **__: Any) -> None:
        raise ReferenceFault("the reference cannot be constructed a second time", where="model.py")

    monkeypatch.setattr(ScriptedVerifier, "verify_program", constructed)
    code, printed = run(ScriptedModel([AGAIN], [CODE]), "planner", "coder")
    assert code == 2
    assert printed[-1].reason == "model.py: the reference cannot be constructed a second time"
    assert said(printed, "subtask.reopened") == []
    session = run.project.session
    assert [(s.id, s.best) for s in session.kernels] == [("s01", 1), ("s02", 2)]
    assert [i.outcome for i in session.iterations[:3]] == [Outcome.KEPT, Outcome.KEPT, Outcome.CANCELLED]


FAULTS = {
    "key": (error(401, f"bad key {KEY}"), 4),
    "model": (error(404, "The model `tiny` does not exist", "model_not_found"), 4),
    "html": (Reply(body=b"<html>hello</html>", content_type="text/html"), 4),
    "down": (error(503, "overloaded", retry_after="0.01"), 4),
}


@pytest.mark.parametrize(
    "name", ["key", *(pytest.param(n, marks=pytest.mark.slow) for n in FAULTS if n != "key")]
)
def test_an_endpoint_that_fails_ends_the_run_resumably_and_no_iteration_is_lost(run: Run, name: str) -> None:
    reply, exit_code = FAULTS[name]
    model = ScriptedModel([FRONT], [CODE, reply], [ADVICE])
    code, printed = run(model, "planner", "coder", "verifier", wrong=[1])
    assert code == exit_code
    assert [i.outcome for i in run.project.session.iterations] == [Outcome.WRONG]
    assert run.project.session.iterations[0].commit
    (failed,) = said(printed, "error")
    assert (failed.kind, failed.exit_code) == ("ModelFault", exit_code)
    assert KEY not in run.project.journal.read_text()
    code, _ = run(ScriptedModel(coder=[CODE]), "coder", resume="")
    assert code == 0
    assert [i.outcome for i in run.project.session.iterations][:2] == [Outcome.WRONG, Outcome.KEPT]


def test_limits_on_tokens_and_rules_against_the_network_end_a_run(run: Run) -> None:
    model = ScriptedModel([FRONT], [CODE])
    code, printed = run(model, "planner", "coder", limits={"tokens": 100})
    assert code == 5
    assert "100 tokens" in printed[-1].reason
    denied = {"autonomy": {"mode": "auto", "deny": ["network"]}}
    code, printed = run(model, "planner", **denied)
    assert len(model.prompts["planner"]) == 1
    assert code == 6
    assert "ask a model" in printed[-1].reason


def test_a_redirect_now_stops_the_stream_and_reaches_the_next_prompt(project: Project) -> None:
    model = ScriptedModel(coder=[Reply(CODE, end="stalled"), CODE])
    with model.served() as server:
        engine = project.start(settings=settings(server.url, "coder") | AUTO)
        until(engine, of_type("coder.delta"))
        (reply,) = send(project, commands.Redirect(generation=0, subtask="s01", text="use float4", now=True))
        assert (reply.ok, reply.text) == (True, "now")
        printed = until(engine, of_type("code.written"))
    (cut,) = [e for e in said(printed, "exchange") if e.problem]
    assert cut.problem == "cancelled"
    assert cut.answer
    assert CODE.startswith(cut.answer)
    assert "A person directs you: use float4" in model.prompts["coder"][1]


def test_settings_that_cannot_work_end_a_run_before_it_begins(run: Run) -> None:
    with pytest.raises(UsageError, match="no endpoint for this role"):
        run.with_settings({"models": {"coder": {"provider": "openai", "model": "tiny"}}})
    assert not (run.project.folder / ".stitch").exists()


def test_a_key_that_the_endpoint_sends_back_is_nowhere(run: Run) -> None:
    source = f"// {KEY}\n{pointwise('v')}"
    model = ScriptedModel([{**FRONT, "analysis": KEY}], [answer(source, strategy=KEY)], [ADVICE])
    code, printed = run(model, "planner", "coder", "verifier")
    assert code == 0
    git = ["git", "-C", str(run.project.folder), "log", "--all", "-p", "--format=%B"]
    log = subprocess.run(git, capture_output=True, check=True).stdout.decode()
    files = [path.read_bytes() for path in (run.project.folder / ".stitch").rglob("*") if path.is_file()]
    shown = "".join(event.model_dump_json() for event in printed)
    assert KEY not in log + shown + b"".join(files).decode(errors="replace")
    assert "[redacted]" in log
