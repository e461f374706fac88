"""What differs between two iterations' files, as rows with a head for each file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from stitch_tui.tools.history.iteration import Iteration
from stitch_tui.view.alignment import Row, changed, diff
from stitch_tui.view.listing import Remark
from stitch_tui.view.wording import OUTCOME, duration_us, times

FIRST = (".cu", "plan.toml")
"""What a person looks at first; the rest of the bundle follows from it."""


@dataclass(frozen=True)
class Differences:
    """All files that differ, in one listing."""

    items: tuple[Row | Remark, ...]
    old: tuple[tuple[str, list[str]], ...]
    """Their paths and lines before."""
    new: tuple[tuple[str, list[str]], ...]
    files: tuple[tuple[str, int, int], ...]
    """Path, new lines, removed lines."""

    @property
    def sentence(self) -> str:
        """``kernels/s01.cu +3 -4, plan.toml +1 -1``."""
        return ", ".join(f"{path} +{new} -{gone}" for path, new, gone in self.files) or "no file differs"


def differences(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Differences:
    """The files that differ, sources first."""
    items: list[Row | Remark] = []
    old: list[tuple[str, list[str]]] = []
    new: list[tuple[str, list[str]]] = []
    files = []
    shift = 0, 0
    paths = [p for p in {**before, **after} if before.get(p) != after.get(p)]
    for path in sorted(paths, key=lambda p: (not p.endswith(FIRST), p)):
        left, right = _lines(before.get(path, b"")), _lines(after.get(path, b""))
        rows = diff(left, right)
        added, gone = changed(rows)
        files.append((path, added, gone))
        items.append(Remark("file", 0, f"{path}  +{added} -{gone}"))
        items += [replace(row, shift=shift) for row in rows]
        old.append((path, left))
        new.append((path, right))
        shift = shift[0] + len(left), shift[1] + len(right)
    return Differences(tuple(items), tuple(old), tuple(new), tuple(files))


def _lines(data: bytes) -> list[str]:
    text = data.decode("utf-8", "replace")
    return text.removesuffix("\n").split("\n") if text else []


def cells(entry: Iteration, *, best: bool, marked: bool) -> tuple[str, ...]:
    """One iteration as a row of the history."""
    speed = entry.speedup_best_baseline
    mark = f"{'★' if best else ''}{'◆' if marked else ''}"
    number = f"{entry.iteration} {mark}".rstrip()
    took = duration_us(entry.time_us) if entry.time_us is not None else ""
    return (
        number,
        entry.subtask,
        f"{OUTCOME[entry.outcome]} {entry.outcome}",
        times(speed) if speed is not None else "",
        took,
        entry.title or str(entry.kind),
    )


def about(entry: Iteration) -> list[str]:
    """The numbers of an iteration, a line each."""
    lines = [f"{entry.kind}, {entry.outcome}: {entry.verdict or 'not judged'}"]
    if entry.error is not None and entry.error_limit is not None:
        lines.append(f"error {entry.error:.1e} of {entry.error_limit:.1e}")
    if entry.time_us is not None:
        speeds = [
            f"{times(value)} over {name}"
            for name, value in (
                ("eager", entry.speedup_eager),
                (entry.best_baseline, entry.speedup_best_baseline),
            )
            if value is not None
        ]
        lines.append(", ".join([duration_us(entry.time_us), *speeds]))
    elif "functional" in entry.flags:
        lines.append("functional, not timed")
    if entry.decision:
        lines.append(f"decided: {entry.decision}")
    return lines
