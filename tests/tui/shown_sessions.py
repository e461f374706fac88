"""Sessions as events, made up so that every state and pane of the screen has something to show."""

from collections.abc import Iterable

from stitch_tui.agents import events
from stitch_tui.agents.commands import Reply
from stitch_tui.agents.events import Event
from stitch_tui.agents.state import Candidate, Plan, Subtask, SubtaskState, Work
from stitch_tui.link import Make
from stitch_tui.tools.graph import Region
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.verdict import (
    Build,
    Category,
    Finding,
    Flag,
    KernelFacts,
    Ratio,
    Samples,
    Timing,
    Trial,
    Verdict,
)
from stitch_tui.view.board import Board

GPU = "cuda NVIDIA H200 sm_90"
SESSION = "20261130-0954-encoder"
CODE = """\
// rms_norm+silu: one warp for each row; a row stays in registers.
#include "stitch.h"

constexpr int WARPS = 4;

__global__ void rms_norm_silu(const float* __restrict__ x, const float* w, float* out, int n, int width) {
  const int row = blockIdx.x * WARPS + threadIdx.y;
  if (row >= n) return;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < width; i += 32) {
    const float value = x[row * width + i];
    sum += value * value;
  }
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  const float scale = rsqrtf(sum / width + 1e-6f);
  for (int i = threadIdx.x; i < width; i += 32) {
    const float value = x[row * width + i] * scale * w[i];
    out[row * width + i] = value / (1.0f + __expf(-value));  // silu
  }
}

extern "C" int stitch_run(const stitch_call* call) {
  const dim3 block(32, WARPS);
  rms_norm_silu<<<(int)((call->in[0].shape[0] + WARPS - 1) / WARPS), block, 0, call->stream>>>(
      (const float*)call->in[0].data, (const float*)call->in[1].data, (float*)call->out[0].data,
      (int)call->in[0].shape[0], (int)call->in[0].shape[1]);
  return STITCH_OK;
}
"""
BETTER = CODE.replace(
    "constexpr int WARPS = 4;", "constexpr int WARPS = 8;  // two blocks fill an SM"
).replace(
    "  for (int i = threadIdx.x; i < width; i += 32) {\n    const float value = x[row * width + i];\n"
    "    sum += value * value;\n  }",
    "  const float4* x4 = reinterpret_cast<const float4*>(x + row * width);\n"
    "  for (int i = threadIdx.x; i < width / 4; i += 32) {\n    const float4 v = x4[i];\n"
    "    sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;\n  }",
)
OTHER = CODE.replace("rms_norm_silu", "linear_gelu")
BROKEN = BETTER.replace("const float4 v = x4[i];", "const float4 v = x4[i]")


def subtask(id: str, title: str, state: SubtaskState, share: float, **more: object) -> Subtask:
    region = Region(nodes=(title.split("+")[0].replace(" ", "_"),), inputs=("x",), outputs=("y",))
    fields = {
        "strategy": f"Fuse {title}; keep the row in registers.",
        "bound_us": share * 400,
        "work": work(share),
        **more,
    }
    return Subtask(id=id, title=title, region=region, state=state, share=share, **fields)  # type: ignore[arg-type]


def work(share: float) -> Work:
    """As of a memory-bound region on an H200."""
    moved = share * 400e-6 * 4.3e12
    return Work(flops=moved * 1.5, bytes_moved=moved, peak_flops=495e12, bandwidth=4.3e12)


def plan() -> Plan:
    proposed = SubtaskState.PROPOSED
    return Plan(
        subtasks=(
            subtask("s01", "rms_norm+silu", proposed, 0.41, amdahl=1.69),
            subtask("s02", "linear+gelu", proposed, 0.27, amdahl=1.37),
            subtask("s03", "attention scores+softmax", proposed, 0.18, amdahl=1.22),
            subtask("s04", "residual+dropout", proposed, 0.06, amdahl=1.06),
            subtask("s05", "positional embedding", proposed, 0.008),
        )
    )


