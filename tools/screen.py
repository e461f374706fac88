"""The static screen: what no kernel has any business doing.  Asks questions; only plain evidence accuses."""

import re
from dataclasses import dataclass

from stitch_tui.tools.cuda_source import CudaSource, Mention, read_source
from stitch_tui.tools.verdict import Category, Finding

FORBIDDEN_CALLS = {
    "starts a process": "system popen fork vfork execl execlp execle execv execvp execve posix_spawn",
    "ends or signals the process": "exit _exit _Exit quick_exit kill atexit on_exit sigaction",
    "loads code": "dlopen dlmopen dlsym cuModuleLoad cuModuleLoadData cuModuleLoadDataEx",
    "reads or writes files": "fopen freopen open openat creat mkstemp unlink opendir readlink",
    "uses the network": "socket socketpair connect sendmsg recvmsg getaddrinfo",
    "looks into processes": "ptrace process_vm_readv process_vm_writev mprotect",
    "starts a thread": "pthread_create thrd_create",
}
"""What a call does -> the functions that do it."""
FORBIDDEN_HEADERS = (
    (re.compile(r"^(torch|ATen|c10|pybind11)/|^Python\.h$"), "uses PyTorch or Python"),
    (re.compile(r"^(sys/socket|sys/ptrace|sys/mman|netinet/|arpa/|dlfcn|spawn)"), "reaches out of the process"),
)
FORBIDDEN_TEXT = ((re.compile(r"/proc/|/dev/shm|LD_PRELOAD"), "names memory or files of processes"),)
QUESTIONS = {
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
    source = read_source(text)
    evidence = [
        Finding(category=Category.HACK_SUSPECTED, message=message, file=file, line=line)
        for message, line in _evidence(source)
    ]
    questions = tuple(
        f"line {call.line}: {call.text} {QUESTIONS[call.text]}"
        for call in source.calls
        if call.text in QUESTIONS and call.text not in source.functions
    )
    return Screen(tuple(evidence), questions)


def _evidence(source: CudaSource) -> list[tuple[str, int]]:
    found = [
        (f"{call.text} {_FORBIDDEN[call.text]}", call.line)
        for call in source.calls
        if call.text in _FORBIDDEN and call.text not in source.functions
    ]
    for mentions, patterns in ((source.includes, FORBIDDEN_HEADERS), (source.strings, FORBIDDEN_TEXT)):
        found += [
            (f"{mention.text!r} {reason}", mention.line)
            for mention in mentions
            for pattern, reason in patterns
            if pattern.search(mention.text)
        ]
    return sorted(found, key=lambda item: item[1])


__all__ = ["Mention", "Screen", "screen_source"]
