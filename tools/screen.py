"""The static screen: what no kernel has any business doing.  Asks questions; only plain evidence accuses."""

import re
from dataclasses import dataclass

from stitch_tui.tools.cuda_source import CudaSource
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
FORBIDDEN_TEXT = ((re.compile(r"/proc/|/dev/shm|LD_PRELOAD"), "names memory or files of processes"),)
_ENDS = "ends the process: return STITCH_CUDA_ERROR instead"
QUESTIONS = {
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
    evidence = [
        Finding(category=Category.HACK_SUSPECTED, message=message, file=file, line=line)
        for message, line in _evidence(source)
    ]
    questions = tuple(
        f"line {line}: {name} {QUESTIONS[name]}" for name, line in _library_calls(source) if name in QUESTIONS
    )
    return Screen(tuple(evidence), questions)


def _evidence(source: CudaSource) -> list[tuple[str, int]]:
    found = [
        (f"{name} {_FORBIDDEN[name]}", line) for name, line in _library_calls(source) if name in _FORBIDDEN
    ]
    headers = [(include.path, include.line) for include in source.includes]
    strings = [(string.text, string.line) for string in source.strings]
    for mentions, patterns in ((headers, FORBIDDEN_HEADERS), (strings, FORBIDDEN_TEXT)):
        found += [
            (f"{text!r} {reason}", line)
            for text, line in mentions
            for pattern, reason in patterns
            if pattern.search(text)
        ]
    return sorted(found, key=lambda item: item[1])


def _library_calls(source: CudaSource) -> list[tuple[str, int]]:
    """Calls of functions that the source does not define, by the last part of their name; no methods."""
    own = {function.name for function in source.functions}
    names = [(call.name.rpartition("::")[2], call.line) for call in source.calls]
    return [(name, line) for name, line in names if name.isidentifier() and name not in own]
