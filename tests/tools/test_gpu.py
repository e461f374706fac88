import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stitch_tui.tools.bench import Bench, Cuda
from stitch_tui.tools.errors import EnvironmentFault, ExitCode
from stitch_tui.tools.gpu import CudaDevice, EmulatorDevice, choose_device, devices, nvml_session, visible
from stitch_tui.tools.gpu_state import Sample, sample, strangers
from stitch_tui.tools.graph import DType
from stitch_tui.tools.lease import Lease
from stitch_tui.tools.roofline import bound_us, peaks_of
from stitch_tui.tools.timed import timed

ROOT = Path(__file__).parents[2]
HOLD = textwrap.dedent("""
    import asyncio, sys
    from pathlib import Path
    from stitch_tui.tools.lease import Lease
    async def main():
        lease = Lease("GPU-1", Path(sys.argv[1]))
        async with getattr(lease, sys.argv[2])("timing s03"):
            print("held", flush=True)
            sys.stdin.read()
    asyncio.run(main())
""")


def gpu(index: int = 0, name: str = "NVIDIA H200", **more: int) -> CudaDevice:
    return CudaDevice(index, f"GPU-{index}aaa", name, (9, 0), 1 << 37, "580.1", (13, 0), **more)


@dataclass(frozen=True)
class Choice:
    kind: str = "auto"
    index: int = 0
    arch: str = ""


def test_without_a_driver_there_are_no_devices_and_no_error() -> None:
    with nvml_session() as nvml:
        if nvml is not None:
            pytest.skip("this machine has a driver")
    assert devices() == ()
    assert sample("GPU-1") == Sample()
    assert strangers("GPU-1") == ()


def test_auto_takes_the_gpu_or_says_why_it_took_the_emulator() -> None:
    assert choose_device(Choice(), [gpu()]) == gpu()
    chosen = choose_device(Choice(), [])
    assert isinstance(chosen, EmulatorDevice)
    assert "no NVIDIA GPU" in chosen.reason
    asked = choose_device(Choice("emulator"), [gpu()])
    assert isinstance(asked, EmulatorDevice)
    assert "settings" in asked.reason


def test_cuda_without_a_gpu_ends_with_the_environment_exit_code() -> None:
    with pytest.raises(EnvironmentFault, match="no NVIDIA GPU is visible") as caught:
        choose_device(Choice("cuda"), [])
    assert caught.value.exit_code is ExitCode.ENVIRONMENT
    with pytest.raises(EnvironmentFault, match="1 visible GPUs, and number 3"):
        choose_device(Choice("auto", 3), [gpu()])


def test_a_device_is_called_as_in_a_verdict_and_builds_for_what_the_settings_name() -> None:
    assert str(gpu()) == "cuda NVIDIA H200 sm_90"
    assert choose_device(Choice(arch="sm_80"), [gpu()]).arch == "sm_80"
    assert choose_device(Choice("emulator", arch="sm_80")).arch == "sm_80"


@pytest.mark.parametrize(
    ("mask", "uuids"),
    [
        (None, ["GPU-0aaa", "GPU-1aaa", "GPU-2aaa"]),
        ("2,0", ["GPU-2aaa", "GPU-0aaa"]),
        ("GPU-1", ["GPU-1aaa"]),
        ("", []),
        ("-1", []),
        ("1,7,0", ["GPU-1aaa"]),
        ("GPU", []),
    ],
)
def test_cuda_visible_devices_is_read_as_the_driver_reads_it(mask: str | None, uuids: list[str]) -> None:
    left = visible([gpu(0), gpu(1), gpu(2)], mask)
    assert [device.uuid for device in left] == uuids
    assert [device.index for device in left] == list(range(len(left)))


