"""Give up rights, then become another program: ``confine.py OPTIONS -- ARGV...``.  Linux x86-64, no torch.

Options: ``--network`` an own network namespace; ``--filter`` no internet sockets and no access to other
processes; ``--alone`` with it, no child processes; ``--write DIR`` (repeated) the only folders that may
be written, ``--read DIR`` beside them the only ones whose files may be read.  What the kernel refuses is left
out; ``--report FD`` names, one a line, what is active.
Everything here is inherited and cannot be undone by the program.
"""

import argparse
import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

PROCESS_LIMIT = 16384
"""Of the user as a whole, torch's and CUDA's threads among them: ends a fork bomb, not a program."""
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2
_SECCOMP, _SET_MODE_FILTER, _SPECULATION_ALLOWED = 317, 1, 4
_CLONE_NEWNET, _CLONE_NEWUSER, _CLONE_THREAD = 0x40000000, 0x10000000, 0x10000
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_WRITES = {1: 0x1FF2, 2: 0x3FF2, 3: 0x7FF2}
"""Landlock's version -> every right that changes a file or folder."""
_LANDLOCK_READ_FILE = 0x4
_O_PATH = 0o10000000
_AUDIT_X86_64 = 0xC000003E
_ALLOW, _DENY, _ABSENT = 0x7FFF0000, 0x00050001, 0x00050026
"""Seccomp's answers: allow, EPERM, ENOSYS."""
_FORBIDDEN_CALLS = (101, 310, 311, 425, 159, 164, 227, 305)
"""ptrace, process_vm_readv, process_vm_writev, io_uring_setup (which makes sockets past any filter), and
what sets clocks: adjtimex, settimeofday, clock_settime, clock_adjtime."""
_NETWORK_FAMILIES = (2, 10, 17)
"""AF_INET, AF_INET6, AF_PACKET."""
_SOCKET, _CLONE, _FORK, _VFORK, _CLONE3 = 41, 56, 57, 58, 435

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", action="store_true")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--filter", action="store_true")
    parser.add_argument("--write", action="append", default=[])
    parser.add_argument("--read", action="append", default=[])
    parser.add_argument("--report", type=int, default=-1)
    parser.add_argument("argv", nargs="+")
    options = parser.parse_args()
    active = confine(
        network=options.network,
        alone=options.alone,
        filtered=options.filter,
        write=options.write,
        read=options.read,
    )
    if options.report >= 0:
        os.write(options.report, "".join(f"{name}\n" for name in active).encode())
        os.close(options.report)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it: too large a file is to be the end
    os.execvp(options.argv[0], options.argv)


def confine(
    *, network: bool, alone: bool, filtered: bool, write: Sequence[str], read: Sequence[str]
) -> list[str]:
    """Confine this process; returns what is active, in words."""
    steps: list[tuple[str, Callable[[], bool]]] = [
        ("limits on processes and core dumps", _limit),
        ("no new privileges", lambda: _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) == 0),
    ]
    if network:
        steps.append(("own network namespace", _own_network))
    if write:
        words = "read-only files outside its folder" + (", none of the user's" if read else "")
        steps.append((words, lambda: _confine_files(write, read)))
    words = "no internet sockets, no access to other processes' memory"
    if filtered:
        steps.append((words + (", no child processes" if alone else ""), lambda: _filter_calls(alone)))
    return [name for name, step in steps if step()]


def _limit() -> bool:
    for which, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_NPROC, PROCESS_LIMIT)):
        hard = resource.getrlimit(which)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (least, least))
    return True


def _own_network() -> bool:
    if _libc.unshare(_CLONE_NEWNET) == 0:
        return True
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
        return False
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def _confine_files(write: Sequence[str], read: Sequence[str]) -> bool:
    """Landlock: every write, creation and removal outside `write` is refused, and every reading of a file
    outside both; without `read` files are read everywhere."""
    version = _libc.syscall(_LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return False
    writes = _LANDLOCK_WRITES[min(version, max(_LANDLOCK_WRITES))]
    reads = _LANDLOCK_READ_FILE if read else 0
    rules = _libc.syscall(_LANDLOCK_CREATE, struct.pack("Q", writes | reads), 8, 0)
    if rules < 0:
        return False
    for folders, rights in ((write, writes | reads), (read, reads)):
        for folder in folders:
            opened = os.open(folder, _O_PATH | os.O_CLOEXEC)
            _libc.syscall(_LANDLOCK_ADD, rules, 1, struct.pack("=Qi", rights, opened), 0)
            os.close(opened)
    refused = int(_libc.syscall(_LANDLOCK_RESTRICT, rules, 0))
    os.close(rules)
    return refused == 0


def _filter_calls(alone: bool) -> bool:
    if os.uname().machine != "x86_64":
        return False
    program = filter_program(alone)
    block = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(block))
    # Without the flag, kernels before 5.16 take speculation from the process, which slows its Python down
    # beside the baselines that it is timed against.
    if _libc.syscall(_SECCOMP, _SET_MODE_FILTER, _SPECULATION_ALLOWED, header) == 0:
        return True
    return bool(_libc.prctl(_SET_SECCOMP, _FILTER, header, 0, 0) == 0)


def filter_program(alone: bool) -> bytes:
    """Classic BPF over ``struct seccomp_data``: number at 0, architecture at 4, arguments from 16."""
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    rows: list[tuple[int, int, int, int]] = [
        (load, 0, 0, 4),
        (equal, 1, 0, _AUDIT_X86_64),
        (give, 0, 0, _DENY),
        (load, 0, 0, 0),
        (at_least, 0, 1, 0x40000000),  # the x32 table: the same calls under other numbers
        (give, 0, 0, _DENY),
    ]
    refused = (*_FORBIDDEN_CALLS, *((_FORK, _VFORK) if alone else ()))
    for number in refused:
        rows += [(equal, 0, 1, number), (give, 0, 0, _DENY)]
    if alone:
        # clone3's flags lie in memory that a filter cannot read: without it libc falls back to clone.
        rows += [(equal, 0, 1, _CLONE3), (give, 0, 0, _ABSENT)]
        rows += [(equal, 0, 4, _CLONE), (load, 0, 0, 16), (any_bit, 1, 0, _CLONE_THREAD)]
        rows += [(give, 0, 0, _DENY), (give, 0, 0, _ALLOW)]
    rows += [(equal, 0, 2 + 2 * len(_NETWORK_FAMILIES), _SOCKET), (load, 0, 0, 16)]
    for family in _NETWORK_FAMILIES:
        rows += [(equal, 0, 1, family), (give, 0, 0, _DENY)]
    rows += [(give, 0, 0, _ALLOW), (give, 0, 0, _ALLOW)]
    return b"".join(struct.pack("HBBI", code, yes, no, value) for code, yes, no, value in rows)


if __name__ == "__main__":
    sys.path = [
        entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).parent.resolve()
    ]
    main()
