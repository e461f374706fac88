"""What a candidate's machine code holds: ptxas's figures, and which tensor-core instructions."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from stitch_tui.tools import process
from stitch_tui.tools.profiling.ncu_csv import base_name
from stitch_tui.tools.profiling.profile import KernelCode
from stitch_tui.tools.toolkit import Toolkit
from stitch_tui.tools.verdict import Build

SECONDS = 60.0
LISTING_BYTES = 64 << 20
"""Of a disassembly that is read; a kernel of some thousand instructions is 200 KB."""
_FUNCTION = re.compile(r"\s*Function : (\S+)")
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]+\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)")
"""Address, perhaps a predicate, and the mnemonic up to its first dot."""


async def code_of(build: Build, toolkit: Toolkit) -> tuple[tuple[KernelCode, ...], str]:
    """Each kernel of a library, and why tensor-core instructions were not counted; never raises for a tool.

    Args:
        build: from nvcc.
    """
    counts, why = await _counted(build, toolkit)
    known = {facts.kernel: facts for facts in build.kernels}
    names = [*known, *(name for name in counts or {} if name not in known)]
    return tuple(
        KernelCode(
            kernel=base_name(name),
            tensor=None if counts is None else counts.get(name, {}),
            **(known[name].model_dump(exclude={"kernel"}) if name in known else {}),
        )
        for name in names
    ), why


async def _counted(build: Build, toolkit: Toolkit) -> tuple[dict[str, dict[str, int]] | None, str]:
    """Counts by demangled kernel; None, and a reason, where there are none."""
    if toolkit.cuobjdump is None:
        return None, "cuobjdump is not installed: tensor-core instructions were not counted"
    try:
        argv = [str(toolkit.cuobjdump), "-sass", build.artifact]
        done = await process.run(argv, timeout=SECONDS, output_limit=LISTING_BYTES)
        counts = tensor_instructions(done.stdout)
        if not done.ok or done.truncated or not counts:
            return None, f"tensor-core instructions were not counted: {_reason(done)}"
        return await _demangled(counts, toolkit), ""
    except OSError as error:
        return None, f"cuobjdump cannot be started: {error.strerror or error}"


def _reason(done: process.Finished) -> str:
    if done.timed_out:
        return f"cuobjdump took longer than {SECONDS:g} s"
    if done.truncated:
        return "the disassembly is too long"
    last = (done.stderr.strip() or "cuobjdump printed no kernel").splitlines()[-1]
    return last[:200]


def tensor_instructions(listing: str) -> dict[str, dict[str, int]]:
    """Instructions of tensor cores, ``HMMA`` or ``HGMMA``, of each function that a disassembly names."""
    counts: dict[str, Counter[str]] = {}
    current: Counter[str] = Counter()
    for line in listing.splitlines():
        if function := _FUNCTION.match(line):
            current = counts.setdefault(function[1], Counter())
        elif (found := _INSTRUCTION.match(line)) and found[1].endswith("MMA"):
            current[found[1]] += 1
    return {name: dict(found) for name, found in counts.items()}


async def _demangled(counts: Mapping[str, dict[str, int]], toolkit: Toolkit) -> dict[str, dict[str, int]]:
    """The counts under the names that `Build.kernels` has."""
    mangled: Sequence[str] = list(counts)
    if toolkit.demangler is None:
        return dict(counts)
    done = await process.run([str(toolkit.demangler)], stdin="\n".join(mangled).encode(), timeout=60)
    names = done.stdout.splitlines() if done.ok else []
    return dict(zip(names if len(names) == len(mangled) else mangled, counts.values(), strict=True))
