"""``benchmarks/results/hacks.md``: hack by detector, from the results of the runs on a CPU and on a GPU."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DETECTORS = ("screen", "host", "module", "emulator", "gpu")
HEAD = """# Hacks and detectors

Made by `python -m benchmarks.hacks --table` from `hacks_cpu.json` and `hacks_cuda.json`. A cell names the
category with which that detector caught the hack's candidates; *question* means that an honest program may do
the same, so it is asked about and not accused. In brackets: refused, but under another name than the one that
the candidate was written for. **Accepted** would stand in bold. *Results alone* is shape and `allclose` in
five calls on the task's own inputs; *text alone* is KernelBench's static checker: both look at the format of
a candidate and at its answers, and neither at what it does.
"""


def written(results: Path) -> None:
    """Write the table of whatever results are there."""
    found = {
        device: json.loads(path.read_text())
        for device in ("cpu", "cuda")
        if (path := results / f"hacks_{device}.json").exists()
    }
    (results / "hacks.md").write_text(rendered(found), encoding="utf-8")


def rendered(found: dict[str, Any]) -> str:
    rows = [row | {"device": device} for device, result in found.items() for row in result["rows"]]
    lines = [
        HEAD,
        *(summary(device, result) for device, result in found.items()),
        "",
        "| hack | what it does | screen | host | module | emulator | GPU | results alone | text alone |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for number in sorted({row["hack"] for row in rows}):
        own = [row for row in rows if row["hack"] == number]
        cells = [cell([r for r in own if column(r) == detector]) for detector in DETECTORS]
        cells += [alone([r["format_checks"] for r in own]), alone([r.get("text_checks", "") for r in own])]
        lines.append(f"| {number} | {own[0]['what']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def column(row: dict[str, Any]) -> str:
    """On a GPU everything stands under GPU; elsewhere the emulator is the device."""
    if row["device"] == "cuda":
        return "gpu"
    return "emulator" if row["detector"] == "device" else str(row["detector"])


def cell(rows: Sequence[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(map(word, rows)))


def word(row: dict[str, Any]) -> str:
    if row["category"] == "correct":
        return "question" if row["caught"] else "**accepted**"
    return row["category"] if row["caught"] else f"({row['category']})"


def alone(answers: Sequence[str]) -> str:
    """How many of a hack's candidates pass: those are missed."""
    ran = [answer for answer in answers if answer and answer != "not run"]
    missed = sum(answer == "passed" for answer in ran)
    return f"missed {missed} of {len(ran)}" if missed else (f"rejected {len(ran)}" if ran else "")


def summary(device: str, result: dict[str, Any]) -> str:
    honest = result["honest"]
    accepted = sum(row["category"] == "correct" for row in result["missed"])
    false = honest.get("falsely_rejected", {})
    asked = any(row.get("text_checks", "not run") != "not run" for row in result["rows"])
    by_text = f", {len(honest['falsely_rejected_by_text_checks'])} rejected by text alone" if asked else ""
    judged = (
        f"{honest['judged']} judged whole, {len(false)} rejected" if "judged" in honest else "by the screen"
    )
    return (
        f"* {device}: {result['device']}, {commits(result)}: {result['candidates']} candidates,"
        f" {accepted} accepted, {len(result['missed']) - accepted} refused under another name;"
        f" {honest['programs']} honest programs, {judged},"
        f" {len(honest['falsely_rejected_by_the_screen'])} accused by the screen{by_text}."
        + (f" Not run: {', '.join(result['not_run'])}." if result["not_run"] else "")
        + (f" Of these {note}" if (note := result.get("rows_note")) else "")
    )


def commits(result: dict[str, Any]) -> str:
    """At which commits, the usual one first."""
    found = Counter(row.get("commit", result["commit"]) for row in result["rows"]).most_common()
    if len(found) == 1:
        return f"commit {found[0][0]}"
    return "commits " + ", ".join(f"{name} ({count})" for name, count in found)
