"""What ``stitch verify --arch`` found, in rows, as Markdown, and by which criterion."""

from collections.abc import Sequence
from typing import Any

from stitch_tui.tools.portability import OnArch, Outcome
from stitch_tui.view.markdown import bullets, table

MEANINGS = {
    Outcome.COMPILES: "nvcc and ptxas accept it; whether it is right and fast there nobody saw",
    Outcome.FALLBACK: "it does not build there: that architecture needs another version, or PyTorch",
    Outcome.NOT_RUN: "the nvcc here cannot build for it",
}


def rows(found: Sequence[OnArch]) -> list[tuple[str, ...]]:
    """A head, then a row for each candidate and architecture; sizes only where something was built."""
    head = ("file", "arch", "outcome", "registers", "shared", "spilled", "")
    return [head, *(_row(one) for one in found)]


def _row(one: OnArch) -> tuple[str, ...]:
    sizes = (one.registers, one.shared_bytes, one.spill_bytes) if one.registers else ("", "", "")
    return one.file, one.arch, str(one.outcome), *map(str, sizes), one.reason


def criteria(found: Sequence[OnArch]) -> list[str]:
    """What each outcome that occurs means."""
    there = {one.outcome for one in found}
    return [f"{outcome}: {meaning}" for outcome, meaning in MEANINGS.items() if outcome in there]


def as_json(found: Sequence[OnArch], *, why: bool) -> list[dict[str, Any]]:
    """Each build's fields; with `why` what its outcome means."""
    return [one.model_dump(mode="json") | ({"why": MEANINGS[one.outcome]} if why else {}) for one in found]


def as_markdown(found: Sequence[OnArch], *, why: bool) -> str:
    """A table; with `why` what its outcomes mean."""
    parts = ["# Built for other architectures", "", *table(rows(found))]
    if why:
        parts += ["", "## Why", "", *bullets(criteria(found))]
    return "\n".join(parts)
