"""Vectors as a second opinion: an endpoint's, the offline model's, or none, and each says what it is."""

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from openai_server import OpenAIServer, Reply, error

from stitch_tui.agents.embedding import EndpointEmbedding, embedding_of
from stitch_tui.agents.endpoints import model_checks
from stitch_tui.agents.settings import EmbeddingSettings, ModelSettings, Settings
from stitch_tui.tools.docs import worker
from stitch_tui.tools.docs.client import DocsWorker, Embedding, answered, is_indexed
from stitch_tui.tools.docs.index import Index
from stitch_tui.tools.docs.vectors import NoVectors, OfflineModel
from stitch_tui.tools.doctor import Check, State
from stitch_tui.tools.errors import Denied, EnvironmentFault, UsageError
from stitch_tui.tools.paths import cache_dir

HEADER = """\
/** Allocates page-locked memory. */
cudaError_t cudaMallocHost(void **p);
/** Turns the wheel round. */
cudaError_t cudaTurnWheel(int n);
"""
KEY = "sk-of-this-test"


@pytest.fixture(autouse=True)
def include(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A toolkit of one header; cache, state and key are the test's own."""
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "cuda_runtime_api.h").write_text(HEADER)
    for name in ("CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return folder


def vectors(request: dict[str, Any], _: int) -> Reply:
    """A model that knows two things: memory, and rotation."""
    meant = [("memory", "alloc", "storage"), ("wheel", "rotat", "turn")]
    data = [
        {"index": n, "embedding": [0.01 + any(word in text.lower() for word in words) for words in meant]}
        for n, text in enumerate(request["input"])
    ]
    return Reply(body=json.dumps({"data": data[::-1], "model": "tiny", "object": "list"}).encode())


def settings(url: str, **others: Any) -> EmbeddingSettings:
    return EmbeddingSettings.model_validate({"provider": "openai", "model": "tiny", "base_url": url} | others)


@dataclass
class Hearing:
    """The worker's own functions without a process, with an endpoint's vectors."""

    embedding: Embedding
    warnings: list[str] = field(default_factory=list)

    @property
    def desk(self) -> worker.Desk:
        return worker.Desk(Index(cache_dir("docs")), self.told, worker.Asked(self.embedding.name, self.asked))

    def told(self, event: str, data: dict[str, Any]) -> None:
        if event == "warning":
            self.warnings.append(data["text"])

    def asked(self, data: dict[str, Any]) -> dict[str, Any]:
        return asyncio.run(answered(self.embedding, data["texts"]))

    def search(self, query: str) -> list[str]:
        found = worker.search(self.desk, {"query": query, "limit": 3, "library": "runtime"})
        return [passage["name"] for passage in found]


def hearing(url: str, allow: Callable[[], None] = lambda: None) -> Hearing:
    chosen = embedding_of(settings(url), allow)
    assert isinstance(chosen, EndpointEmbedding)
    return Hearing(chosen)


def test_an_endpoints_vectors_answer_what_no_word_does(include: Path) -> None:
    async def session(url: str) -> None:
        async with DocsWorker(embedding_of(settings(url))) as docs:
            await docs.call("build", {"folders": [str(include)]}, timeout=60)
            assert (await docs.search("rotation", library="runtime"))[0].name == "cudaTurnWheel"
            assert (await docs.call("stats", timeout=60))["vectors"] == f"tiny at {url}"
            assert docs._process is not None
            assert KEY.encode() not in Path(f"/proc/{docs._process.pid}/environ").read_bytes()

    with OpenAIServer(vectors) as server:
        asyncio.run(session(server.url))
    assert Index(cache_dir("docs")).search("rotation", limit=3, library="runtime") == [], "words alone"
    assert {request["model"] for request in server.requests} == {"tiny"}
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert "cuda Turn Wheel. Turns the wheel round." in server.requests[0]["input"]


def test_a_search_without_its_vectors_goes_on_by_words_and_says_so(include: Path) -> None:
    def denied() -> None:
        raise Denied("a rule denies this run to ask a model")

    with OpenAIServer(vectors) as server, OpenAIServer(vectors) as other:
        first = hearing(server.url)
        worker.build(first.desk, {"folders": [str(include)]})
        asked = len(server.requests)
        ruled, different = hearing(server.url, denied), hearing(other.url)
        for each in (first, ruled, different):
            assert each.search("page-locked")[0] == "cudaMallocHost"
        assert (len(server.requests), other.requests) == (asked + 1, []), (
            "the rule and the name kept the others"
        )
    gone = hearing(server.url)
    assert gone.search("page-locked")[0] == "cudaMallocHost"
    assert first.warnings == []
    assert "a rule denies" in ruled.warnings[0]
    assert "holds no vectors of tiny at" in different.warnings[0]
    assert "stitch docs build" in different.warnings[0]
    assert "network failure" in gone.warnings[0]


@pytest.mark.parametrize(
    "reply", [error(500, "out of memory"), Reply(body=b'{"data": []}'), Reply(body=b"<html>")]
)
def test_a_build_whose_endpoint_fails_leaves_no_index(include: Path, reply: Reply) -> None:
    with OpenAIServer([reply]) as server, pytest.raises(EnvironmentFault, match="no vectors to be had"):
        worker.build(hearing(server.url).desk, {"folders": [str(include)]})
    assert not is_indexed()


ODD = {
    "NaN": [float("nan"), 1.0],
    "too large for 32 bits": [1e300, 1.0],
    "an integer without end": [10**400, 1.0],
    "text": ["a", "b"],
    "nothing": None,
    "lists": [[1.0], [2.0]],
}


def embedded(vector: Any) -> Callable[[dict[str, Any], int], Reply]:
    """A model that answers with the same vector whatever it is asked."""

    def answer(request: dict[str, Any], _: int) -> Reply:
        data = [{"index": n, "embedding": vector} for n in range(len(request["input"]))]
        return Reply(body=json.dumps({"data": data, "model": "tiny", "object": "list"}).encode())

    return answer


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_vector_leaves_no_index_and_costs_a_search_its_second_opinion(
    include: Path, name: str
) -> None:
    now = vectors
    with OpenAIServer(lambda request, number: now(request, number)) as server:
        worker.build(hearing(server.url).desk, {"folders": [str(include)]})
        now = embedded(ODD[name])
        asking = hearing(server.url)
        assert asking.search("page-locked")[0] == "cudaMallocHost"
        assert asking.warnings[0].startswith("searched by words alone: ")
        with pytest.raises(EnvironmentFault, match=r"no vectors to be had|cannot be used"):
            worker.build(hearing(server.url).desk, {"folders": [str(include)], "anew": True})
        assert hearing(server.url).search("page-locked")[0] == "cudaMallocHost", "the index is as it was"


def test_an_endpoint_whose_vectors_change_their_length_is_no_damage_to_the_index(include: Path) -> None:
    now = vectors
    with OpenAIServer(lambda request, number: now(request, number)) as server:
        worker.build(hearing(server.url).desk, {"folders": [str(include)]})
        now = embedded([1.0, 2.0, 3.0])
        asking = hearing(server.url)
        assert asking.search("page-locked")[0] == "cudaMallocHost"
        assert "3 numbers, and 2 are expected" in asking.warnings[0]
        (include / "cuda_runtime_api.h").write_text(HEADER.replace("round", "about"))
        with pytest.raises(EnvironmentFault, match=r"3 numbers.*--rebuild"):
            worker.build(hearing(server.url).desk, {"folders": [str(include)]})
        worker.build(hearing(server.url).desk, {"folders": [str(include)], "anew": True})
        again = hearing(server.url)
        assert again.search("page-locked")[0] == "cudaMallocHost"
        assert again.warnings == []


def test_settings_that_cannot_work_are_refused_with_the_place() -> None:
    assert embedding_of(EmbeddingSettings()) is None
    assert embedding_of(EmbeddingSettings(provider="offline")) == "offline"
    with pytest.raises(UsageError, match=r"models\.embedding\.base_url"):
        embedding_of(EmbeddingSettings(provider="openai"))
    with pytest.raises(UsageError, match=r"models\.embedding\.model"):
        embedding_of(settings("http://127.0.0.1:1/v1", model=""))


def test_the_offline_model_knows_what_belongs_together() -> None:
    memory, storage, wheel = OfflineModel().vectors(["allocate memory", "reserve storage", "turn the wheel"])
    assert len(memory) == 256

    def alike(one: list[float], other: list[float]) -> float:
        return sum(a * b for a, b in zip(one, other, strict=True))

    assert alike(memory, storage) > alike(memory, wheel)


def test_without_its_package_the_offline_model_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(NoVectors, match="not installed") as caught:
        OfflineModel().vectors(["x"])
    assert "stitch-tui[docs]" in caught.value.advice


def examined(embedding: EmbeddingSettings) -> list[Check]:
    """What the doctor says of models."""
    return asyncio.run(model_checks(Settings(models=ModelSettings(embedding=embedding)), {}))


def test_the_doctor_says_how_long_an_endpoints_vectors_are() -> None:
    with OpenAIServer(vectors) as server:
        check, _ = examined(settings(server.url))
    assert (check.name, check.state) == ("embedding model", State.OK)
    assert check.found.startswith(f"tiny at {server.url}: vectors of 2 numbers")
    assert [len(request["input"]) for request in server.requests] == [1], "one tiny call"


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (error(401, f"wrong key {KEY}"), "authentication failure"),
        (error(404, "no such model"), "tiny"),
        (Reply(body=b"<html>", content_type="text/html"), "not an OpenAI-compatible answer"),
        (Reply(body=b'{"data": []}'), "0 vectors for 1 texts"),
    ],
)
def test_the_doctor_says_why_an_endpoint_gives_no_vectors(reply: Reply, found: str) -> None:
    with OpenAIServer([reply]) as server:
        check, _ = examined(settings(server.url))
    assert check.state is State.MISSING
    assert found in check.found
    assert check.fix
    assert KEY not in str(check)


def test_the_doctor_says_what_is_not_set_and_nothing_where_vectors_are_off() -> None:
    check, _ = examined(settings(""))
    assert check.state is State.MISSING
    assert "models.embedding.base_url" in check.found
    assert [check.name for check in examined(EmbeddingSettings())] == ["local models"]


def test_the_doctor_asks_the_offline_model_in_the_docs_worker() -> None:
    pytest.importorskip("wordllama")
    check, _ = examined(EmbeddingSettings(provider="offline"))
    assert check.state is State.OK
    assert check.found.startswith(f"{OfflineModel.name}: vectors of 256 numbers")
