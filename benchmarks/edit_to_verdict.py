"""Seconds from an edited ``.cu`` to the full verdict, judge warm, beside KernelBench's own evaluator.

``python benchmarks/edit_to_verdict.py --kernelbench PATH [--runs 9] [--peer-runs 3]`` on a machine with a
GPU writes ``benchmarks/results/edit_to_verdict.json``.  PATH is the ``src`` folder of a KernelBench
checkout.  Both judge the same kernel (tasks/bias_gelu); every run edits the source, so that nothing
comes from a cache.  A verdict here is build, emulator, all trials and timing against the baselines;
KernelBench's is build, 5 trials and 100 timed runs.
"""

import argparse
import asyncio
import importlib.util
import statistics
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any

import provenance

from stitch_tui.agents.bench import OpenBench, open_bench
from stitch_tui.agents.settings import Settings
from stitch_tui.tools.graph import region_of
from stitch_tui.tools.verification import verify_region

TASKS = Path(__file__).parent / "tasks"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernelbench", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--peer-runs", type=int, default=3)
    options = parser.parse_args()
    ours = asyncio.run(stitch_runs(options.runs))
    print(ours, file=sys.stderr)
    peer = [kernelbench_run(options.kernelbench, number) for number in range(options.peer_runs)]
    medians = {
        name: statistics.median(run["seconds"] for run in runs)
        for name, runs in {"stitch": ours["runs"], "kernelbench": peer}.items()
    }
    result = {
        "benchmark": "edit_to_verdict",
        "commit": provenance.commit(),
        "device": ours["device"],
        "versions": provenance.versions("torch", "triton"),
        "median_s": medians,
        "ratio": medians["kernelbench"] / medians["stitch"],
        "stitch": ours["runs"],
        "kernelbench": peer,
    }
    provenance.write("edit_to_verdict", result)


async def stitch_runs(count: int) -> dict[str, Any]:
    """One warm judge, `count` edited candidates; the first run warms the baselines and is dropped."""
    async with open_bench(TASKS, Settings(), "bias_gelu.py") as opened:
        runs = [await stitch_run(opened, number) for number in range(count + 1)]
        return {"device": str(opened.device), "first": runs[0], "runs": runs[1:]}


async def stitch_run(opened: OpenBench, number: int) -> dict[str, Any]:
    text = (TASKS / "bias_gelu.cu").read_text() + f"// edit {number} {time.time_ns()}\n"
    graph = opened.exported.graph
    stages: dict[str, float] = {}
    trials: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "bias_gelu.cu"
        source.write_text(text)
        started = time.perf_counter()

        def staged(event: str, data: dict[str, Any]) -> None:
            if event == "stage":
                stages[data["stage"]] = round(time.perf_counter() - started, 3)
            if event == "trial":
                trials[data["name"]] = round(time.perf_counter() - started, 3)

        verdict = await verify_region(opened.bench, source, region_of(graph, graph.node), on_event=staged)
        seconds = time.perf_counter() - started
    speedups = verdict.timing.speedups if verdict.timing else {}
    return {
        "seconds": round(seconds, 3),
        "category": verdict.category,
        "summary": verdict.summary,
        "trials": len(verdict.trials),
        "stage_began_s": stages,
        "trial_ended_s": trials,
        "speedup": {name: round(ratio.value, 3) for name, ratio in speedups.items()},
    }


def kernelbench_run(source: Path, number: int) -> dict[str, Any]:
    """KernelBench's evaluator on the equivalent candidate."""
    sys.path.insert(0, str(source))
    _without_clients()
    import torch
    from kernelbench.eval import eval_kernel_against_ref

    candidate = (TASKS / "bias_gelu_torch.py").read_text().replace("EDIT", f"{number}_{time.time_ns()}")
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as build:
        answer = eval_kernel_against_ref(
            (TASKS / "bias_gelu.py").read_text(),
            candidate,
            num_correct_trials=5,
            num_perf_trials=100,
            measure_performance=True,
            build_dir=build,
            device=torch.device("cuda:0"),
        )
    return {
        "seconds": round(time.perf_counter() - started, 3),
        "compiled": answer.compiled,
        "correct": answer.correctness,
        "runtime_ms": answer.runtime,
    }


def _without_clients() -> None:
    """Empty stand-ins for the model clients that KernelBench imports and its evaluator never calls."""
    for module, name in (("dotenv", "load_dotenv"), ("openai", "OpenAI"), ("litellm", "completion")):
        if module not in sys.modules and importlib.util.find_spec(module) is None:
            sys.modules[module] = types.ModuleType(module)
            setattr(sys.modules[module], name, lambda *_, **__: None)


if __name__ == "__main__":
    main()
