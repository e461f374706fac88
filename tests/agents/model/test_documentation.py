"""What the Coder looks up: names in compile errors by themselves, and what it asks for, within bounds."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from model_desk import Desk
from openai_server import OpenAIServer, Reply, Script, error
from test_code_answer import WHOLE
from test_prompts import H200, SOURCE, graph, hardware, subtask

from stitch_tui.agents.coder import ModelCoder
from stitch_tui.agents.documentation import Documentation, is_other_version, queries, query_in
from stitch_tui.agents.planner import ModelPlanner
from stitch_tui.agents.roles import CodeBrief, PlanBrief
from stitch_tui.agents.settings import DocsSettings
from stitch_tui.agents.state import Author, Candidate, Iteration, Plan
from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.client import Passage
from stitch_tui.tools.docs.index import Index
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.paths import cache_dir
from stitch_tui.tools.roofline import peaks_of
from stitch_tui.tools.verdict import Build, Category, Finding, Verdict
from stitch_tui.view.board import Board

HEADER = """\
#define CUBLAS_VER_MAJOR 12
/** Set matmul operation descriptor attribute.
 *
 * \\param[in] sizeInBytes size of the buffer that holds the value
 */
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc,
    cublasLtMatmulDescAttributes_t attr, const void* buf, size_t sizeInBytes);
"""
UNKNOWN = 'identifier "cublasLtMatmulDescSetAtribute" is undefined'
ASKS = "I am not sure.\n```search_docs\ncublasLtMatmulDescSetAttribute size\n```\n"


@pytest.fixture
def indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One header is indexed, for this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    include = tmp_path / "include"
    include.mkdir()
    (include / "cublasLt.h").write_text(HEADER)
    (include / "cublas_api.h").write_text("".join(f"#define CUBLAS_VER_{n} 12\n" for n in ("MAJOR", "MINOR")))
    Index(cache_dir("docs")).build(sources.installed([include]), lambda *_: None)


def failed(message: str, line: int = 0, source: str = "int x;") -> Iteration:
    finding = Finding(category=Category.BUILD_ERROR, message=message, line=line, detail={"severity": "error"})
    build = Build(ok=False, device="cuda", compiler="nvcc 13.0.88 with g++", diagnostics=(finding,))
    verdict = Verdict(
        category=Category.BUILD_ERROR, device="cuda", build=build, findings=(finding,), summary=""
    )
    return Iteration(
        number=1,
        subtask="s01",
        attempt=1,
        kind=Kind.DRAFT,
        candidate=Candidate(source=source, strategy="first", author=Author.MODEL),
        verdict=verdict,
        outcome=Outcome.ERROR,
    )


def coded(
    desk: Desk, replies: Sequence[str], *attempts: Iteration, **settings: Any
) -> tuple[Candidate, list[str]]:
    """The candidate that comes of scripted answers, and the prompts that they answer."""
    candidate, requests = sent(desk, [Reply(text) for text in replies], *attempts, **settings)
    return candidate, ["\n".join(m["content"] for m in request["messages"]) for request in requests]


def sent(
    desk: Desk, script: Script, *attempts: Iteration, **settings: Any
) -> tuple[Candidate, list[dict[str, Any]]]:
    """What the Coder makes of a server's answers, and its requests."""

    async def session(url: str) -> Candidate | None:
        docs = Documentation(DocsSettings(**settings), desk.record)
        try:
            brief = CodeBrief(
                graph(), subtask(graph()), str(H200), attempts, None, SOURCE, hardware(H200, peaks_of(H200))
            )
            return await ModelCoder(desk.model(url), desk.record, docs).code(brief)
        finally:
            await docs.close()

    with OpenAIServer(script) as server:
        candidate = asyncio.run(session(server.url))
    assert candidate is not None
    return candidate, server.requests


