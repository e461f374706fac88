"""What the KernelBench campaigns found, as Markdown: ``python benchmarks/kernelbench_table.py``.

Made from ``results/kernelbench_emulator.json`` and ``results/kernelbench_cuda.json``; `docs/kernelbench.md`
holds what it prints.
"""

import json
from typing import Any

import provenance

from examples import BASELINES, ratio

LONGEST_REASON = 200
WHOLE = 0.9995
"""Coverage from which nothing is missing: what is left are views."""


def main() -> None:
    found = {name: read(name) for name in ("emulator", "cuda")}
    print("\n\n".join(section(name, result) for name, result in found.items() if result))


def read(device: str) -> dict[str, Any] | None:
    """A campaign's results; None when there are none."""
    path = provenance.RESULTS / f"kernelbench_{device}.json"
    return json.loads(path.read_text()) if path.exists() else None


def section(device: str, result: dict[str, Any]) -> str:
    """The summary of one campaign and its table."""
    commits = ", ".join(sorted({r["commit"] for r in result["results"]}))
    torch = ", ".join(sorted({r["versions"]["torch"] for r in result["results"]}))
    wrong, slower = ", ".join(result["wrong_verdicts"]) or "none", result.get("correct_but_slower", 0)
    facts = (
        f"{result['correct']} of {result['tasks']} programs correct, {slower} more"
        f" with correct kernels that PyTorch outruns, so that it keeps all nodes; median coverage"
        f" {result['median_coverage']:.0%}. Recomputed with torch alone: {result['recomputed']};"
        f" wrong verdicts: {wrong}. {result['device']}, {result['sizes']} sizes, torch {torch},"
        f" commit {commits}."
    )
    timed = device == "cuda"
    heads = ["task", "program", "recomputed", "coverage", *(BASELINES if timed else ["subtasks"]), "misses"]
    rows = [row(r, timed=timed) for r in sorted(result["results"], key=order)]
    lines = [heads, ["---"] * len(heads), *rows]
    return f"## {'H200' if timed else 'Emulator'}\n\n{facts}\n\n" + "\n".join(
        f"| {' | '.join(cells)} |" for cells in lines
    )


def order(result: dict[str, Any]) -> tuple[str, int]:
    """By level, then by the task's number."""
    level, _, rest = result["task"].partition("-")
    return level, int(rest.partition("_")[0])


def row(result: dict[str, Any], *, timed: bool) -> list[str]:
    """One task's cells."""
    check, coverage = result.get("check"), result.get("coverage")
    again = {None: "not done", True: "correct", False: "WRONG"}[check["correct"] if check else None]
    timing = result.get("timing") or (result["subtasks"][0]["timing"] if result.get("slower") else {})
    speedups = timing.get("speedups", {})
    middle = [ratio(speedups.get(b)) for b in BASELINES] if timed else [str(len(result.get("subtasks", [])))]
    return [
        result["task"],
        "correct" if result.get("correct") else "PyTorch's" if result.get("slower") else "not correct",
        again,
        "" if coverage is None else f"{coverage:.0%}",
        *middle,
        reason(result),
    ]


def reason(result: dict[str, Any]) -> str:
    """Why something is missing, in one cell; empty when all is correct and covered."""
    whole = (result.get("coverage") or 0.0) > WHOLE
    told = [] if whole else list(result.get("misses", []))
    if not result.get("correct"):
        told.insert(0, result["reason"])
    text = "; ".join(told).replace("|", "\\|").replace("\n", " ")
    return text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 3]}..."


if __name__ == "__main__":
    main()
