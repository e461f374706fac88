"""What a runner may not do: the command prefix that confines it, and what of that came to be active."""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/etc", "/proc", "/sys", "/run", "/var", "/nix")
"""Where no user keeps files."""
CONFINE = Path(__file__).with_name("confine.py")


@dataclass(frozen=True)
class Isolation:
    """Confinement of one runner, see ``confine.py``; all of it holds for what the runner starts too."""

    network_namespace: bool = True
    """Off for CUDA, whose processes share memory through sockets of the namespace; internet sockets are
    refused either way."""
    alone: bool = True
    """No child processes; off for Python modules, which compile and start kernel hosts."""
    read_only: bool = True
    """No files outside the runner's own folders and the devices are written."""
    filtered: bool = True
    """No internet sockets, no access to other processes' memory."""
    readable: tuple[str, ...] = ()
    """With `read_only`: the folders whose files may be read, its own aside; empty: all."""

    def prefix(self, folders: Sequence[Path], report: int) -> list[str]:
        """The command that confines itself and becomes the command behind it.

        Args:
            folders: its own, the only ones that may be written, devices aside.
            report: descriptor for the names of what is active.
        """
        command = [sys.executable, "-I", "-S", str(CONFINE), "--report", str(report)]
        command += ["--network"] if self.network_namespace else []
        command += ["--alone"] if self.alone else []
        command += ["--filter"] if self.filtered else []
        written = (*map(str, folders), "/dev") if self.read_only else ()
        command += [part for folder in written for part in ("--write", folder)]
        command += [part for folder in self.readable for part in ("--read", folder)] if self.read_only else []
        return [*command, "--"]

    def weaker(self) -> list["Isolation"]:
        """This one, then what is left of it when the device's driver does not start under it."""
        found = [self, replace(self, readable=())]
        found += [replace(self, alone=False), replace(self, read_only=False)]
        found += [replace(self, alone=False, read_only=False), replace(self, alone=False, filtered=False)]
        return list(dict.fromkeys([*found, replace(self, alone=False, read_only=False, filtered=False)]))


def reported(descriptor: int) -> list[str]:
    """What the confined process says is active; blocks until it has become the runner."""
    with os.fdopen(descriptor, "rb") as pipe:
        return pipe.read().decode(errors="replace").splitlines()


def descriptors() -> tuple[int, int]:
    """Both ends of a pipe for the report: ours, theirs."""
    return os.pipe()


def for_runner(*, module: bool, cuda: bool) -> Isolation:
    """The strictest confinement under which such a runner still works."""
    return Isolation(network_namespace=not cuda, alone=not module)


def libraries() -> tuple[str, ...]:
    """Folders that a Python with torch reads: the system's, the interpreter's, the toolkit's; no user's."""
    named = (os.environ.get("CUDA_HOME", ""), *os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    places = (*SYSTEM, sys.prefix, sys.base_prefix, *sys.path, str(Path(__file__).parent), *named, _toolkit())
    real = (os.path.realpath(place) for place in places if place)
    return tuple(dict.fromkeys(place for place in real if os.path.isdir(place)))


def _toolkit() -> str:
    """Of the nvcc that PATH names, wherever it lies: bundles build their kernels; empty: there is none."""
    root = Path(os.path.realpath(shutil.which("nvcc") or "/")).parents[1:2]
    return str(root[0]) if root and (root[0] / "nvvm").is_dir() else ""


def unprotected(active: Sequence[str]) -> str:
    """A sentence for a machine whose kernel refuses some of it; empty when all is active."""
    wanted = ("no new privileges", "own network namespace", "read-only files", "no internet sockets")
    missing = [name for name in wanted if not any(line.startswith(name) for line in active)]
    return f"the kernel refuses: {', '.join(missing)}" if missing else ""
