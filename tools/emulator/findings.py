"""The runner's raw findings as located ones: addresses to ``.cu`` lines, kinds to categories."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stitch_tui.tools.emulator.sources import candidate_name, is_candidates
from stitch_tui.tools.emulator.toolchain import environment
from stitch_tui.tools.process import run
from stitch_tui.tools.verdict import Category, Finding

CATEGORIES = {
    "out-of-bounds": Category.OUT_OF_BOUNDS,
    "out-of-bounds-shared": Category.OUT_OF_BOUNDS,
    "memcpy-out-of-bounds": Category.OUT_OF_BOUNDS,
    "array-bounds": Category.OUT_OF_BOUNDS,
    "race-read-after-write": Category.RACE,
    "race-write-after-read": Category.RACE,
    "race-write-write": Category.RACE,
    "race-between-blocks": Category.RACE,
    "unjoined-stream": Category.RACE,
    "uninitialised-read": Category.UNINITIALISED,
    "uninitialised-shared-read": Category.UNINITIALISED,
    "output-not-written": Category.UNINITIALISED,
    "shfl-inactive-source": Category.UNINITIALISED,
    "barrier-divergence": Category.BARRIER,
    "deadlock": Category.BARRIER,
    "warp-mask": Category.BARRIER,
    "host-barrier": Category.BARRIER,
    "host-warp": Category.BARRIER,
    "grid-sync": Category.BARRIER,
    "misaligned": Category.MISALIGNED,
    "invalid-configuration": Category.LAUNCH_ERROR,
    "dynamic-shared-too-large": Category.LAUNCH_ERROR,
    "shared-too-large": Category.LAUNCH_ERROR,
    "no-dynamic-shared": Category.LAUNCH_ERROR,
    "memcpy-direction": Category.LAUNCH_ERROR,
    "cublas-invalid-value": Category.LAUNCH_ERROR,
    "invalid-free": Category.ILLEGAL_ACCESS,
    "integer-overflow": Category.NUMERICS,
    "shift": Category.NUMERICS,
    "division": Category.NUMERICS,
    "stack-overflow": Category.UNSUPPORTED,
    "dynamic-parallelism": Category.UNSUPPORTED,
    "unsupported": Category.UNSUPPORTED,
    "out-of-memory": Category.OUT_OF_MEMORY_GPU,
    "exit": Category.HACK_SUSPECTED,
    "forbidden-call": Category.HACK_SUSPECTED,
}
"""Any other kind is `Category.ILLEGAL_ACCESS`: foreign pointers, freed memory, traps, aborts, asserts."""

SYMBOLISERS = ("addr2line", "llvm-addr2line")
SYMBOLISER_S = 60.0

Frame = tuple[str, int]


async def located(executable: Path, raw: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """One `Finding` for each raw one, in order; ``detail`` keeps the runner's kind and severity."""
    wanted = {int(item.get(key, "0x0"), 16) for item in raw for key in ("pc", "pc2")} - {0}
    frames = await _frames(executable, sorted(wanted))
    return [_finding(item, frames) for item in raw]


def _finding(item: Mapping[str, Any], frames: Mapping[int, Frame]) -> Finding:
    kind = str(item.get("kind", "unknown"))
    file, line = str(item.get("file", "")), int(item.get("line", 0))
    if not line:
        file, line = frames.get(int(item.get("pc", "0x0"), 16), ("", 0))
    other = int(item.get("line2", 0)) or frames.get(int(item.get("pc2", "0x0"), 16), ("", 0))[1]
    return Finding(
        category=CATEGORIES.get(kind, Category.ILLEGAL_ACCESS),
        message=str(item.get("msg", "")),
        file=candidate_name(file),
        line=line,
        where=str(item.get("where", "")),
        other_line=other,
        detail={"kind": kind, "severity": str(item.get("severity", "error"))},
    )


async def _frames(executable: Path, addresses: Sequence[int]) -> dict[int, Frame]:
    """The candidate's own innermost line for each address; without binutils there is none."""
    tool = next((found for name in SYMBOLISERS if (found := shutil.which(name))), None)
    if not addresses or tool is None:
        return {}
    asked = [tool, "-e", str(executable), "-i", "-a", *(hex(address) for address in addresses)]
    answer = await run(asked, timeout=SYMBOLISER_S, env=environment())
    return {address: _best(stack) for address, stack in _stacks(answer.stdout.splitlines()) if stack}


def _stacks(lines: Iterable[str]) -> Iterable[tuple[int, list[Frame]]]:
    """``addr2line -i -a``: an address, then its inlined frames, innermost first."""
    stacks: list[tuple[int, list[Frame]]] = []
    for line in lines:
        if line.startswith("0x"):
            stacks.append((int(line, 16), []))
        elif stacks:
            file, _, number = line.split(" (")[0].rpartition(":")
            stacks[-1][1].append((file, int(number) if number.isdigit() else 0))
    return stacks


def _best(stack: Sequence[Frame]) -> Frame:
    return next((frame for frame in stack if is_candidates(frame[0])), ("", 0))
