"""A small session as events, shared by the tests of this folder."""

from stitch_tui.agents import events
from stitch_tui.agents.state import Candidate, Plan, Subtask
from stitch_tui.tools.graph import DType, Graph, Node, Region, Source, TensorSpec, ValueKind
from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.verdict import Category, Flag, Ratio, Samples, Timing, Verdict

CANDIDATE = Candidate(source="// nothing", strategy="tiled")


def subtask(id: str = "s01") -> Subtask:
    return Subtask(
        id=id, title="linear+gelu", region=Region(nodes=("linear",), inputs=("x",), outputs=("linear",))
    )


def two_layers() -> Graph:
    """``relu(x @ w)`` twice with weights of the same shape, then a sum: nodes a, b, c, d, e."""
    spec = TensorSpec(shape=(4, 4), dtype=DType.F32)
    sources = [Source(id="x", kind=ValueKind.INPUT, target="x", spec=spec)]
    sources += [Source(id=w, kind=ValueKind.PARAMETER, target=w, spec=spec) for w in ("w1", "w2")]

    def node(id: str, op: str, *operands: str) -> Node:
        return Node(id=id, op=f"aten.{op}.default", args=tuple({"ref": o} for o in operands), outputs=(spec,))

    nodes = (
        *(node("a", "linear", "x", "w1"), node("b", "relu", "a")),
        *(node("c", "linear", "b", "w2"), node("d", "relu", "c")),
        node("e", "sum", "d"),
    )
    return Graph(sources=tuple(sources), nodes=nodes, outputs=("e",))


def verdict(category: Category = Category.CORRECT, speedup: float | None = None) -> Verdict:
    """A verdict of the emulator, or of a GPU when `speedup` over eager is given."""
    timing = None
    if speedup is not None:
        samples = Samples(median_us=10, low_us=9, high_us=11, count=20)
        timing = Timing(
            candidate=samples,
            baselines={"eager": samples},
            speedups={"eager": Ratio(value=speedup, low=speedup * 0.99, high=speedup * 1.01)},
        )
    flags = () if timing else (Flag.FUNCTIONAL,)
    device = "cuda NVIDIA H200 sm_90" if timing else "emulator"
    return Verdict(category=category, flags=flags, device=device, summary="", timing=timing)


def started(*subtasks: Subtask) -> list[events.Event]:
    return [
        events.SessionStarted(reference="model.py", device="emulator", branch="stitch/test", base="0" * 40),
        events.PlanProposed(plan=Plan(subtasks=subtasks or (subtask(),))),
        events.PlanApproved(who="auto"),
    ]


def attempt(number: int, outcome: Outcome, judged: Verdict, subtask: str = "s01") -> list[events.Event]:
    """One iteration, from start to commit."""
    return [
        events.IterationStarted(iteration=number, subtask=subtask, attempt=number, kind=Kind.DRAFT),
        events.CodeWritten(iteration=number, subtask=subtask, candidate=CANDIDATE, path="kernels/s01.cu"),
        events.VerdictReached(iteration=number, subtask=subtask, verdict=judged, outcome=outcome),
        events.IterationCommitted(iteration=number, sha=f"{number:040x}", subject="an attempt"),
    ]