def beginning(device: str = GPU, autonomy: str = "ask-plan") -> list[Event]:
    return [
        events.SessionStarted(
            reference="encoder.py", device=device, branch=f"stitch/{SESSION}", autonomy=autonomy,
            roles={"planner": "builtin", "coder": "builtin", "verifier": "builtin"},
        ),
        events.ReferenceProfiled(
            sha256="ab" * 32, nodes=14, time_us=912.4, variants=("full", "small_odd", "ones"),
            hottest=(
                {"node": "rms_norm", "op": "aten.rms_norm.default", "time_us": 374.1, "module": "norm"},
                {"node": "linear", "op": "aten.linear.default", "time_us": 246.3, "module": "layers.0.mlp"},
                {"node": "softmax", "op": "aten.softmax.int", "time_us": 164.0, "module": "layers.0.attn"},
            ),
        ),
        events.PlanProposed(plan=plan()),
    ]  # fmt: skip


def timing(speedup: float) -> Timing:
    own = 374.1 / speedup

    def ratio(value: float) -> Ratio:
        return Ratio(value=value, low=value * 0.992, high=value * 1.008)

    def samples(median: float) -> Samples:
        return Samples(median_us=median, low_us=median * 0.996, high_us=median * 1.004, count=40)

    return Timing(
        candidate=samples(own),
        baselines={
            "eager": samples(own * speedup * 1.9),
            "compile": samples(own * speedup),
            "compile-reduce-overhead": samples(own * speedup * 1.1),
        },
        speedups={
            "eager": ratio(speedup * 1.9),
            "compile": ratio(speedup),
            "compile-reduce-overhead": ratio(speedup * 1.1),
        },
        bind_us=41.0,
    )


def build(kernel: str = "rms_norm_silu", *, ok: bool = True, diagnostics: tuple[Finding, ...] = ()) -> Build:
    facts = (KernelFacts(kernel=f"{kernel}(float const*, float const*, float*, int, int)", registers=38,
                         shared_bytes=4096, spill_bytes=0),)  # fmt: skip
    return Build(
        ok=ok, device="cuda", arch="sm_90", seconds=1.6, kernels=facts if ok else (), diagnostics=diagnostics,
        compiler="nvcc 13.0",
    )  # fmt: skip


def correct(speedup: float | None, kernel: str = "rms_norm_silu") -> Verdict:
    trial = Trial(name="normal/full", seed=1, passed=True, error=3.1e-6, limit=1.2e-5, reference_error=2e-6,
                  kernelbench=True)  # fmt: skip
    return Verdict(
        category=Category.CORRECT,
        flags=() if speedup else (Flag.FUNCTIONAL,),
        device=GPU if speedup else "emulator",
        summary="correct in 24 trials",
        trials=(trial,) * 24,
        error=3.1e-6,
        error_limit=1.2e-5,
        timing=timing(speedup) if speedup else None,
        build=build(kernel),
        protections=("own session", "scrubbed environment"),
        seconds=8.4,
    )


def build_error() -> Verdict:
    fault = Finding(category=Category.BUILD_ERROR, message='expected a ";"', file="s01.cu", line=11, column=5,
                    detail={"severity": "error", "tool": "nvcc"})  # fmt: skip
    return Verdict(
        category=Category.BUILD_ERROR, device=GPU, summary="it does not build", findings=(fault,),
        build=build(ok=False, diagnostics=(fault,)), seconds=1.1,
    )  # fmt: skip


def wrong() -> Verdict:
    bad = Trial(name="large/medium", seed=2, passed=False, error=4.1e-3, limit=1.2e-5, reference_error=2e-6,
                kernelbench=False, note="every fourth row")  # fmt: skip
    found = Finding(category=Category.NUMERICS, message="rows 3, 7, 11 differ", line=15, file="s01.cu",
                    where="large/medium, output 0")  # fmt: skip
    return Verdict(
        category=Category.NUMERICS, device=GPU, summary="differs by 4.1e-03 (limit 1.2e-05)",
        trials=(bad,), findings=(found,), error=4.1e-3, error_limit=1.2e-5, build=build(), seconds=3.0,
    )  # fmt: skip


