"""What ``nvcc -Xptxas -v`` says of each kernel: registers, spills, shared memory, and for which target."""

import re
from collections.abc import Iterator, Mapping

from stitch_tui.tools.verdict import KernelFacts

_ENTRY = re.compile(r"ptxas info\s*: Compiling entry function '(?P<name>[^']+)' for '(?P<arch>\w+)'")
_PROPERTIES = re.compile(r"ptxas info\s*: Function properties for (?P<name>\S+)")
_STACK = re.compile(r"\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"ptxas info\s*: Used (\d+) registers(?P<rest>.*)")
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")


def kernel_facts(log: str) -> Iterator[KernelFacts]:
    """Facts of each ``__global__`` function in the log, by mangled name.

    ``spill_bytes`` is stores plus loads; ``shared_bytes`` the static allocation.
    """
    kernel, described, stack, spills = "", "", 0, 0
    for line in log.splitlines():
        if entry := _ENTRY.match(line):
            kernel, stack, spills = entry["name"], 0, 0
        elif properties := _PROPERTIES.match(line):
            described = properties["name"]
        elif (sizes := _STACK.match(line)) and described == kernel:
            stack, spills = int(sizes[1]), int(sizes[2]) + int(sizes[3])
        elif (used := _USED.match(line)) and kernel:
            yield KernelFacts(
                kernel=kernel,
                registers=int(used[1]),
                spill_bytes=spills,
                shared_bytes=_shared(used["rest"]),
                stack_bytes=stack,
            )
            kernel = ""


def built_for(log: str) -> frozenset[str]:
    """Targets such as ``sm_90a`` that ptxas assembled kernels for."""
    return frozenset(entry["arch"] for entry in _ENTRY.finditer(log))


def _shared(rest: str) -> int:
    """Older versions print system shared memory apart: ``4096+16 bytes smem``."""
    found = _SHARED.search(rest)
    return sum(int(part) for part in found.groups() if part) if found else 0


def renamed(facts: KernelFacts, names: Mapping[str, str]) -> KernelFacts:
    """The facts under the kernel's demangled name, where one is known."""
    return facts.model_copy(update={"kernel": names.get(facts.kernel, facts.kernel)})
