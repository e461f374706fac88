"""One iteration of a session as data: what its commit's subject line and trailers say."""

import math
import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from stitch_tui.tools.iteration import Kind, Outcome
from stitch_tui.tools.verdict import Category, Flag

PROGRAM = "program"
"""The `subtask` of an iteration that is about the whole stitched program."""

TEXT_LIMIT = 1000
"""Characters kept of a free text in a trailer."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_INVISIBLE = re.compile(r"[\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def one_line(text: str) -> str:
    """`text` as one line: controls and runs of white space become a space, direction marks vanish.

    Foreign text (a model's title, a human's words) goes through here, so it cannot start a line of
    its own in a commit message and cannot forge a trailer.  Cut to `TEXT_LIMIT` characters.
    """
    return " ".join(_INVISIBLE.sub("", _CONTROL.sub(" ", text)).split())[:TEXT_LIMIT].rstrip()


def _six_digits(value: object) -> object:
    """Six significant digits; NaN is "not measured"."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    return None if math.isnan(value) else float(f"{value:.6g}")


Line = Annotated[str, AfterValidator(one_line)]
Number = Annotated[float, BeforeValidator(_six_digits)]
Measured = Annotated[float | None, BeforeValidator(_six_digits)]
SessionName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$", max_length=100)]


class Iteration(BaseModel):
    """What one commit of a session says of itself.

    Numbers keep six significant digits, so that a trailer and the field are the same value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=True)

    session: SessionName
    iteration: Annotated[int, Field(ge=0)]
    """Counts through the session."""
    subtask: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)] = PROGRAM
    """Its id in the plan, `PROGRAM` for the whole."""
    name: Line = ""
    """The subtask's title, ``gemm+gelu``."""
    attempt: Annotated[int, Field(ge=0)] = 1
    """Counts within the subtask."""
    kind: Kind
    outcome: Outcome
    title: Line = ""
    """What was tried, ``vectorised epilogue``."""
    verdict: Category | None = None
    """None: it ended before there was one."""
    flags: tuple[Flag, ...] = ()
    device: Line = ""
    """``emulator`` or ``cuda NVIDIA H200 sm_90``."""
    time_us: Measured = None
    time_interval_us: tuple[Number, Number] | None = None
    """95 % interval of the median."""
    speedup_eager: Measured = None
    speedup_best_baseline: Measured = None
    best_baseline: Line = ""
    """``compile-reduce-overhead``: the baseline that the speedup above is held against."""
    error: Measured = None
    error_limit: Measured = None
    coverage: Annotated[Annotated[float, Field(ge=0, le=1)] | None, BeforeValidator(_six_digits)] = None
    """Share of the reference's time that custom kernels cover, 0 to 1."""
    decision: Line = ""
    """``redirected by human``."""
    best: bool = False
    """Best of its session when it was committed."""
    reference_sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    restores: Annotated[int, Field(ge=0)] | None = None
    """Of a restore or seal: the iteration whose files it holds; None: the session's start."""

    @property
    def correct(self) -> bool:
        """Judged correct, and the timing is believed."""
        return self.verdict is Category.CORRECT and Flag.QUARANTINED not in self.flags

    @property
    def whole_program(self) -> bool:
        return self.subtask == PROGRAM

    @property
    def again(self) -> bool:
        """Holds files that an earlier commit holds too."""
        return self.kind in (Kind.RESTORE, Kind.SEAL)

    @property
    def subject(self) -> str:
        """First line of the commit: ``s03 gemm+gelu: iteration 7: vectorised epilogue, 1.42x (best)``."""
        head = " ".join(part for part in (self.subtask, self.name[:60]) if part)
        tail = ", ".join(part for part in (self.title[:120], self._measure()) if part)
        return f"{head}: iteration {self.iteration}: {tail}{' (best)' if self.best else ''}"

    def _measure(self) -> str:
        if not self.correct:
            return (
                (self.verdict or self.outcome).value
                if self.verdict is not Category.CORRECT
                else "not believed"
            )
        if Flag.FUNCTIONAL in self.flags:
            return "functional"
        return "correct" if self.speedup_eager is None else f"{self.speedup_eager:.2f}x"
