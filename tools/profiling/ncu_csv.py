"""What ``ncu --page raw --csv`` prints, read by unit and summed up by kernel."""

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stitch_tui.tools.profiling.metrics import ADDED, FIELDS, WHOLE, Question
from stitch_tui.tools.profiling.profile import KernelProfile

KERNEL = "Kernel Name"
_TIMES = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
"""Microseconds; also as ``nsecond``, which ncu printed before 2024."""
_SCALES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_MOST_PERCENT = 105.0
"""ncu divides counters of different passes, so that a little over 100 % is noise; more is nonsense."""


_NUMBER = re.compile(r"[-+]?(\d{1,3}(,\d{3})+|\d+)(\.\d*)?([eE][-+]?\d+)?")
"""As C's locale writes it, with or without separators of thousands."""
_NUMERAL = re.compile(r"[-+]?\d[\d.,'\s]*")


class Unreadable(Exception):
    """The text holds no table of ncu's; the message says what it holds."""


@dataclass(frozen=True)
class Launch:
    """One launch: metrics by ncu's names, times in microseconds, everything else without prefix."""

    kernel: str
    values: Mapping[str, float]


def launches(text: str) -> list[Launch]:
    """Each launch in a raw page; lines before the table and a cut-off row at its end are passed over.

    Raises:
        Unreadable: there is no table, no whole row in it, or its numbers are those of another locale.
    """
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith('"ID"') and KERNEL in line), None)
    if start is None:
        last = next((line for line in reversed(lines) if line.strip()), "nothing")
        raise Unreadable(f"ncu printed no table: {last.strip()[:200]}")
    try:
        header, *rows = list(csv.reader(lines[start:]))
    except csv.Error as error:
        raise Unreadable(f"ncu's table cannot be read: {error}") from error
    whole = [row for row in rows if len(row) == len(header)]
    if len(whole) < 2:
        raise Unreadable("ncu's table has no launch in it")
    units, *measured = whole
    return [_launch(header, units, row) for row in measured]


def _launch(header: Sequence[str], units: Sequence[str], row: Sequence[str]) -> Launch:
    cells = dict(zip(header, row, strict=True))
    numbers = {
        name: value
        for name, unit, cell in zip(header, units, row, strict=True)
        if "__" in name and (value := _number(cell, unit)) is not None
    }
    return Launch(base_name(cells[KERNEL]), numbers)


def base_name(kernel: str) -> str:
    """A kernel without its arguments: ``void f<(int)4>(float*)`` is ``f<(int)4>``.

    Parentheses inside of angle brackets belong to a template's arguments.
    """
    depth = 0
    for at, letter in enumerate(kernel):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth <= 0 and not kernel.startswith("(anonymous namespace)", at):
            kernel = kernel[:at]
            break
    return kernel.removeprefix("void ").strip()


def _number(cell: str, unit: str) -> float | None:
    """The value in the unit that a profile uses; None for what is not a number, ``nan`` too.

    Raises:
        Unreadable: it is a number as other locales write it: ``38,20`` must not be taken for 3820.
    """
    if not _NUMBER.fullmatch(cell):
        if _NUMERAL.fullmatch(cell):
            raise Unreadable(f"ncu writes numbers in another locale's way: {cell[:40]}")
        return None
    value = float(cell.replace(",", "")) * _scale(unit)
    return value if math.isfinite(value) else None


def _scale(unit: str) -> float:
    if (short := unit.removesuffix("econd")) in _TIMES:
        return _TIMES[short]
    return _SCALES[unit[0]] if re.match(r"[KMGT][a-z]", unit) else 1.0


def profiles(found: Iterable[Launch]) -> tuple[tuple[KernelProfile, ...], tuple[str, ...]]:
    """Launches summed up by kernel, longest first; and a note on each value that cannot be right."""
    grouped: dict[str, list[Launch]] = {}
    for launch in found:
        grouped.setdefault(launch.kernel, []).append(launch)
    notes: list[str] = []
    kernels = [_kernel(name, group, notes) for name, group in grouped.items()]
    return tuple(sorted(kernels, key=lambda k: -k.time_us)), tuple(dict.fromkeys(notes))


def _kernel(name: str, group: Sequence[Launch], notes: list[str]) -> KernelProfile:
    clock = FIELDS[Question.LIMITS]["time_us"]
    weights = [launch.values.get(clock, 0.0) for launch in group]
    longest = max(group, key=lambda launch: launch.values.get(clock, 0.0))
    fields: dict[str, Any] = {"kernel": name, "launches": len(group), "time_us": 0.0, "stalls": {}}
    for question in FIELDS.values():
        for field, metric in question.items():
            if field in WHOLE:
                value = longest.values.get(metric)
            else:
                value = _joined(metric, group, weights, added=field in ADDED)
            if value is None:
                continue
            if field.endswith("_percent") and not -0.1 <= value <= _MOST_PERCENT:
                notes.append(f"{name}: {metric} is {value:g} %, which is not believed")
                continue
            if field.startswith("stalls."):
                fields["stalls"][field.removeprefix("stalls.")] = value
            else:
                fields[field] = int(value) if field in WHOLE else value
    return KernelProfile(**fields)


def _joined(metric: str, group: Sequence[Launch], weights: Sequence[float], *, added: bool) -> float | None:
    """A metric over all launches that have it: their sum, or their mean weighted by time."""
    known = [
        (launch.values[metric], w)
        for launch, w in zip(group, weights, strict=True)
        if metric in launch.values
    ]
    if not known:
        return None
    if added:
        return sum(value for value, _ in known)
    total = sum(weight for _, weight in known)
    if not total:
        return sum(value for value, _ in known) / len(known)
    return sum(value * weight for value, weight in known) / total