@pytest.mark.usefixtures("indexed")
def test_a_name_that_the_compiler_does_not_know_is_looked_up(desk: Desk) -> None:
    _, prompts = coded(desk, [WHOLE], failed(UNKNOWN))
    assert "size of the buffer that holds the value" in prompts[0]
    (told,) = desk.events("retrieval")
    assert (told.reason, told.query) == ("build error", "cublasLtMatmulDescSetAtribute")
    (citation,) = told.citations
    assert citation.name == "cublasLtMatmulDescSetAttribute"
    assert citation.place.endswith("include/cublasLt.h:2")
    assert citation.is_other_version, "cuBLAS 12 beside a compiler of CUDA 13"
    board = Board()
    board.add(told)
    assert board.notes[0].sentence == (
        "s01: looked up 'cublasLtMatmulDescSetAtribute': cublasLtMatmulDescSetAttribute "
        "(cublaslt 12.12, cublasLt.h:2, not the compiler's version)"
    )
    _, prompts = coded(desk, [WHOLE], failed("expected a ';'"))
    assert "size of the buffer" not in prompts[0]
    assert len(desk.events("retrieval")) == 1


@pytest.mark.usefixtures("indexed")
def test_the_coder_may_ask_a_bounded_number_of_times(desk: Desk) -> None:
    candidate, prompts = coded(desk, [ASKS, ASKS, ASKS, WHOLE], lookups=2)
    assert not candidate.refused
    assert "search_docs" in prompts[0]
    assert "size of the buffer" not in prompts[0]
    assert "size of the buffer" in prompts[1]
    assert "You may search 1 more times" in prompts[1]
    assert "That was the last search" in prompts[2]
    assert len(prompts) == 4, "the third request to search is an answer without code"
    assert [event.reason for event in desk.events("retrieval")] == ["asked", "asked"]


@pytest.mark.usefixtures("indexed")
def test_a_model_that_knows_tools_calls_the_search(desk: Desk) -> None:
    call = json.dumps({"query": "cublasLtMatmulDescSetAttribute size"})
    candidate, requests = sent(desk, [Reply(call, calls=True), Reply(WHOLE)], lookups=1)
    assert not candidate.refused
    assert requests[0]["tools"][0]["function"]["name"] == "search_docs"
    assert requests[0]["tool_choice"] == "auto"
    assert "size of the buffer" in requests[1]["messages"][-1]["content"]
    assert "tools" not in requests[1], "it has searched as often as it may"
    (told,) = desk.events("retrieval")
    assert told.query == "cublasLtMatmulDescSetAttribute size"
    assert desk.events("exchange")[0].answer == f"```search_docs\n{call}\n```"


@pytest.mark.usefixtures("indexed")
def test_an_endpoint_that_refuses_tools_is_asked_for_the_fence(desk: Desk) -> None:
    def replies(request: dict[str, Any], number: int) -> Reply:
        if "tools" in request:
            return error(400, '"auto" tool choice requires --enable-auto-tool-choice')
        return Reply(ASKS if len(request["messages"]) == 2 else WHOLE)

    candidate, requests = sent(desk, replies, lookups=1)
    assert not candidate.refused
    assert ["tools" in request for request in requests] == [True, False, False]
    assert [event.reason for event in desk.events("retrieval")] == ["asked"]


@pytest.mark.usefixtures("indexed")
def test_what_a_role_asks_for_is_held_against_what_built_last(desk: Desk) -> None:
    async def asked() -> None:
        docs = Documentation(DocsSettings(), desk.record)
        try:
            await docs.look_up("coder", "s01", "cublasLtMatmulDescSetAttribute", left=1)
            desk.record.session = desk.record.session.model_copy(update={"iterations": (failed("x"),)})
            await docs.look_up("coder", "s01", "cublasLtMatmulDescSetAttribute", left=0)
        finally:
            await docs.close()

    asyncio.run(asked())
    unknown, other = desk.events("retrieval")
    assert not unknown.citations[0].is_other_version, "nothing was built yet"
    assert other.citations[0].is_other_version, "cuBLAS 12 beside a compiler of CUDA 13"


PLAN = {
    "analysis": "it is one product",
    "subtasks": [
        {"title": "all", "nodes": ["linear", "relu_1", "relu_2"], "bottleneck": "compute", "kernels": []}
    ],
    "left": [],
}
SEARCH = {"search_docs": "cublasLtMatmulDescSetAttribute", "analysis": "", "subtasks": [], "left": []}


