"""A candidate that runs alone, for a tool to watch: the judge's inputs on disk, its command."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools import scratch
from stitch_tui.tools.bench import Bench, Json
from stitch_tui.tools.judge_start import BOOT
from stitch_tui.tools.scrub import reference_environment

SPECIMEN_SECONDS = 300.0
UNSUPPORTED_EXIT = 42
"""The candidate does not support the extents that it was given."""


@dataclass(frozen=True)
class Solo:
    """One candidate's library and the folder that describes one call of it."""

    python: str
    specimen: Path
    library: Path
    environment: dict[str, str]
    """All variables that the process gets."""

    def command(self, *options: object) -> Sequence[str]:
        """The process to watch; `options` as ``worker/solo.py`` takes them."""
        return [self.python, str(BOOT), "solo", str(self.specimen), str(self.library), *map(str, options)]


@asynccontextmanager
async def solo(bench: Bench, target: Json, library: Path, *, full: bool) -> AsyncIterator[Solo]:
    """The candidate with inputs that the judge drew, on the GPU of `bench`, while the context lasts.

    Args:
        target: what it computes, as the judge's methods take it.
        full: at full size, else on a small shape.

    Raises:
        StitchError: the judge could not draw the inputs.
    """
    cuda = bench.cuda
    pinned = {"CUDA_VISIBLE_DEVICES": cuda.uuid} if cuda and cuda.uuid else {}
    with scratch.folder("stitch-specimen-") as folder:
        params = {"target": target, "folder": str(folder), "full": full}
        await bench.judge.call("specimen", params, timeout=SPECIMEN_SECONDS)
        yield Solo(bench.python, folder, library, reference_environment(pinned))
