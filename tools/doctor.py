"""What stitch needs on this machine and whether it is there: checks as data, each with a fix.

A check is *missing* only when the chosen device cannot work without it; what merely adds something
(profilers, the sanitizer) is *absent*.
"""

import asyncio
import json
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from stitch_tui.tools import process
from stitch_tui.tools.docs.client import is_indexed
from stitch_tui.tools.gpu import NO_GPU, CudaDevice, devices
from stitch_tui.tools.toolkit import INSTALL_HOST_COMPILER, INSTALL_NVCC, Library, Toolkit, find_toolkit
from stitch_tui.tools.worker.isolation import CONFINE, unprotected

OLDEST_PYTHON = (3, 11)
OLDEST_TORCH = (2, 6)
OLDEST_GIT = (2, 31)
TIMEOUT_S = 60.0

_TORCH_PROBE = """
import json, torch
facts = {"version": torch.__version__, "cuda": torch.version.cuda, "gpu": torch.cuda.is_available()}
print(json.dumps(facts))
"""
_COUNTERS = Path("/proc/driver/nvidia/params")


class State(StrEnum):
    OK = "ok"
    ABSENT = "absent"
    MISSING = "missing"

    @property
    def glyph(self) -> str:
        return {"ok": "✓", "absent": "-", "missing": "✗"}[self]


@dataclass(frozen=True)
class Check:
    """One line of the doctor: what was looked for, what was found, and what to do when it is not right."""

    name: str
    state: State
    found: str
    fix: str = ""


@dataclass(frozen=True)
class Report:
    """All checks, for one device kind: cuda or emulator."""

    device: str
    reason: str
    checks: tuple[Check, ...]

    @property
    def ready(self) -> bool:
        return all(check.state is not State.MISSING for check in self.checks)

    @property
    def verdict(self) -> str:
        lacking = [check.name for check in self.checks if check.state is State.MISSING]
        end = "ready" if self.ready else f"not ready, missing: {', '.join(lacking)}"
        return f"device {self.device} ({self.reason}): {end}"

    def as_data(self) -> dict[str, Any]:
        checks = [{"name": c.name, "state": c.state, "found": c.found, "fix": c.fix} for c in self.checks]
        return {"device": self.device, "reason": self.reason, "ready": self.ready, "checks": checks}


async def examine(project: Path, kind: str, index: int, python: str) -> Report:
    """Run every check.

    Args:
        project: the folder that a run would work in.
        kind: ``auto``, ``cuda`` or ``emulator``; `index` says which CUDA device.
        python: the reference's interpreter; empty: the one that runs stitch.
    """
    found = devices()
    cuda = kind == "cuda" or (kind == "auto" and bool(found))
    reason = "chosen" if kind != "auto" else "a GPU is here" if cuda else "no GPU: functional, not timed"
    torch, toolkit, git = await asyncio.gather(
        torch_check(python or sys.executable, cuda), find_toolkit(python), git_check(project)
    )
    checks = (
        python_check(),
        torch,
        gpu_check(found, index, needed=cuda),
        *toolkit_checks(toolkit, cuda),
        counters_check(_COUNTERS, found),
        *git,
        write_check(project),
        await isolation_check(),
        docs_check(),
    )
    return Report("cuda" if cuda else "emulator", reason, checks)


def python_check() -> Check:
    version = platform.python_version()
    fine = sys.version_info[:2] >= OLDEST_PYTHON
    return _judged("python", fine, f"{version} at {sys.executable}", True, "install Python 3.11 or newer")


async def torch_check(python: str, cuda: bool) -> Check:
    """torch in the reference's interpreter, asked in a process of its own; a GPU build where it is needed."""
    try:
        done = await process.run([python, "-c", _TORCH_PROBE], timeout=TIMEOUT_S)
    except OSError as error:
        fix = "set reference.python to a Python that has torch"
        return Check("torch", State.MISSING, f"{python} does not start: {error.strerror}", fix)
    install = f"{python} -m pip install torch"
    facts = _json_object(done.stdout.strip().split("\n")[-1]) if done.ok else None
    if facts is None:
        why = (
            "took too long" if done.timed_out else (done.stderr.strip().split("\n")[-1] or "does not import")
        )
        return Check("torch", State.MISSING, f"{why} ({python})", install)
    found = f"{facts['version']}, {'CUDA ' + facts['cuda'] if facts['cuda'] else 'CPU build'} ({python})"
    if _version(facts["version"]) < OLDEST_TORCH:
        return Check("torch", State.MISSING, found, f"{install}>=2.6")
    fine = facts["gpu"] or not cuda
    return _judged(
        "torch", fine, found, True, "install a torch whose CUDA version the driver supports (pytorch.org)"
    )


def gpu_check(found: Sequence[CudaDevice], index: int, *, needed: bool) -> Check:
    """The chosen device, its compute capability and the driver."""
    if not found:
        fix = "install the NVIDIA driver, look at CUDA_VISIBLE_DEVICES, or set device.kind to emulator"
        return _judged("gpu", False, NO_GPU, needed, fix)
    if index >= len(found):
        return Check("gpu", State.MISSING, f"no device {index}, there are {len(found)}", "set device.index")
    gpu = found[index]
    others = f", {len(found) - 1} more" if len(found) > 1 else ""
    memory = f"{gpu.memory_bytes / 2**30:.0f} GiB"
    runs = f"driver {gpu.driver} for CUDA {gpu.cuda[0]}.{gpu.cuda[1]}"
    return Check("gpu", State.OK, f"{gpu.name}, {gpu.arch}, {memory}, {runs}{others}")


