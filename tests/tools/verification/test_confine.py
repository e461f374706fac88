"""What a confined process cannot do, asked of a real one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stitch_tui.tools.worker.isolation import Isolation, libraries, reported, unprotected

TRIES = {
    "an internet socket": "import socket; socket.socket(socket.AF_INET)",
    "a file elsewhere": "open({outside!r}, 'w')",
    "a child process": "import os; os.fork()",
}
ALLOWED = {
    "a file in its folder": "open({inside!r}, 'w').write('fine')",
    "a socket pair": "import socket; socket.socketpair()",
    "a thread": "import threading; t = threading.Thread(target=int); t.start(); t.join()",
    "reading": "open({readable!r}).read()",
    "the null device": "open('/dev/null', 'w').write('nothing')",
}


def tried(folder: Path, code: str, isolation: Isolation) -> tuple[int, list[str]]:
    """Exit status of the code in a confined interpreter, and what was active."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    ours, theirs = os.pipe()
    filled = code.format(
        inside=str(work / "own"), outside=str(folder / "foreign"), readable=str(Path(__file__))
    )
    command = [*isolation.prefix([work], theirs), sys.executable, "-I", "-S", "-c", filled]
    done = subprocess.run(command, pass_fds=(theirs,), capture_output=True, check=False)
    os.close(theirs)
    return done.returncode, reported(ours)


def test_a_toolkit_is_read_wherever_path_finds_its_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "cuda" / "bin" / "nvcc"
    compiler.parent.mkdir(parents=True)
    compiler.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(compiler.parent))
    assert str(tmp_path / "cuda") not in libraries()  # any program of that name: its folder may be a home
    (tmp_path / "cuda" / "nvvm").mkdir()
    assert str(tmp_path / "cuda") in libraries()


@pytest.mark.parametrize("what", TRIES)
def test_a_confined_process_is_refused(what: str, tmp_path: Path) -> None:
    code, active = tried(tmp_path, TRIES[what], Isolation())
    if reason := unprotected(active):
        pytest.skip(reason)
    assert code != 0


@pytest.mark.parametrize("what", ALLOWED)
def test_a_confined_process_still_has(what: str, tmp_path: Path) -> None:
    assert tried(tmp_path, ALLOWED[what], Isolation())[0] == 0


def test_a_python_module_may_start_compilers(tmp_path: Path) -> None:
    code, active = tried(
        tmp_path, "import subprocess; subprocess.run(['true'], check=True)", Isolation(alone=False)
    )
    assert code == 0
    assert "no new privileges" in active


def test_what_the_kernel_refuses_is_said() -> None:
    assert "own network namespace" in unprotected(["no new privileges", "read-only files outside its folder"])