async def _holder(folder: Path, kind: str) -> asyncio.subprocess.Process:
    """A process that holds the lease until its input ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, str(folder), kind, cwd=ROOT,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    assert await process.stdout.readline() == b"held\n"
    return process


def test_checks_share_the_gpu_and_a_timing_waits_for_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        other = await _holder(tmp_path, "shared")
        lease = Lease("GPU-1", tmp_path)
        async with lease.shared("checking", timeout=0):
            pass
        with pytest.raises(EnvironmentFault):
            async with lease.exclusive("timing", timeout=0):
                pass
        await other.communicate(b"")
        async with lease.exclusive("timing", timeout=0):
            pass

    asyncio.run(scenario())


def test_who_waits_for_a_timing_is_told_who_holds_the_gpu_and_a_dead_holder_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def _timed(lease: Lease) -> None:
        async with lease.exclusive("timing"):
            pass

    async def scenario() -> None:
        other = await _holder(tmp_path, "exclusive")
        told, heard = list[str](), asyncio.Event()

        def waits(holder: str) -> None:
            told.append(holder)
            heard.set()

        lease = Lease("GPU-1", tmp_path, waits=waits)
        with pytest.raises(EnvironmentFault, match=f"pid {other.pid}, timing s03"):
            async with lease.shared("checking", timeout=0.01):
                pass
        async with Lease("GPU-2", tmp_path).exclusive("another GPU", timeout=0):
            pass
        assert told == []
        monkeypatch.setattr("stitch_tui.tools.lease.TOLD_S", 0.01)
        waiting = asyncio.create_task(_timed(lease))
        await heard.wait()
        assert told[0].startswith(f"pid {other.pid}, timing s03")
        os.kill(other.pid, signal.SIGKILL)
        await other.wait()
        await waiting
        assert len(told) == 1

    asyncio.run(scenario())


def test_a_timing_that_waits_comes_before_checks_that_arrive_later(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        lease, order = Lease("GPU-1", tmp_path), list[str]()

        async def use(kind: str) -> None:
            async with getattr(lease, kind)(kind):
                order.append(kind)

        async with lease.shared("first"):
            timing = asyncio.create_task(use("exclusive"))
            await asyncio.sleep(0)
            check = asyncio.create_task(use("shared"))
            await asyncio.sleep(0)
        await asyncio.gather(timing, check)
        return order

    assert asyncio.run(scenario()) == ["exclusive", "shared"]


INTERVALS = textwrap.dedent("""
    import asyncio, random, sys, time
    from pathlib import Path
    from stitch_tui.tools.lease import Lease
    async def main():
        chance, lease = random.Random(int(sys.argv[2])), Lease("GPU-1", Path(sys.argv[1]))
        for turn in range(12):
            kind = chance.choice(("shared", "exclusive"))
            async with getattr(lease, kind)(kind):
                began = time.monotonic_ns()
                await asyncio.sleep(chance.uniform(0, 0.01))
                print(kind, began, time.monotonic_ns(), flush=True)
    asyncio.run(main())
""")


def test_two_processes_never_time_beside_anything_of_the_other(tmp_path: Path) -> None:
    engines = [
        subprocess.Popen(
            [sys.executable, "-c", INTERVALS, str(tmp_path), str(seed)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in (1, 2)
    ]
    held = []
    for engine in engines:
        rows = [line.split() for line in engine.communicate(timeout=200)[0].splitlines()]
        held.append([(kind, int(began), int(ended)) for kind, began, ended in rows])
    assert [len(rows) for rows in held] == [12, 12]
    for kind, began, ended in held[0]:
        for other, start, end in held[1]:
            if "exclusive" in (kind, other):
                assert ended <= start or end <= began, f"{kind} beside {other}"


class Library:
    """The part of NVML's C library that is asked for the processes on one GPU; `pids` compute there."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: object, count: Any, found: Any) -> int:
        room, count._obj.value = count._obj.value, len(self._pids)
        if room < len(self._pids):
            return pynvml.NVML_ERROR_INSUFFICIENT_SIZE
        for entry, pid in zip(found, self._pids, strict=False):
            entry.pid, entry.usedGpuMemory = pid, 1 << 20
        return pynvml.NVML_SUCCESS

    def nvmlSystemGetProcessName(self, pid: object, name: Any, size: object) -> int:
        name.value = b"/usr/bin/trainer"
        return pynvml.NVML_SUCCESS

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *_: pynvml.NVML_SUCCESS


@pytest.fixture
def on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[int]], None]:
    """Put a library in the place of the driver's, under the real Python bindings."""

    def compute(pids: list[int]) -> None:
        library = Library(pids)
        monkeypatch.setattr(pynvml, "_LoadNvmlLibrary", lambda: None)
        monkeypatch.setattr(pynvml, "nvmlLib", library)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})

    return compute


def test_a_stranger_on_the_gpu_is_told_from_ourselves(on_the_gpu: Callable[[list[int]], None]) -> None:
    on_the_gpu([os.getpid(), os.getppid(), 1 << 30])
    stranger, unseen = strangers("GPU-1", ours=[os.getpid()])
    assert (stranger.pid, stranger.name, stranger.visible) == (os.getppid(), "/usr/bin/trainer", True)
    assert (unseen.pid, unseen.visible) == (1 << 30, False)


