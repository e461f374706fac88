"""The Verifier's verdict as data: what was decided, on what evidence."""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from stitch_tui.tools.profiling.profile import Profile


class Category(StrEnum):
    """Exactly one for each verdict."""

    BUILD_ERROR = "build_error"
    LINK_ERROR = "link_error"
    NO_KERNEL_IMAGE = "no_kernel_image"
    LAUNCH_ERROR = "launch_error"
    ILLEGAL_ACCESS = "illegal_access"
    OUT_OF_BOUNDS = "out_of_bounds"
    MISALIGNED = "misaligned"
    RACE = "race"
    BARRIER = "barrier"
    UNINITIALISED = "uninitialised"
    HANG = "hang"
    HOST_TIMEOUT = "host_timeout"
    OUT_OF_MEMORY_GPU = "out_of_memory_gpu"
    OUT_OF_MEMORY_HOST = "out_of_memory_host"
    UNSUPPORTED = "unsupported"
    SHAPE = "shape"
    DTYPE = "dtype"
    NONFINITE = "nonfinite"
    NUMERICS = "numerics"
    HACK_SUSPECTED = "hack_suspected"
    ENVIRONMENT = "environment"
    CORRECT = "correct"


class Flag(StrEnum):
    """Stand beside the category."""

    FUNCTIONAL = "functional"
    """Judged on the emulator: correct, not timed."""
    QUARANTINED = "quarantined"
    """Faster than the speed of light: not believed."""
    UNTRUSTED = "untrusted"
    """`stitch selftest` has not passed on this machine."""
    PARTIAL = "partial"
    """Named checks could not run."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Finding(_Data):
    """One located fault: from the compiler, the emulator, a sanitizer, or a comparison."""

    category: Category
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    where: str = ""
    """Kernel, block and thread, or trial and output."""
    other_line: int = 0
    """The other access of a race."""
    detail: dict[str, Any] = {}
    """For a comparison: first wrong index, expected, got, pattern, share of wrong elements."""


class Trial(_Data):
    """One comparison of a candidate with the reference, all outputs."""

    name: str
    """``normal/small_1``: distribution and shape variant."""
    seed: int
    passed: bool
    error: float
    """Largest over outputs of ``max(|y - y64| / max(rms(y64), |y64|))``."""
    limit: float
    """What that output's error was held against."""
    reference_error: float
    kernelbench: bool
    """Would KernelBench's own rule (allclose, 1e-4 or 1e-2) have passed?"""
    note: str = ""


class Samples(_Data):
    """Repeated timings of one program."""

    median_us: float
    low_us: float
    high_us: float
    """Bounds of the 95 % bootstrap interval of the median, widened by what processes differ by."""
    count: int
    event_us: float | None = None
    """CUDA-event median from inside the runner: advisory."""


class Ratio(_Data):
    """A speedup with its 95 % bootstrap interval, widened by what processes differ by; above 1 is faster."""

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        if self.low > 1:
            return "faster"
        return "slower" if self.high < 1 else "not distinguishable"


class Beside(_Data):
    """What else was timed in the same blocks, and the candidate's speedup over it."""

    samples: Samples
    speedup: Ratio


class Timing(_Data):
    """Candidate and baselines from one interleaved run (GPU only)."""

    candidate: Samples
    baselines: dict[str, Samples]
    """``eager``, ``compile``, ``compile-reduce-overhead``."""
    speedups: dict[str, Ratio]
    lower_precision: dict[str, Beside] = {}
    """``eager-high``, ``compile-high``: float32 products in TF32, ``matmul_precision`` *high*.  A candidate
    that computed so would not be correct: they are shown, and no speedup is claimed over them."""
    replaced: Beside | None = None
    """The program that this one shall replace, timed in the same blocks."""
    bind_us: float | None = None
    """Time of `stitch_bind`, amortised over calls and reported apart."""
    environment: dict[str, Any] = {}
    """Flags, clocks, throttle reasons, cold or warm L2."""
    notes: tuple[str, ...] = ()

    @property
    def best_baseline(self) -> str:
        return min(self.baselines, key=lambda name: self.baselines[name].median_us)


class KernelFacts(_Data):
    """What ptxas says of one kernel."""

    kernel: str
    registers: int = 0
    spill_bytes: int = 0
    shared_bytes: int = 0
    stack_bytes: int = 0


class Build(_Data):
    """One build of a candidate; also the body of the event ``build.finished``."""

    ok: bool
    artifact: str = ""
    """Path of the shared library or emulator executable."""
    device: str
    """``cuda`` or ``emulator``."""
    command: tuple[str, ...] = ()
    arch: str = ""
    source_sha256: str = ""
    artifact_sha256: str = ""
    key: str = ""
    """Cache key: hash of sources, flags, arch and compiler version."""
    compiler: str = ""
    seconds: float = 0.0
    cached: bool = False
    diagnostics: tuple[Finding, ...] = ()
    kernels: tuple[KernelFacts, ...] = ()
    log: str = ""


class Verdict(_Data):
    """What the Verifier says of one candidate."""

    category: Category
    flags: tuple[Flag, ...] = ()
    device: str
    """``emulator`` or ``cuda NVIDIA H200 sm_90``."""
    summary: str
    """One sentence for a person."""
    findings: tuple[Finding, ...] = ()
    trials: tuple[Trial, ...] = ()
    error: float | None = None
    """Of the trial nearest to its limit."""
    error_limit: float | None = None
    timing: Timing | None = None
    build: Build | None = None
    profile: Profile | None = None
    """Where its time goes; None: nobody looked."""
    unchecked: tuple[str, ...] = ()
    """Checks that could not run, by name and reason."""
    protections: tuple[str, ...] = ()
    """Isolation that was active for the runner."""
    numbers: dict[str, Any] = {}
    """Constants of the tolerance rule, versions, flags: what makes the verdict repeatable."""
    seconds: float = 0.0

    @property
    def correct(self) -> bool:
        return self.category is Category.CORRECT