@pytest.mark.usefixtures("indexed")
def test_the_planner_may_ask_with_a_property_of_its_answer(desk: Desk) -> None:
    async def session(url: str) -> Plan:
        docs = Documentation(DocsSettings(lookups=1), desk.record)
        try:
            planner = ModelPlanner(desk.model(url, "planner"), desk.record, docs=docs)
            return await planner.plan(
                PlanBrief(graph(), SOURCE, str(H200), hardware=hardware(H200, peaks_of(H200)))
            )
        finally:
            await docs.close()

    with OpenAIServer([Reply(json.dumps(SEARCH)), Reply(json.dumps(PLAN | {"search_docs": ""}))]) as server:
        plan = asyncio.run(session(server.url))
    assert [subtask.title for subtask in plan.subtasks] == ["all"]
    first, second = server.requests
    assert "search_docs" in first["messages"][0]["content"]
    assert "search_docs" in json.dumps(first["response_format"])
    assert "search_docs" not in json.dumps(second["response_format"]), "it has searched as often as it may"
    assert "size of the buffer" in second["messages"][-1]["content"]
    (told,) = desk.events("retrieval")
    assert (told.role, told.reason) == ("planner", "asked")


def test_without_an_index_nothing_is_offered_and_it_is_said_once(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    _, prompts = coded(desk, [WHOLE], failed(UNKNOWN))
    assert "search_docs" not in prompts[0]
    (warning,) = desk.events("warning")
    assert "stitch docs build" in warning.text
    assert desk.events("retrieval") == []


CALL = "cublasLtMatmulDescCreate(\n    &d,\n    1);\nint own = mine(2);"


@pytest.mark.parametrize(
    ("message", "line", "expected"),
    [
        (UNKNOWN, 1, ["cublasLtMatmulDescSetAtribute"]),
        ("'cudaMalocHost' was not declared in this scope; did you mean 'cudaMallocHost'?", 1,
         ["cudaMalocHost", "cudaMallocHost"]),
        ('namespace "nvcuda::wmma" has no member "load_matrix"', 1, ["load_matrix"]),
        ("too few arguments in function call", 3, ["cublasLtMatmulDescCreate"]),
        ("too many arguments to function 'cudaError_t cudaFree(void*)'", 1, ["cudaFree"]),
        ('argument of type "int" is incompatible with parameter of type "cudaDataType_t"', 2,
         ["cublasLtMatmulDescCreate"]),
        ('no instance of overloaded function "atomicAdd" matches the argument list', 1, ["atomicAdd"]),
        ('identifier "row_count" is undefined', 1, []),
        ("expected a ';'", 1, []),
    ],
)  # fmt: skip
def test_errors_are_read_for_cudas_names(message: str, line: int, expected: list[str]) -> None:
    verdict = failed(message, line).verdict
    assert verdict is not None
    assert queries(verdict, CALL) == expected


def test_only_an_answer_that_is_nothing_but_a_query_asks() -> None:
    assert query_in(ASKS) == "cublasLtMatmulDescSetAttribute size"
    assert query_in(f"{ASKS}\n{WHOLE}") == "", "there is code: it is taken"
    assert query_in("```search_docs\nnever closed") == ""
    assert query_in(f"<think>{ASKS}</think>none") == ""


def test_a_citation_of_another_version_than_the_compilers_is_flagged() -> None:
    def passage(library: str, version: str) -> Passage:
        return Passage(library, version, "f", "f", "", "f.h", 1, "", "", "", 1.0)

    compiler = "nvcc 12.8.61 with g++"
    assert is_other_version(passage("runtime", "13.0"), compiler)
    assert not is_other_version(passage("runtime", "12.8"), compiler)
    assert is_other_version(passage("cublaslt", "13.1.0"), compiler)
    assert not is_other_version(passage("cublaslt", "12.1.0"), compiler)
    assert not is_other_version(passage("cudnn", "9.1.0"), compiler), "it has a number of its own"
    assert not is_other_version(passage("runtime", "13.0"), "g++ 12"), "no compiler of CUDA's"
