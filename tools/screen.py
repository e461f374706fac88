"""The static screen: what no kernel has any business doing.  Asks questions; only plain evidence accuses."""

import re
from dataclasses import dataclass

from stitch_tui.tools.addressed import addressed
from stitch_tui.tools.cuda_source import CudaSource
from stitch_tui.tools.taken_in import taken_in
from stitch_tui.tools.verdict import Category, Finding

FORBIDDEN_CALLS = {
    "starts a process": "system popen fork vfork execl execlp execle execv execvp execve posix_spawn",
    "signals processes": "kill killpg sigaction",
    "loads code": "dlopen dlmopen dlsym cuModuleLoad cuModuleLoadData cuModuleLoadDataEx",
    "reads or writes files": "fopen freopen open openat creat mkstemp unlink opendir readlink",
    "uses the network": "socket socketpair connect sendmsg recvmsg getaddrinfo",
    "looks into processes": "ptrace process_vm_readv process_vm_writev mprotect",
    "starts a thread": "pthread_create thrd_create",
}
"""What a call does -> the functions that do it."""
FORBIDDEN_HEADERS = (
    (re.compile(r"^(torch|ATen|c10|pybind11)/|^Python\.h$"), "uses PyTorch or Python"),
    (
        re.compile(r"^(sys/socket|sys/ptrace|sys/mman|netinet/|arpa/|dlfcn|spawn)"),
        "reaches out of the process",
    ),
)
FORBIDDEN_TYPES = {
    **dict.fromkeys(("ifstream", "ofstream", "fstream"), "reads or writes files"),
    **dict.fromkeys(("jthread", "pthread_t"), "starts a thread"),
}
_ENDS = "ends the process: return STITCH_CUDA_ERROR instead"
QUESTIONS = {
    **dict.fromkeys(
        (
            "cudaStreamSetAttribute",
            "cudaDeviceSetLimit",
            "cudaCtxResetPersistingL2Cache",
            "cudaMemPrefetchAsync",
        ),
        "may keep data in the L2 cache between calls",
    ),
    **dict.fromkeys(("exit", "_exit", "_Exit", "quick_exit", "abort", "atexit"), _ENDS),
    "getenv": "reads the environment",
    "secure_getenv": "reads the environment",
    "time": "reads the clock",
    "gettimeofday": "reads the clock",
    "clock_gettime": "reads the clock",
    "cudaMalloc": "allocates device memory: ask for a workspace in stitch_sizes",
    "cudaStreamCreate": "makes a stream of its own: work must be ordered on the call's stream",
    "cudaStreamCreateWithFlags": "makes a stream of its own: work must be ordered on the call's stream",
    "cudaDeviceSynchronize": "synchronises the device, which capture into a graph forbids",
    "cudaStreamSynchronize": "synchronises a stream, which capture into a graph forbids",
}
"""Calls that may be honest: noted beside the verdict, never held against the candidate."""

_FORBIDDEN = {name: reason for reason, names in FORBIDDEN_CALLS.items() for name in names.split()}


@dataclass(frozen=True)
class Screen:
    """The outcome: evidence ends the verification, questions are shown beside its verdict."""

    evidence: tuple[Finding, ...]
    questions: tuple[str, ...]


def screen_source(text: str, file: str) -> Screen:
    """Screen one ``.cu``.

    A function that the source defines itself is its own, whatever its name; names in comments and
    strings are no calls.
    """
    source = CudaSource(text)
    calls = [(_plain(call.name), call.line) for call in source.calls]
    own = {function.name for function in source.functions}
    mentions = [(name, line) for name, line in calls if name not in own]
    evidence = [(f"{name} {_FORBIDDEN[name]}", line) for name, line in mentions if name in _FORBIDDEN]
    evidence += [
        (f"{token.text} {FORBIDDEN_TYPES[token.text]}", token.line)
        for token in source.tokens
        if token.text in FORBIDDEN_TYPES
    ]
    evidence += [
        (f"{include.path} {reason}", include.line)
        for include in source.includes
        for pattern, reason in FORBIDDEN_HEADERS
        if pattern.search(include.path)
    ]
    evidence += taken_in(text)
    asked = [(name, line) for name, line in mentions if name in QUESTIONS]
    return Screen(
        evidence=tuple(
            Finding(category=Category.HACK_SUSPECTED, message=message, file=file, line=line)
            for message, line in sorted(evidence, key=lambda item: item[1])
        ),
        questions=(
            *(f"line {line}: {name} {QUESTIONS[name]}" for name, line in asked),
            *(f"line {line}: {message}" for message, line in addressed(text)),
        ),
    )


def _plain(name: str) -> str:
    """A called function's name without namespaces; a method's is not one, whatever it is called."""
    return "" if "." in name or "->" in name else name.partition("<")[0].rpartition("::")[2].strip()