def test_a_timing_says_who_computed_beside_it_but_not_of_a_worker_that_waits_for_its_lease(
    on_the_gpu: Callable[[list[int]], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of stitch's, another process, and one that only the host can see."""
    monkeypatch.setattr("stitch_tui.tools.paths.SHARED", tmp_path)

    class Judge:
        async def call(self, method: str, *_: object, **__: object) -> Any:
            return {"findings": [], "unchecked": ["something else"]}

    worker = [sys.executable, "-c", "input()", "tools/worker/boot.py", "judge"]
    processes = [subprocess.Popen(argv, stdin=subprocess.PIPE) for argv in (worker, ["cat"])]
    on_the_gpu([*(process.pid for process in processes), 1 << 30])
    cuda = Cuda("NVIDIA H200", "sm_90", toolkit=None, cache=tmp_path, uuid="GPU-1")  # type: ignore[arg-type]
    bench = Bench(Judge(), None, cuda=cuda)
    report, _ = asyncio.run(timed(bench, {}, timeout=10, on_event=None))
    for process in processes:
        process.communicate(b"")
    said = f"timing: pid {processes[1].pid} (/usr/bin/trainer) used the GPU meanwhile"
    assert report["unchecked"] == ["something else", said]


def test_the_bound_is_the_slower_of_memory_and_arithmetic() -> None:
    peaks = peaks_of(gpu())
    assert peaks
    assert bound_us(0, 4.3e12, DType.F32, peaks) == pytest.approx(1e6)
    assert bound_us(67e12, 0, DType.F32, peaks, tensor_cores=False) == pytest.approx(1e6)
    assert bound_us(989e12, 4.3e12, DType.BF16, peaks) == pytest.approx(1e6)


@given(st.floats(0, 1e18), st.floats(0, 1e15), st.sampled_from(DType))
def test_tensor_cores_never_raise_the_bound(flops: float, moved: float, dtype: DType) -> None:
    peaks = peaks_of(gpu())
    assert peaks
    without = bound_us(flops, moved, dtype, peaks, tensor_cores=False)
    assert bound_us(flops, moved, dtype, peaks) <= without


@pytest.mark.parametrize(
    ("name", "bandwidth"),
    [
        ("NVIDIA H100 80GB HBM3", 3.35e12),
        ("NVIDIA H100 PCIe", 2.0e12),
        ("NVIDIA A100-SXM4-80GB", 2.039e12),
        ("NVIDIA A100-SXM4-40GB", 1.555e12),
        ("NVIDIA A100 80GB PCIe", 1.935e12),
        ("Tesla V100-SXM2-16GB", 0.9e12),
        ("NVIDIA GeForce RTX 4090", 1.008e12),
        ("NVIDIA L40S", 0.864e12),
        ("NVIDIA A10", 0.6e12),
    ],
)
def test_a_device_is_known_by_its_own_name_and_not_by_a_part_of_another(name: str, bandwidth: float) -> None:
    peaks = peaks_of(gpu(name=name))
    assert peaks
    assert peaks.bandwidth == pytest.approx(bandwidth)


def test_an_unknown_device_is_estimated_or_has_no_bound() -> None:
    assert peaks_of(gpu(name="NVIDIA Something")) is None
    known = gpu(name="NVIDIA A1000", memory_clock_mhz=1000, bus_bits=256, sm_clock_mhz=1500, cores=2048)
    peaks = peaks_of(known)
    assert peaks
    assert peaks.bandwidth == 64e9
    assert "estimated" in peaks.source


@pytest.mark.gpu
def test_the_gpu_of_this_machine_tells_its_name_clocks_and_state() -> None:
    first = devices()[0]
    assert first.uuid.startswith("GPU-")
    assert first.capability >= (7, 0)
    assert first.memory_bytes > 1 << 30
    assert first.cores > 0
    state = sample(first.uuid)
    assert state.sm_clock_mhz
    assert state.temperature_c
    assert isinstance(strangers(first.uuid), tuple)


def test_leases_do_not_depend_on_the_environment_and_what_is_in_the_way_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stitch_tui.tools.paths.SHARED", tmp_path)

    async def scenario() -> None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "one"))
        async with Lease("GPU-1").exclusive("timing"):
            monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "another"))
            with pytest.raises(EnvironmentFault, match="held by another"):
                async with Lease("GPU-1").shared("checking", timeout=0):
                    pass
        (tmp_path / "gpu" / "GPU-2.lock").mkdir(parents=True)
        with pytest.raises(EnvironmentFault, match=r"lease cannot be taken.*directory"):
            async with Lease("GPU-2", tmp_path / "gpu").shared("checking"):
                pass

    asyncio.run(scenario())
