"""A scripted model: which role asks is read off the prompt, and each role has its own list of answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from openai_server import OpenAIServer, Reply

OPENINGS = {
    "planner": "You plan how",
    "coder": "You write CUDA",
    "host": "You write the host program",
    "verifier": "You read what",
}
"""How prompts begin; the host program, though the Coder's, has answers of its own."""


@dataclass
class ScriptedModel:
    """Answers by role, in order; the last one of a role repeats."""

    planner: Sequence[Reply | str | dict[str, Any]] = ()
    coder: Sequence[Reply | str | dict[str, Any]] = ()
    verifier: Sequence[Reply | str | dict[str, Any]] = ()
    host: Sequence[Reply | str | dict[str, Any]] = ()
    prompts: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in OPENINGS})
    """What each role was asked: all messages of a request, joined."""

    def __call__(self, request: dict[str, Any], _: int) -> Reply:
        said = "\n".join(message["content"] for message in request["messages"])
        role = next(name for name, opening in OPENINGS.items() if said.startswith(opening))
        asked = self.prompts[role]
        answers = getattr(self, role)
        answer = answers[min(len(asked), len(answers) - 1)]
        asked.append(said)
        if isinstance(answer, Reply):
            return answer
        return Reply(answer if isinstance(answer, str) else json.dumps(answer))

    def served(self) -> OpenAIServer:
        return OpenAIServer(self)


def settings(url: str, *roles: str, **more: Any) -> dict[str, Any]:
    """The table ``models`` with these roles at the server."""
    role = {"provider": "openai", "model": "tiny", "base_url": url, "retries": 1, **more}
    return {"models": dict.fromkeys(roles, role)}


def words(url: str, *roles: str) -> list[str]:
    """The same as flags of ``stitch --auto``."""
    found: list[str] = []
    for role in roles:
        values = {"provider": "openai", "model": "tiny", "base_url": url}
        found += [word for n, v in values.items() for word in ("--set", f"models.{role}.{n}={v}")]
    return found


def plan(*subtasks: tuple[str, list[str]], left: Sequence[tuple[list[str], str]] = ()) -> dict[str, Any]:
    return {
        "analysis": "it is all memory traffic",
        "subtasks": [
            {"title": title, "nodes": nodes, "bottleneck": "memory", "kernels": ["one thread an element"]}
            for title, nodes in subtasks
        ],
        "left": [{"nodes": nodes, "reason": reason} for nodes, reason in left],
    }


ADVICE = {"bottleneck": "correctness", "evidence": [1], "change": "multiply by two", "files": ["s01.cu"]}


def pointwise(expression: str, *, guard: str = "i < n", before: str = "") -> str:
    """A ``.cu`` that writes `expression` of ``v`` for each element of the only input."""
    return f"""\
#include "stitch.h"
#include <cuda_runtime.h>
{before}
__global__ void each(const float* x, float* y, int64_t n) {{
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if ({guard}) {{
    const float v = x[i];
    y[i] = {expression};
  }}
}}

extern "C" int stitch_run(const stitch_call* call) {{
  const int64_t n = call->out[0].numel;
  if (n == 0) return STITCH_OK;
  each<<<(unsigned)((n + 127) / 128), 128, 0, (cudaStream_t)call->stream>>>(
      (const float*)call->in[0].data, (float*)call->out[0].data, n);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}}
"""


def answer(source: str, strategy: str = "one thread an element", followed: str = "") -> str:
    """A Coder's answer with a whole file."""
    said = f"\nFOLLOWED: {followed}" if followed else ""
    return f"Thinking about it.\n\nSTRATEGY: {strategy}\nNOTE: plain{said}\n```cuda\n{source}```\n"
