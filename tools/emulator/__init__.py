"""Run a CUDA C++ candidate on the CPU, for functional verdicts: the same ``.cu``, no GPU, no nvcc needed.

Build, start the executable with one end of a socket pair as its last argument, speak the runner protocol of
``docs/architecture.md`` over the other end, and turn the raw findings into located ones::

    emulator = Emulator(cache)                                   # EnvironmentFault without a C++17 compiler
    build = await emulator.build(Path("gemm.cu"), Mode.CHECK, timeout=60)
    if not build.ok:
        return build.diagnostics                                 # each with the .cu file, line and column

    ours, theirs = socket.socketpair()
    runner = await asyncio.create_subprocess_exec(
        *emulator.runner_argv(build), str(theirs.fileno()),
        env=emulator.runner_env(order=2), pass_fds=[theirs.fileno()], start_new_session=True,
    )
    ...                                 # hello, arena file, call NONCE run, in/out lines, go: finding*, done
    findings = await emulator.locate(build, raw)                 # raw: the objects of the `finding` lines

`Mode.CHECK` instruments every access (bounds, races, initialisation, barriers) and is about ten times slower
than `Mode.FAST`, which still notices deadlocks, bad launches, crashes and writes just past a tensor.  Run
fast mode with a few values of `order` (0 up, 1 down, above that a shuffle): a race then changes the result.
"""

from stitch_tui.tools.emulator.emulator import Emulator
from stitch_tui.tools.emulator.toolchain import FrontEnd, Mode

__all__ = ["Emulator", "FrontEnd", "Mode"]