def attempt(
    number: int, id: str, of: int, source: str, verdict: Verdict | None, outcome: Outcome | None
) -> list[Event]:
    kind = Kind.DRAFT if of == 1 else Kind.OPTIMISE if verdict and verdict.correct else Kind.REPAIR
    candidate = Candidate(source=source, strategy=f"warp-per-row-{of}")
    made: list[Event] = [
        events.IterationStarted(iteration=number, subtask=id, attempt=of, kind=kind),
        events.CodeWritten(iteration=number, subtask=id, candidate=candidate, path=f"{id}.cu"),
    ]
    if verdict is None or outcome is None:
        return made
    if verdict.build:
        made.append(events.BuildFinished(iteration=number, subtask=id, build=verdict.build))
    made += [
        events.VerdictReached(iteration=number, subtask=id, verdict=verdict, outcome=outcome),
        events.IterationCommitted(
            iteration=number, sha=f"{number:040x}", subject=f"{id}: iteration {number}"
        ),
    ]
    return made


def in_progress() -> list[Event]:
    """Two subtasks done, one measured at the moment, one skipped, one still a proposal."""
    return [
        *beginning(),
        *(events.SubtaskUpdated(subtask=f"s0{n}", state=SubtaskState.APPROVED) for n in (1, 2, 3)),
        events.SubtaskStarted(subtask="s01", title="rms_norm+silu"),
        *attempt(1, "s01", 1, CODE, correct(1.12), Outcome.KEPT),
        *attempt(2, "s01", 2, BROKEN, build_error(), Outcome.ERROR),
        *attempt(3, "s01", 3, BETTER, wrong(), Outcome.WRONG),
        *attempt(4, "s01", 4, BETTER, correct(0.94), Outcome.SLOWER),
        *attempt(5, "s01", 5, BETTER, correct(1.71), Outcome.KEPT),
        events.Routed(subtask="s01", next="done", reason="no improvement in 3 attempts"),
        events.SubtaskFinished(subtask="s01", state=SubtaskState.DONE, best=5),
        events.SubtaskFinished(subtask="s04", state=SubtaskState.SKIPPED, reason="skipped by human"),
        events.SubtaskStarted(subtask="s02", title="linear+gelu"),
        *attempt(
            6,
            "s02",
            1,
            OTHER,
            correct(0.97, "linear_gelu"),
            Outcome.KEPT,
        ),
        events.SubtaskUpdated(subtask="s02", state=SubtaskState.MEASURING),
    ]


def emulated() -> list[Event]:
    """One subtask and the program, correct on the emulator."""
    return [
        *beginning("emulator", "auto"),
        events.PlanApproved(who="auto"),
        events.SubtaskStarted(subtask="s01", title="rms_norm+silu"),
        *attempt(1, "s01", 1, CODE, correct(None), Outcome.KEPT),
        events.SubtaskFinished(subtask="s01", state=SubtaskState.DONE, best=1),
    ]


def numbered(made: Iterable[Event]) -> list[Event]:
    return [
        event.model_copy(update={"seq": n, "session": SESSION}) if event.type != "coder.delta" else event
        for n, event in enumerate(made, 1)
    ]


class FakeEngine:
    """A feed that gives prepared events and takes down what it is told: the engine's end, not ours."""

    def __init__(self, made: Iterable[Event]) -> None:
        self.trouble = ""
        self._events = numbered(made)
        self.told: list[object] = []

    async def run(self, board: Board) -> None:
        for event in self._events:
            board.add(event)

    async def send(self, make: Make, generation: int) -> Reply:
        self.told.append(make(generation))
        return Reply(ok=True, text="now", generation=generation, seq=0)
