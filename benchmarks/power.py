"""Which wrong candidates do KernelBench's tasks accept, on their own data and on repaired data?

``python benchmarks/power.py --kernelbench CHECKOUT [--tasks level1/1_*.py ...] [--seconds 600]`` runs on a
CPU at reduced sizes (see `kernelbench_sizes`), in torch alone.  Each task's answer goes to
``benchmarks/results/power_tasks.json`` as it comes; a task that was measured there is not run again, one
that was not is with ``--retry``.  Some tasks need einops.
``--table`` writes ``power.md`` from it.  CHECKOUT holds ``KernelBench/level1/*.py``; it is the user's,
nothing of it is kept here.
"""

import argparse
import contextlib
import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any

import provenance
import torch
from kernelbench_sizes import BATCH_CAP, CAPS, shrunk

from stitch_tui.tools.worker.faults import Fault
from stitch_tui.tools.worker.power import Power, power_of
from stitch_tui.tools.worker.reference import Options, Reference

RESULT = provenance.RESULTS / "power_tasks.json"
TASK_S = 120
"""Of CPU time, for a task with all its candidates: other work on the machine takes nothing from it."""
WHOLE = (256, 2)
"""Images as large as they are: some networks are made for one size."""
SIZES = (*((cap, BATCH_CAP) for cap in CAPS), (CAPS[0], CAPS[0]), WHOLE)
"""What is tried in turn: caps of an extent and of the batch; last but one for those whose batch must be as
large as another extent."""
UNTRIED = "repaired data not tried"
MODES = ("train", "eval")
PROBE = ("zeros", "constant", "another input's result", "its input", "a lost tile")
HEAD = """# What wrong candidates the tasks accept

Made by `python benchmarks/power.py --table` from `power_tasks.json`: KernelBench's tasks at reduced sizes, in
torch on a CPU. A wrong candidate is accepted when it passes on two draws. *KernelBench* is `allclose` with
1e-4 on the task's own data, *ours* is stitch's rule on the same data, *repaired* is stitch's rule on repaired
weights and signed inputs. What repaired data accept must be provably right for every input; the reason stands
beside it.
"""


