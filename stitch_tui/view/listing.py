"""The lines of the Coder pane: code or diff rows with what compilers and the Verifier say at their lines."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stitch_tui.plain_text import count, printable
from stitch_tui.tools.verdict import Build, Finding, KernelFacts, Verdict
from stitch_tui.view.alignment import Row
from stitch_tui.view.wording import bytes_text

CONTEXT = 3
"""Unchanged lines that stay on both sides of a change when the rest is folded."""


@dataclass(frozen=True, slots=True)
class Remark:
    """What is said of a line, shown below it (a fault) or above it (facts of a kernel)."""

    kind: str
    """``error``, ``warning`` or ``fact``."""
    line: int
    """From 1, in the new version; 0: of no line."""
    text: str


@dataclass(frozen=True, slots=True)
class Fold:
    """Unchanged lines that are not shown."""

    lines: int


Item = Row | Remark | Fold


def remarks(verdict: Verdict | None, build: Build | None, kernels: dict[str, int]) -> list[Remark]:
    """Everything that is known of lines of a candidate.

    Args:
        kernels: name -> line of its definition.
    """
    findings = list(verdict.findings) if verdict else []
    diagnostics = list(build.diagnostics) if build else []
    known = {(f.line, f.message) for f in findings}
    findings += [f for f in diagnostics if (f.line, f.message) not in known]
    facts = [_fact(fact, kernels) for fact in (build.kernels if build else ())]
    return [_remark(finding) for finding in findings] + facts


def _remark(finding: Finding) -> Remark:
    severity = str(finding.detail.get("severity", "error"))
    kind = severity if severity in ("error", "warning") else "error"
    where = f"{finding.where}: " if finding.where else ""
    return Remark(kind, finding.line, f"{where}{printable(finding.message)}")


def _fact(fact: KernelFacts, kernels: dict[str, int]) -> Remark:
    spills = f"{bytes_text(fact.spill_bytes)} spilled" if fact.spill_bytes else "no spills"
    parts = [f"{fact.registers} registers", spills]
    parts += [f"{bytes_text(fact.shared_bytes)} shared"] if fact.shared_bytes else []
    parts += [f"{bytes_text(fact.stack_bytes)} stack"] if fact.stack_bytes else []
    line = kernels.get(plain_name(fact.kernel), 0)
    name = "" if line else f"{plain_name(fact.kernel)}: "
    return Remark("warning" if fact.spill_bytes else "fact", line, f"ptxas: {name}{', '.join(parts)}")


def plain_name(kernel: str) -> str:
    """``scale`` of ``void (anonymous namespace)::scale<float>(float*)``."""
    head = kernel.replace("(anonymous namespace)::", "").partition("(")[0].partition("<")[0]
    return head.split("::")[-1].split()[-1] if head.split() else kernel


def with_remarks(rows: Iterable[Row], said: Sequence[Remark]) -> Iterator[Row | Remark]:
    """Rows and remarks in the order of lines; remarks of no line, or of none that is there, come first."""
    rows = list(rows)
    shown = {row.new for row in rows if row.new}
    above: dict[int, list[Remark]] = {}
    below: dict[int, list[Remark]] = {}
    for remark in said:
        if remark.line not in shown:
            yield remark
        else:
            facts = remark.text.startswith("ptxas:")
            (above if facts else below).setdefault(remark.line, []).append(remark)
    for row in rows:
        yield from above.get(row.new, ()) if row.new else ()
        yield row
        yield from below.get(row.new, ()) if row.new else ()


def folded(items: Sequence[Row | Remark], context: int = CONTEXT) -> list[Item]:
    """The items near changes and remarks; longer runs of unchanged lines become a `Fold`."""
    interesting = [n for n, item in enumerate(items) if isinstance(item, Remark) or item.sign != " "]
    near = {m for n in interesting for m in range(n - context, n + context + 1)}
    result: list[Item] = []
    hidden = 0
    for n, item in enumerate(items):
        if n in near:
            if hidden:
                result.append(Fold(hidden))
                hidden = 0
            result.append(item)
        else:
            hidden += 1
    if hidden:
        result.append(Fold(hidden))
    return result


def is_marked(item: Item) -> bool:
    """Is it a change or a fault: what a person goes to next?"""
    return (isinstance(item, Row) and item.sign != " ") or (isinstance(item, Remark) and item.kind == "error")


def fold_text(fold: Fold) -> str:
    return f"{count(fold.lines, 'unchanged line')}"
