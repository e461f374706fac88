import asyncio
import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from processes import ended

from stitch_tui.tools.process import Finished, run

ROOT = Path(__file__).parents[2]


def python(program: str, timeout: float = 60, **more: object) -> Finished:
    argv = [sys.executable, "-c", textwrap.dedent(program)]
    return asyncio.run(run(argv, timeout=timeout, **more))  # type: ignore[arg-type]


def line_from(reader: int) -> str:
    """What a process writes to a pipe, once it does."""
    assert select.select([reader], [], [], 100)[0]
    return os.read(reader, 100).decode()


def test_output_and_status_of_an_ordinary_program() -> None:
    done = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 3)
    assert not done.ok
    assert not done.timed_out


def test_input_arrives_whole_and_ends() -> None:
    data = b"x" * 1_000_000
    assert python("import sys; print(len(sys.stdin.buffer.read()))", stdin=data).stdout == "1000000\n"


def test_a_program_that_does_not_read_its_input_still_ends() -> None:
    assert python("print('done')", stdin=b"x" * 1_000_000).stdout == "done\n"


def test_without_input_a_program_reads_an_end_at_once() -> None:
    assert python("import sys; print(repr(sys.stdin.read()))").stdout == "''\n"


def test_output_past_the_limit_is_dropped_and_said_so() -> None:
    done = python("import sys; sys.stdout.write('y' * 5_000_000); print('end', file=sys.stderr)",
                  output_limit=1000)  # fmt: skip
    assert done.stdout == "y" * 1000
    assert done.stderr == "end\n"
    assert done.truncated
    assert done.ok


def test_a_flood_without_end_is_stopped_by_the_timeout() -> None:
    done = asyncio.run(run(["yes"], timeout=0.2, output_limit=10))
    assert done.timed_out
    assert done.truncated
    assert done.stdout == "y\n" * 5


def test_the_environment_is_the_given_one_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "key")
    done = python("import os; print(sorted(os.environ))", env={"ONLY": "1", "LC_ALL": "C.UTF-8"})
    assert done.stdout == "['LC_ALL', 'ONLY']\n"


def test_a_timeout_kills_grandchildren_too() -> None:
    done = python(
        """
        import subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(child.pid, flush=True)
        time.sleep(600)
        """,
        timeout=1,
    )
    assert done.timed_out
    assert ended(int(done.stdout))


def test_what_was_printed_before_a_timeout_is_kept() -> None:
    done = python("import time; print('early', flush=True); time.sleep(600)", timeout=1)
    assert (done.stdout, done.timed_out) == ("early\n", True)


def test_a_daemon_that_keeps_the_output_open_holds_the_caller_only_until_the_timeout() -> None:
    done = python(
        """
        import subprocess
        print(subprocess.Popen(["sleep", "600"], start_new_session=True).pid, flush=True)
        """,
        timeout=1,
    )
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.timed_out


def test_a_program_that_ignores_polite_signals_is_killed() -> None:
    done = python(
        """
        import os, signal, time
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_IGN)
        print(os.getpid(), flush=True)
        time.sleep(600)
        """,
        timeout=1,
    )
    assert done.timed_out
    assert done.returncode == -signal.SIGKILL
    assert ended(int(done.stdout))


def test_a_child_left_in_the_background_does_not_outlive_the_run() -> None:
    done = python(
        """
        import subprocess, sys
        quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], **quiet).pid)
        """
    )
    assert done.ok
    assert ended(int(done.stdout))


@pytest.mark.parametrize("moment", ["while it starts", "while it runs"])
def test_cancelling_the_caller_kills_the_group(moment: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pids"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    program = textwrap.dedent("""
        import os, subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open(sys.argv[1], "w") as out:
            out.write(f"{os.getpid()} {child.pid}")
        time.sleep(600)
    """)

    async def scenario() -> list[int]:
        task = asyncio.create_task(run([sys.executable, "-c", program, str(pipe)], timeout=60))
        if moment == "while it starts":  # it was forked, and this loop blocks before it hears of that
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            text = line_from(reader)
        else:
            text = await asyncio.to_thread(line_from, reader)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [int(pid) for pid in text.split()]

    assert all(ended(pid) for pid in asyncio.run(scenario()))
    os.close(reader)


def test_a_program_that_is_not_there_raises() -> None:
    with pytest.raises(FileNotFoundError):
        asyncio.run(run(["/no/such/program"], timeout=5))


def test_bytes_that_are_no_text_become_replacement_characters() -> None:
    assert python(r"import sys; sys.stdout.buffer.write(b'a\xffb')").stdout == "a\ufffdb"


def test_a_killed_caller_takes_the_whole_group_along(tmp_path: Path) -> None:
    """A compiler's driver has a child of its own, and a kill of the caller reaches neither by itself."""
    pipe = tmp_path / "pids"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    driver = 'sleep 600 & echo $$ $! > "$0"; wait'
    program = (
        "import asyncio, sys; from stitch_tui.tools.process import run;"
        f"asyncio.run(run(['sh', '-c', {driver!r}, sys.argv[1]], timeout=600))"
    )
    caller = subprocess.Popen([sys.executable, "-c", program, str(pipe)], cwd=ROOT)
    pids = [int(pid) for pid in line_from(reader).split()]
    caller.kill()
    caller.wait()
    assert all(ended(pid) for pid in pids)
    os.close(reader)


def test_no_zombie_of_the_group_is_left() -> None:
    """Neither the watcher nor a grandchild that was killed with the group."""
    done = python(
        """
        import os, subprocess, sys
        quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.Popen(["sleep", "600"], **quiet)
        print(os.getpid())
        """
    )
    with pytest.raises(ProcessLookupError):  # a zombie would still be of its group
        os.killpg(int(done.stdout), 0)
