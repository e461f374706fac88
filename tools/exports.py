"""Can the runner find a candidate's entry points by name?  Read from the symbol table; nothing is loaded."""

from pathlib import Path

from stitch_tui.tools import process
from stitch_tui.tools.compiler_faults import compiler_error
from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.toolkit import Toolkit
from stitch_tui.tools.verdict import Category, Finding

ENTRY_POINTS = ("stitch_run", "stitch_sizes", "stitch_bind", "stitch_unbind")


async def unexported(artifact: Path, toolkit: Toolkit) -> tuple[Finding, ...]:
    """Findings for entry points that the runner could not find by name."""
    names = await _exports(artifact, toolkit)
    found = []
    for name in ENTRY_POINTS:
        if name in names:
            continue
        if mangled := next((other for other in names if other.startswith(f"_Z{len(name)}{name}")), ""):
            why = f'{name} has C++ linkage ({mangled}): include "stitch.h" or declare it extern "C"'
            found.append(compiler_error(Category.LINK_ERROR, why))
        elif name == "stitch_run":
            why = "stitch_run is not exported: every candidate defines int stitch_run(const stitch_call*)"
            found.append(compiler_error(Category.LINK_ERROR, why))
    return tuple(found)


async def _exports(artifact: Path, toolkit: Toolkit) -> frozenset[str]:
    if toolkit.nm is None:
        raise EnvironmentFault("nm was not found", advice="install binutils, which has the linker too")
    done = await process.run([str(toolkit.nm), "-D", "--defined-only", str(artifact)], timeout=60)
    return frozenset(line.split()[-1] for line in done.stdout.splitlines() if line.strip())
