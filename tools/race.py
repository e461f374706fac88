"""What a race of candidates showed; see `racing`."""

from pydantic import BaseModel, ConfigDict

from stitch_tui.tools.verdict import Samples


class Race(BaseModel):
    """Who was timed, the fastest first, and why the others were not.  It says nothing of their results."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    times: dict[str, Samples] = {}
    """By name, the fastest first; one that fell far behind has fewer samples."""
    failed: dict[str, str] = {}
    """Those that do not build or do not run, with the reason."""
    left_out: dict[str, str] = {}
    """Those that may be as good as any, for which there was no time or no memory."""
    seconds: float = 0.0
    """What it took, builds and waiting for the GPU included."""

    @property
    def winner(self) -> str:
        """The fastest; empty where nobody was timed."""
        return next(iter(self.times), "")

    @property
    def sentence(self) -> str:
        """All of it, in a line."""
        told = [f"{self.winner} won in {self.seconds:.1f} s" if self.times else "nobody was timed"]
        for name, time in self.times.items():
            told.append(f"{name} {time.median_us:.1f} us ({time.low_us:.1f} to {time.high_us:.1f})")
        missing = [f"{name} ({reason})" for name, reason in (self.failed | self.left_out).items()]
        return ", ".join(told) + (f"; without {', '.join(missing)}" if missing else "")
