"""What a candidate's object code calls, whatever its text looks like."""

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from stitch_tui.tools.imports import forbidden_imports

HIDDEN = {
    "a pasted token": (
        "#define GLUE(a, b) a##b\n"
        'extern "C" void* GLUE(dl, sym)(void*, const char*);\n'
        'void* f() { return GLUE(dl, sym)(nullptr, "x"); }',
        "dlsym loads code",
    ),
    "a spliced line": (
        'extern "C" int sys\\\ntem(const char*);\nint f() { return sys\\\ntem("true"); }',
        "system starts a process",
    ),
    "a digraph": (
        '%:define CALL fo%:%:rk\nextern "C" int CALL();\nint f() <% return CALL(); %>',
        "fork starts a process",
    ),
    "an assembler label": (
        'int innocent(const char*) __asm__("popen");\nint f() { return innocent("x"); }',
        "popen starts a process",
    ),
    "inline assembly": ('void f() { __asm__("call ptrace@plt"); }', "ptrace looks into processes"),
    "a weak reference into the interpreter": (
        'extern "C" __attribute__((weak)) int PyRun_SimpleString(const char*);\n'
        'int f() { return PyRun_SimpleString ? PyRun_SimpleString("x") : 0; }',
        "PyRun_SimpleString reaches into the process",
    ),
    "a constructor": (
        'extern "C" int pthread_create(void*, void*, void*, void*);\n'
        "__attribute__((constructor)) static void f() { pthread_create(0, 0, 0, 0); }",
        "pthread_create starts a thread",
    ),
    "a file in the standard library": (
        "#include <thread>\nvoid f() { std::thread([] {}).detach(); }",
        "thread",
    ),
}
HONEST = """
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>
static std::mutex lock;
static std::map<int, std::shared_ptr<int>> plans;
int connect(int x) { return x; }
namespace own { int open(const char*, int) { return 3; } int system(int x) { return x; } }
int f() {
  std::lock_guard<std::mutex> held(lock);
  std::cout << plans.size() << std::random_device{}() << std::getenv("HOME");
  printf("%f", std::exp(1.0 * own::system(2)));
  return connect(own::open("x", 1)) + (int)std::chrono::steady_clock::now().time_since_epoch().count();
}
"""


def found(text: str, folder: Path) -> list[str]:
    compiler, nm = shutil.which("g++"), shutil.which("nm")
    if compiler is None or nm is None:
        pytest.skip("no C++ compiler")
    (folder / "candidate.cpp").write_text(text)
    command = [compiler, "-c", "-O2", "-fPIC", "-w", "candidate.cpp", "-o", "candidate.o"]
    subprocess.run(command, cwd=folder, check=True)
    findings = asyncio.run(forbidden_imports([folder / "candidate.o"], Path(nm)))
    return [finding.message for finding in findings]


@pytest.mark.parametrize("name", HIDDEN)
def test_a_hidden_call_is_seen_behind(name: str, tmp_path: Path) -> None:
    text, words = HIDDEN[name]
    assert any(words in message for message in found(text, tmp_path))


def test_honest_host_code_calls_nothing_forbidden(tmp_path: Path) -> None:
    assert found(HONEST, tmp_path) == []


def test_no_objects_are_no_findings(tmp_path: Path) -> None:
    assert asyncio.run(forbidden_imports([], tmp_path / "nm")) == ()
