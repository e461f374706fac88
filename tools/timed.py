"""Time a candidate on a GPU that no other stitch process uses; say who else does, and its clocks."""

import os
from pathlib import Path

from stitch_tui.tools.bench import Bench, Json, OnEvent
from stitch_tui.tools.gpu_state import GpuProcess, strangers
from stitch_tui.tools.killed import unless_killed
from stitch_tui.tools.timing import Clocks, clocks

_WORKER = f"{Path('worker', 'boot.py')}"


async def timed(
    bench: Bench, params: Json, *, timeout: float, on_event: OnEvent | None
) -> tuple[Json, Clocks]:
    """The report of the judge's method ``time``, made under an exclusive lease, and the clocks meanwhile.

    Strangers, processes on the GPU that no lease keeps out, are among what is ``unchecked``.

    Args:
        params: of the method.
        timeout: seconds.
    """
    assert bench.cuda

    def heard(event: str, data: Json) -> None:
        observed.heard(event, data)
        if on_event:
            on_event(event, data)

    def begin() -> None:
        observed.samples.clear()
        if on_event:
            on_event("stage", {"stage": "timing"})

    async with bench.gpu("timing", alone=True, on_event=on_event):
        before = _strangers(bench)
        with clocks(bench.cuda.uuid) as observed:
            begin()
            report = await unless_killed(
                lambda: bench.judge.call("time", params, timeout=timeout, on_event=heard), begin
            )
        seen = dict.fromkeys((*before, *_strangers(bench)))
    if bench.cuda.driver and "environment" in report:
        report["environment"] |= {"driver": bench.cuda.driver}
    report["unchecked"] = [*report["unchecked"], *(_sentence(process) for process in seen)]
    return report, observed


def _strangers(bench: Bench) -> tuple[GpuProcess, ...]:
    """Those whom this machine shows: in a container NVML may tell pids of the host, ours among them."""
    assert bench.cuda
    found = strangers(bench.cuda.uuid) if bench.cuda.uuid else ()
    return tuple(process for process in found if process.visible and not _leased(process.pid))


def _leased(pid: int) -> bool:
    """Is it a worker of this user's stitch, which waits while another holds the lease?"""
    folder = Path(f"/proc/{pid}")
    try:
        ours = folder.stat().st_uid == os.geteuid()
        return ours and _WORKER in (folder / "cmdline").read_bytes().decode(errors="replace")
    except OSError:  # it has ended: it computes no more
        return True


def _sentence(process: GpuProcess) -> str:
    return f"timing: pid {process.pid} ({process.name or 'a process'}) used the GPU meanwhile"
