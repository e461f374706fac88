"""A session in which a misnamed cuBLASLt call is looked up and put right; without retrieval it is not."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from engine_projects import Project
from openai_server import OpenAIServer, Reply
from scripted_model import answer, plan, pointwise, words

from stitch_tui.agents import events, journal
from stitch_tui.tools.docs import sources
from stitch_tui.tools.docs.index import Index
from stitch_tui.tools.iteration import Outcome

pytestmark = pytest.mark.slow
TINY = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.relu(x) * 2
def get_inputs(): return [torch.randn(4, 16)]
def get_init_inputs(): return []
"""
HEADER = """\
/** Set matmul operation descriptor attribute.
 *
 * \\param[in] sizeInBytes size of the buffer that holds the value
 */
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc,
    cublasLtMatmulDescAttributes_t attr, const void* buf, size_t sizeInBytes);
"""
PLAN = plan(("relu, doubled", ["relu", "mul"]))
SIGNATURE = re.compile(
    r"\[cublaslt[^\]]*\] (\w+) \(\S+:1\)\n.*?const void\* buf, size_t sizeInBytes", re.DOTALL
)


def candidate(call: str) -> str:
    before = (
        "#include <cublasLt.h>\nstatic cublasStatus_t transpose(cublasLtMatmulDesc_t d, const int& how) {\n"
        f"  return {call};\n}}"
    )
    return answer(pointwise("v > 0.0f ? v * 2.0f : (v != v ? v : 0.0f)", before=before))


def script(request: dict[str, Any], _: int) -> Reply:
    """A model that knows the function's right name and arguments only from its documentation."""
    said = "\n".join(message["content"] for message in request["messages"])
    if said.startswith("You plan how"):
        return Reply(json.dumps(PLAN))
    if known := SIGNATURE.search(said):
        return Reply(candidate(f"{known[1]}(d, CUBLASLT_MATMUL_DESC_TRANSA, &how, sizeof how)"))
    return Reply(candidate("cublasLtMatmulDescSetAtribute(d, CUBLASLT_MATMUL_DESC_TRANSA, how)"))


@pytest.mark.parametrize("retrieval", [True, False])
def test_a_misnamed_call_is_looked_up_and_repaired(
    project: Project, tmp_path: Path, cache_home: Path, retrieval: bool
) -> None:
    (project.folder / "tiny.py").write_text(TINY)
    project.environment["OPENAI_API_KEY"] = "sk-of-this-test"
    cache = tmp_path / "cache" / "stitch"
    (cache / "docs").mkdir(parents=True)
    cache.chmod(0o700)
    (cache_home / "stitch" / "emulator").mkdir(parents=True, exist_ok=True)
    (cache / "emulator").symlink_to(cache_home / "stitch" / "emulator")
    project.environment |= {"XDG_CACHE_HOME": str(cache.parent), "PATH": "/usr/bin:/bin"}  # without nvcc
    include = tmp_path / "include"
    include.mkdir()
    (include / "cublasLt.h").write_text(HEADER)
    Index(cache / "docs").build(sources.installed([include]), lambda *_: None)
    with OpenAIServer(script) as server:
        flags = [*words(server.url, "planner", "coder"), "--set", f"docs.retrieval={str(retrieval).lower()}"]
        flags += ["--set", "limits.iterations=2", "--set", "limits.replans=0"]
        code, out, err = project.said("--auto", "tiny.py", "--device", "emulator", *flags)
    told = [e for e in journal.read(project.journal) if isinstance(e, events.Retrieved)]
    outcomes = [iteration.outcome for iteration in project.session.iterations if iteration.subtask]
    if not retrieval:
        assert (code, told, outcomes) == (1, [], [Outcome.ERROR, Outcome.ERROR]), err
        return
    assert code == 0, err
    assert outcomes == [Outcome.ERROR, Outcome.KEPT]
    assert told[0].reason == "build error"
    assert told[0].query == "cublasLtMatmulDescSetAtribute"
    assert told[0].citations[0].name == "cublasLtMatmulDescSetAttribute"
    assert told[0].citations[0].place == f"{include / 'cublasLt.h'}:1"
    assert "looked up 'cublasLtMatmulDescSetAtribute'" in out + err
