"""Where a candidate's runners keep the kernels that they build: the first one builds, the next ones load.

One folder belongs to one candidate and one verdict; the engine names it and removes it.  Beside it, where no
candidate may write, lies a mark for as long as a runner is in the midst of something.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class KernelCache:
    """One candidate's, given to one runner at a time."""

    folder: Path
    """Writable for the candidate; its parent is not."""

    @property
    def _mark(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.busy")

    def enter(self) -> None:
        """Hand it to a runner that starts.

        It is emptied where the last one was ended in the midst of something: that left half a build, or a
        lock that nobody gives back.
        """
        if self._mark.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._mark.touch()

    def leave(self) -> None:
        """Its runner has answered whatever it was asked: what it has built is whole."""
        self._mark.unlink(missing_ok=True)
