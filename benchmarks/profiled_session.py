"""Do a session and the commands profile on this machine?  One example through ``stitch`` as a user runs it.

``python benchmarks/profiled_session.py [NAME]`` needs an NVIDIA GPU, nvcc, nsys and ncu.  In a repository of
its own: ``stitch --auto``, then, side by side, ``stitch profile``, ``stitch verify --profile`` on the best
kernel and ``stitch recheck``.  Writes ``benchmarks/results/profiled_session.json`` after each command, and
ends with 1 when one of them failed, drifted or measured less than its best evidence.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import provenance

from stitch_tui.tools import process

SECONDS = 300.0
SESSION = ("--set", "limits.iterations=2", "--set", "limits.minutes=1.5")
Json = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", nargs="?", default="layernorm_gelu")
    return asyncio.run(run(parser.parse_args().name))


async def run(name: str) -> int:
    result: Json = {
        "benchmark": "profiled_session",
        "commit": provenance.commit(),
        "versions": provenance.versions("torch"),
        "example": name,
        "passed": False,
    }
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), f"{name}.py")
        (project.folder / project.reference).write_bytes(
            (provenance.ROOT / "examples" / project.reference).read_bytes()
        )
        await process.run(["git", "init", "--quiet", folder], timeout=30)

        async def step(name: str, part: Callable[[Project], Awaitable[Json]]) -> None:
            try:
                result[name] = await part(project)
            except Exception as error:  # whatever it is, it costs this step alone
                traceback.print_exc()
                result[name] = {"ok": False, "why": f"{type(error).__name__}: {error}"}
            print(name, json.dumps(result[name]), flush=True)
            provenance.write("profiled_session", result, shown=False)

        await step("session", session)
        commands = {"profile": reference_profile, "verify": kernel_profile, "recheck": recheck}
        await asyncio.gather(*(step(*named) for named in commands.items()))  # they lease the GPU
        result["passed"] = all(result[name]["ok"] for name in ("session", *commands))
        provenance.write("profiled_session", result, shown=False)
    return 0 if result["passed"] else 1


@dataclass(frozen=True)
class Told:
    """A command that has ended."""

    exit_code: int
    lines: list[Json]
    """Its standard output, a JSON value a line."""
    stderr: str
    seconds: float

    def about(self) -> Json:
        """For the result: how it ended, and its last words where it printed nothing."""
        last = {} if self.lines else {"stderr": self.stderr[-500:]}
        return {"exit_code": self.exit_code, "seconds": round(self.seconds, 1), **last}


@dataclass(frozen=True)
class Project:
    """A repository with one reference."""

    folder: Path
    reference: str

    async def stitch(self, *words: str) -> Told:
        path = os.pathsep.join([str(provenance.ROOT), os.environ.get("PYTHONPATH", "")])
        argv = [sys.executable, "-m", "stitch_tui", *words]
        started = time.monotonic()
        done = await process.run(
            argv,
            timeout=SECONDS,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path},
            output_limit=1 << 28,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("{", "["))]
        return Told(done.returncode, lines, done.stderr, time.monotonic() - started)


async def session(project: Project) -> Json:
    """``stitch --auto``: what was measured of the reference and of each version that became best."""
    told = await project.stitch("--auto", project.reference, "--json", *SESSION)
    events = {kind: [e for e in told.lines if e["type"] == kind] for kind in _EVENTS}
    profiled = [
        {
            "iteration": event["iteration"],
            "subtask": event["subtask"],
            "seconds": event["profile"]["seconds"],
            **evidence(event["profile"]),
        }
        for event in events["profiled"]
    ]
    advice = [{"iteration": e["iteration"], **e["advice"]} for e in events["advice"]]
    return {
        "ok": bool(profiled) and any(one["evidence"] == "ncu" for one in profiled) and bool(advice),
        **told.about(),
        "reference": [
            {"evidence": e["trace"]["evidence"], "why": e["trace"]["why"]}
            for e in events["reference.profiled"]
        ],
        "profiled": profiled,
        "advice": advice,
        "verdicts": [
            {"iteration": e["iteration"], "subtask": e["subtask"], "summary": e["verdict"]["summary"]}
            for e in events["verdict"]
        ],
        "warnings": [e["text"] for e in events["warning"]],
    }


_EVENTS = ("reference.profiled", "profiled", "advice", "verdict", "warning")


async def reference_profile(project: Project) -> Json:
    """``stitch profile``: the reference's passes."""
    told = await project.stitch("profile", project.reference, "--json")
    trace = told.lines[-1]["trace"] if told.lines else {}
    system = trace.get("system") or {}
    return {
        "ok": told.exit_code == 0 and trace.get("evidence") == "nsys",
        **told.about(),
        "evidence": trace.get("evidence"),
        "why": trace.get("why"),
        "kernels": [k["kernel"] for k in system.get("kernels", [])],
    }


async def kernel_profile(project: Project) -> Json:
    """``stitch verify --profile`` on the best iteration's first kernel."""
    exported = await project.stitch("export", "bundle")
    kernel = next((project.folder / "bundle" / "kernels").glob("*.cu"))
    words = ("verify", str(kernel), "--reference", project.reference, "--profile", "--json")
    told = await project.stitch(*words)
    verdict = told.lines[-1] if told.lines else {}
    profile = verdict.get("profile") or {}
    return {
        "ok": told.exit_code == 0 and profile.get("evidence") in ("ncu", "nsys"),
        **told.about(),
        "exported": exported.exit_code,
        "kernel": kernel.name,
        "summary": verdict.get("summary"),
        **evidence(profile),
    }


async def recheck(project: Project) -> Json:
    """``stitch recheck``: the session's best once more."""
    told = await project.stitch("recheck", "--json")
    found = told.lines[-1] if told.lines else {}
    return {
        "ok": told.exit_code == 0 and found.get("drift") == [],
        **told.about(),
        "drift": found.get("drift"),
        "notes": found.get("notes"),
        "before": (found.get("before") or {}).get("verdict"),
        "now": (found.get("now") or {}).get("summary"),
    }


def evidence(profile: Json) -> Json:
    """Who measured, why, and of which kernels."""
    kernels = [(k["kernel"], k["time_us"]) for k in profile.get("kernels", [])]
    told = {name: profile.get(name) for name in ("evidence", "system_evidence", "tool", "why")}
    return {**told, "notes": profile.get("notes"), "kernels": kernels}


if __name__ == "__main__":
    sys.exit(main())
