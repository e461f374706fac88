"""What ``nsys stats --format csv`` prints of a report, as spans: every launch and copy, every CUDA call."""

import csv
import math
import re
from collections.abc import Mapping
from typing import Any

from stitch_tui.tools.profiling.ncu_csv import Unreadable, base_name
from stitch_tui.tools.profiling.spans import Span, Spans

DEVICE, CALLS = "cuda_gpu_trace", "cuda_api_trace"
"""nsys's names of the tables that are read.  (Nsight Systems, "Post-Collection Analysis Guide")"""
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9}
_KINDS = {"Host": "H", "Device": "D"}

Row = Mapping[str, str]


def read_stats(device: str, calls: str) -> Spans:
    """Kernels, copies and CUDA calls; NVTX ranges are not in these tables.

    Args:
        device: the table `DEVICE`, with whatever was printed around it.
        calls: the table `CALLS`; without it no calls are known.

    Raises:
        Unreadable: there is no table of what the device did, or it holds no numbers.
    """
    try:
        if not (rows := _table(device)):
            raise Unreadable("nsys printed no table of what the device did")
        return Spans(
            kernels=[_kernel(row) for row in rows if not row["Name"].startswith("[CUDA mem")],
            copies=[_copy(row) for row in rows if row["Name"].startswith("[CUDA mem")],
            calls=[_span(row, re.sub(r"_v\d+$", "", row["Name"])) for row in _table(calls)],
        )
    except (csv.Error, ArithmeticError, LookupError, ValueError) as error:
        raise Unreadable(f"nsys's tables cannot be read: {type(error).__name__}: {error}") from error


def _table(text: str) -> list[Row]:
    """The whole rows below the line of titles; none where there is no such line."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if re.match(r'"?Start\b.*\bName\b', line)), None)
    if start is None:
        return []
    titles, *rows = csv.reader(lines[start:])
    return [dict(zip(titles, row, strict=True)) for row in rows if len(row) == len(titles)]


def _span(row: Row, name: str, **more: Any) -> Span:
    start, length = (_measured(row, title, _NANOSECONDS) for title in ("Start", "Duration"))
    return Span(name, start, start + length, **more)


def _kernel(row: Row) -> Span:
    blocks, threads = (math.prod(int(row[f"{what}{axis}"]) for axis in "XYZ") for what in ("Grd", "Blk"))
    return _span(row, base_name(row["Name"]), blocks=blocks, threads=threads)


def _copy(row: Row) -> Span:
    """``[CUDA memcpy Host-to-Device]``, ``[CUDA memcpy HtoD]`` before 2023, ``[CUDA memset]``."""
    what = row["Name"].strip("[]").split()[-1]
    ends = [_KINDS.get(end, end) for end in what.split("-to-")]
    kind = "fill" if what == "memset" else "to".join(ends)
    return _span(row, kind, nbytes=int(_measured(row, "Bytes", _BYTES)))


def _measured(row: Row, title: str, scales: Mapping[str, float]) -> float:
    """The cell under a title such as ``Start (ns)``, in the first of the units."""
    head = next((head for head in row if head.partition(" ")[0] == title), None)
    if head is None:
        raise ValueError(f"no column {title}")
    return float(row[head] or 0) * scales[head.partition("(")[2].rstrip(")")]