class TooLong(Exception):
    """A task did not end in its time."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kernelbench", type=Path)
    parser.add_argument("--tasks", nargs="*", default=["level1/*.py", "level2/*.py", "level3/*.py"])
    parser.add_argument("--seconds", type=float, default=3600.0, help="no task begins after these")
    parser.add_argument("--task-seconds", type=int, default=TASK_S, help="of CPU time, for one task")
    parser.add_argument("--retry", action="store_true", help="tasks that could not be measured, again")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    known: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {"tasks": {}}
    if not options.table:
        if options.kernelbench is None:
            parser.error("--kernelbench CHECKOUT is needed")
        torch.set_num_threads(1)
        settled = {name for name, task in known["tasks"].items() if "modes" in task or not options.retry}
        paths = paths_of(options.kernelbench / "KernelBench", options.tasks, settled)
        run(paths, known["tasks"], options.seconds, options.task_seconds)
    (provenance.RESULTS / "power.md").write_text(table(known["tasks"]), encoding="utf-8")
    print(table(known["tasks"]).split("\n\n")[2])


def paths_of(root: Path, patterns: Sequence[str], settled: Set[str]) -> list[Path]:
    """The tasks that match and have no answer yet."""
    paths = [path for pattern in patterns for path in sorted(root.glob(pattern), key=numbered)]
    return [path for path in paths if named(path) not in settled]


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def run(paths: Sequence[Path], tasks: dict[str, Any], seconds: float, task_seconds: int) -> None:
    """Each task in turn, until the time is over."""
    end = time.monotonic() + seconds
    for path in paths:
        name = named(path)
        if time.monotonic() > end:
            return
        tasks[name] = examined(path, task_seconds) | {"commit": provenance.commit()}
        stored = {
            "benchmark": "power",
            "device": provenance.processor(),
            "versions": provenance.versions("torch"),
            "tasks": tasks,
        }
        RESULT.write_text(json.dumps(stored, indent=1) + "\n")
        print(
            name,
            tasks[name].get("error") or {m: len(a["kernelbench"]) for m, a in tasks[name]["modes"].items()},
            flush=True,
        )


def numbered(path: Path) -> int:
    return int(path.stem.partition("_")[0])


def examined(path: Path, seconds: int) -> dict[str, Any]:
    """The task at the smallest size at which it runs, in both modes where they differ."""
    started, why = time.monotonic(), list[str]()
    with tempfile.TemporaryDirectory() as name:
        for cap, batch in SIZES:
            (Path(name) / "task.py").write_text(shrunk(path.read_text(), cap, batch))
            try:
                with limited(seconds):
                    modes = {
                        mode: said(power_of(opened(Path(name), mode), 7)) for mode in modes_of(Path(name))
                    }
            except Fault as fault:
                why.append(f"cap {cap}: {fault.what}: {fault.why}"[:200])
                continue
            except TooLong:
                why.append(f"cap {cap}: more than {seconds} s of CPU time")
                break
            except Exception as error:
                why.append(f"cap {cap}: {type(error).__name__}: {error}"[:200])
                continue
            return {"cap": cap, "seconds": round(time.monotonic() - started, 1), "modes": modes}
    return {"error": "; ".join(dict.fromkeys(why))}


def opened(folder: Path, mode: str) -> Reference:
    return Reference.open(Options(folder, "task.py", "", mode=mode))


def modes_of(folder: Path) -> Sequence[str]:
    """Both where a layer behaves differently in training."""
    module = opened(folder, "train").module
    differ = (torch.nn.modules.batchnorm._NormBase, torch.nn.modules.dropout._DropoutNd)
    return MODES if any(isinstance(part, differ) for part in module.modules()) else MODES[:1]


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    def over(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def said(found: Power) -> dict[str, Any]:
    flips = [name for name in found.candidates if name.startswith("flipped ")]
    return {
        "candidates": len(found.candidates),
        "layers": len(flips),
        "kernelbench": found.kernelbench,
        "task": found.task,
        "repaired": found.repaired,
        "provable": found.provable,
        "unexplained": found.unexplained,
        "notes": found.notes,
    }


def table(tasks: dict[str, Any]) -> str:
    rows = [
        (name, mode, answer) for name, task in tasks.items() for mode, answer in task.get("modes", {}).items()
    ]
    weak = [row for row in rows if row[2]["kernelbench"] or row[2]["task"] or row[2]["repaired"]]
    failed = {name: task["error"] for name, task in tasks.items() if "error" in task}
    trivial = [row for row in rows if set(row[2]["kernelbench"]) & set(PROBE)]
    flips = sum(n.startswith("flipped ") for _, _, a in rows for n in a["kernelbench"])
    layers = sum(a["layers"] for _, _, a in rows)
    unexplained = sum(len(a["unexplained"]) for _, _, a in rows)
    lines = [
        HEAD,
        f"{len(tasks) - len(failed)} tasks measured, {len(failed)} not."
        f" KernelBench's rule accepts a trivial candidate in {len({r[0] for r in trivial})} tasks"
        f" and {flips} of {layers} flipped layers;"
        f" repaired data accept {unexplained} wrong candidates without a proof that they are right.",
        "",
        "| task | mode | KernelBench accepts | ours accepts | repaired accepts |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {name} | {mode} | {short(a['kernelbench'], a)} | {short(a['task'], a)} | {proved(a)} |"
            for name, mode, a in sorted(
                weak, key=lambda row: (row[0].partition("/")[0], numbered(Path(row[0])), row[1])
            )
        ),
        "",
        "Not measured:",
        "",
        *(f"* {name}: {why}" for name, why in failed.items()),
    ]
    return "\n".join(lines) + "\n"


def short(names: Sequence[str], answer: dict[str, Any]) -> str:
    """Flipped layers as a count."""
    flips = sum(name.startswith("flipped ") for name in names)
    plain = [name for name in names if not name.startswith("flipped ")]
    return ", ".join(plain + ([f"{flips} of {answer['layers']} flipped layers"] if flips else []))


def proved(answer: dict[str, Any]) -> str:
    reasons: dict[str, list[str]] = {}
    for name in answer["repaired"]:
        reasons.setdefault(answer["provable"].get(name, "**unexplained**"), []).append(name)
    said = [f"{short(names, answer)}: {why}" for why, names in reasons.items()]
    return "; ".join([*said, *(note for note in answer["notes"] if note.startswith(UNTRIED))])


if __name__ == "__main__":
    sys.exit(main())