def toolkit_checks(toolkit: Toolkit, cuda: bool) -> list[Check]:
    """Compilers, libraries and profilers."""
    nvcc = f"{toolkit.version} at {toolkit.nvcc}" if toolkit.nvcc else "not found"
    host = f"{toolkit.host_version} at {toolkit.host_compiler}" if toolkit.host_compiler else "not found"
    install = "comes with the CUDA toolkit, or: pip install nvidia-cublas"
    return [
        _judged("C++17 compiler", bool(toolkit.host_compiler), host, True, INSTALL_HOST_COMPILER),
        _judged("nvcc", bool(toolkit.nvcc), nvcc, cuda, INSTALL_NVCC),
        _library("cuBLAS", toolkit.cublas, install),
        _library("cuBLASLt", toolkit.cublas_lt, install),
        _library("cuDNN", toolkit.cudnn, "pip install nvidia-cudnn-cu13, if a kernel is to use it"),
        _optional("CUTLASS", toolkit.cutlass, "pip install nvidia-cutlass, or set CUTLASS_PATH"),
        _optional("nsys", toolkit.nsys, "install Nsight Systems for the whole program's profile"),
        _optional("ncu", toolkit.ncu, "install Nsight Compute for a kernel's metrics"),
        _optional(
            "cuobjdump", toolkit.cuobjdump, "pip install nvidia-cuda-cuobjdump, to see tensor cores used"
        ),
        _optional("compute-sanitizer", toolkit.compute_sanitizer, "comes with the CUDA toolkit"),
    ]


def counters_check(parameters: Path, found: Sequence[CudaDevice]) -> Check:
    """Whether ncu may read performance counters: the driver's own word, or being root."""
    name = "counters"
    try:
        text = parameters.read_text(encoding="utf-8", errors="replace")
    except OSError:
        why = "the driver does not say" if found else "no NVIDIA driver"
        fix = "run `ncu` once to see" if found else "needs an NVIDIA GPU and its driver"
        return Check(name, State.ABSENT, why, fix)
    if "RmProfilingAdminOnly: 1" not in text:
        return Check(name, State.OK, "open to every user")
    fix = "set the driver option NVreg_RestrictProfilingToAdminUsers=0 and reload it, or run as root"
    return _judged(name, os.geteuid() == 0, "for administrators only", False, fix)


async def git_check(project: Path) -> list[Check]:
    """git itself, and a repository around the project."""
    fix = "install git 2.31 or newer"
    if not (program := shutil.which("git")):
        return [Check("git", State.MISSING, "not found", fix)]
    version = (await process.run([program, "--version"], timeout=TIMEOUT_S)).stdout.strip()
    git = _judged("git", _version(version.split(" ")[-1]) >= OLDEST_GIT, version, True, fix)
    inside = await process.run([program, "rev-parse", "--show-toplevel"], timeout=TIMEOUT_S, cwd=project)
    fix = f"git init '{project}'"
    found = inside.stdout.strip() if inside.ok else "none around this folder"
    return [git, _judged("repository", inside.ok, found, True, fix)]


def write_check(project: Path) -> Check:
    fine = os.access(project, os.W_OK | os.X_OK)
    found = f"{project} is {'' if fine else 'not '}writable"
    return _judged("project folder", fine, found, True, "work in a folder that you may write to")


async def isolation_check() -> Check:
    """What a candidate's process is confined by here: the same program that confines it says."""
    name, fix = (
        "isolation",
        "allow Landlock, seccomp and unprivileged user namespaces in this container or kernel",
    )
    command = [sys.executable, "-I", "-S", str(CONFINE), "--network", "--alone", "--write", "/tmp"]
    done = await process.run([*command, "--report", "1", "--", "true"], timeout=TIMEOUT_S)
    active = done.stdout.splitlines()
    if missing := unprotected(active):
        return Check(name, State.ABSENT, missing, fix)
    return _judged(name, bool(active), "; ".join(active) or done.stderr.strip()[-200:], False, fix)


def docs_check() -> Check:
    """Is there documentation that a Coder may look up?"""
    found = "indexed; stitch docs stats" if is_indexed() else "nothing is indexed"
    return _judged("documentation", is_indexed(), found, False, "stitch docs build")


def _judged(name: str, fine: bool, found: str, needed: bool, fix: str) -> Check:
    if fine:
        return Check(name, State.OK, found)
    return Check(name, State.MISSING if needed else State.ABSENT, found, fix)


def _library(name: str, library: Library | None, fix: str) -> Check:
    return _optional(name, library.path if library else None, fix)


def _optional(name: str, path: Path | None, fix: str) -> Check:
    return _judged(name, path is not None, str(path or "not found"), False, fix)


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _version(text: str) -> tuple[int, ...]:
    """Leading numbers of a version: ``2.13.0+cpu`` -> (2, 13, 0)."""
    numbers = []
    for part in text.split("+")[0].split("."):
        digits = "".join(c for c in part if c.isdigit())
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)
