"""What prompts tell of a program, a device and an attempt, as plain text with units."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from stitch_tui.agents.builtin.cost import node_us
from stitch_tui.agents.chat.tokens import cut_to, estimated
from stitch_tui.agents.state import Advice, Iteration, Subtask
from stitch_tui.tools.gpu import CudaDevice, Device
from stitch_tui.tools.graph import Graph, Node, ValueKind
from stitch_tui.tools.profiling.profile import Trace
from stitch_tui.tools.profiling.summary import lines, system_line
from stitch_tui.tools.roofline import Peaks
from stitch_tui.tools.verdict import Finding, Timing, Verdict

HOT = 0.1
"""Share of the reference's time from which on a node has to be spoken of."""
SHOWN_FINDINGS = 12
SHOWN_KERNELS = 12
_WORDS = {"memory_format", "layout", "device", "pin_memory"}


def hardware(device: Device, peaks: Peaks | None = None) -> str:
    """The device, from what its driver says; the emulator stands for the target that it emulates.

    Args:
        peaks: what the device reaches; None: not known.
    """
    if not isinstance(device, CudaDevice):
        return (
            f"CPU emulator of {device.arch}: candidates are checked for correctness, nothing is timed. "
            "Write the kernel for a GPU all the same; warps have 32 threads, 48 KiB of static shared memory."
        )
    lines = [f"{device.name}, target {device.arch}, {device.memory_bytes / 2**30:.0f} GiB of memory"]
    if peaks:
        lines.append(f"memory bandwidth {peaks.bandwidth / 1e9:,.0f} GB/s ({peaks.source})")
        lines.append(f"peak {peaks.f32 / 1e12:.0f} TFLOP/s f32, {peaks.f16 / 1e12:.0f} TFLOP/s f16 and bf16")
    if device.cores:
        lines.append(f"{device.cores} CUDA cores at up to {device.sm_clock_mhz} MHz")
    major = device.capability[0]
    lines.append(f"tensor cores: {'yes' if major >= 7 else 'no'}; asynchronous copies: {_yes(major >= 8)}")
    if device.arch.endswith("a"):
        lines.append(f"{device.arch} also has the architecture's own instructions (wgmma, TMA)")
    return "\n".join(lines)


def system_text(trace: Trace) -> str:
    """Where the time of whole passes goes, from a profiler's trace; empty where there is none."""
    if trace.system is None:
        return ""
    kernels = [
        f"{k.time_us:.1f} us in {k.launches} launches of {k.kernel[:120]}"
        for k in trace.system.kernels[:SHOWN_KERNELS]
    ]
    return "\n".join([system_line(trace.system, trace.evidence), *kernels])


def shares(graph: Graph) -> dict[str, float]:
    """Share of each node in the reference's time, 0..1, measured or estimated."""
    times = {node.id: node_us(graph, node) for node in graph.nodes}
    total = sum(times.values()) or 1.0
    return {name: time / total for name, time in times.items()}


def hot_nodes(graph: Graph) -> list[str]:
    """Nodes that take at least `HOT` of the time, hottest first."""
    found = shares(graph)
    return sorted((name for name, share in found.items() if share >= HOT), key=lambda name: -found[name])


def node_table(graph: Graph, tokens: int) -> str:
    """Every node of a program: call, shapes, time in us, share, roofline bound; in less detail to fit."""
    share = shares(graph)
    sources = [f"{s.id} = {s.kind} {s.target}: {s.spec}" for s in graph.sources]
    ends = [f"program outputs: {', '.join(graph.outputs)}"]
    ends += [f"new value of buffer {buffer}: {node}" for buffer, node in graph.mutations.items()]
    text = ""
    for detail in (3, 2, 1, 0):
        rows = [_row(graph, node, share[node.id], detail) for node in graph.nodes]
        shown = sources if detail > 1 else [f"{len(sources)} inputs, parameters and buffers"]
        text = "\n".join([*shown, *rows, *ends])
        if estimated(text) <= tokens:
            break
    return text


def semantics(graph: Graph, subtask: Subtask) -> str:
    """What a subtask computes: its nodes in order, with everything that decides the result."""
    return "\n".join(_row(graph, graph.node[name], None, 3) for name in subtask.region.nodes)


def border(graph: Graph, subtask: Subtask) -> str:
    """The subtask's arguments as the ABI passes them."""
    region = subtask.region
    lines = [
        f"in[{at}] = {value}: {graph.spec(value)}, {_kind(graph, value)}"
        for at, value in enumerate(region.inputs)
    ]
    mutated = {new: buffer for buffer, new in graph.mutations.items()}
    for at, value in enumerate(region.outputs):
        also = f", new value of buffer {mutated[value]}" if value in mutated else ""
        lines.append(f"out[{at}] = {value}: {graph.spec(value)}{also}")
    lines += [f"ints[{at}] = {value}" for at, value in enumerate(region.ints)]
    lines += [f"floats[{at}] = {value!r}" for at, value in enumerate(region.floats)]
    return "\n".join(lines)


def facts(verdict: Verdict, bound_us: float | None = None) -> list[str]:
    """What a verdict measured and found, one fact a line, the most telling first."""
    found = [f"{verdict.category}: {verdict.summary}"]
    found += [_finding(finding) for finding in verdict.findings[:SHOWN_FINDINGS]]
    if verdict.build is not None:
        ordered = sorted(verdict.build.diagnostics, key=lambda d: "error" not in d.message.lower())
        found += [_finding(diagnostic) for diagnostic in ordered[:SHOWN_FINDINGS]]
    if verdict.error is not None and verdict.error_limit is not None:
        found.append(f"largest error {verdict.error:.2e}, allowed {verdict.error_limit:.2e}")
    found += [
        f"trial {t.name} failed: error {t.error:.2e}, allowed {t.limit:.2e}; {t.note}"
        for t in _failed(verdict)
    ]
    if verdict.timing is not None:
        found += _timed(verdict.timing, bound_us)
    if verdict.build is not None:
        found += [
            f"kernel {k.kernel}: {k.registers} registers, {k.shared_bytes} bytes of shared memory, "
            f"{k.spill_bytes} bytes spilled"
            for k in verdict.build.kernels
        ]
    found += lines(verdict.profile) if verdict.profile else []
    found += [f"not checked: {text}" for text in verdict.unchecked]
    return list(dict.fromkeys(" ".join(fact.split()) for fact in found))


def feedback(verdict: Verdict, bound_us: float | None, source: str, tokens: int) -> str:
    """A verdict for the Coder: its facts, and the lines of the source that they point to."""
    lines = source.split("\n")
    places = dict.fromkeys(f.line for f in (*verdict.findings, *_diagnostics(verdict)) if f.line)
    quoted = [f"{at}: {lines[at - 1].strip()}" for at in list(places)[:6] if at <= len(lines)]
    text = "\n".join([*facts(verdict, bound_us), *(["lines of the file:", *quoted] if quoted else [])])
    return cut_to(text, tokens)


def history(attempts: Iterable[Iteration]) -> str:
    """Earlier attempts in a line each: what was tried and how it failed."""
    return "\n".join(_attempt(attempt) for attempt in attempts)


def fingerprint(attempt: Iteration) -> str:
    """What failed, without numbers and names that change from run to run; empty when nothing did."""
    verdict = attempt.verdict
    if verdict is None or verdict.correct:
        return ""
    first = verdict.findings[0].message if verdict.findings else verdict.summary
    return f"{verdict.category}: {re.sub(r'[0-9]+', 'N', first)[:120]}"


def advice_text(advice: Advice | None) -> str:
    """What the Verifier recommends, for the Coder."""
    if advice is None:
        return ""
    parts = [f"bottleneck: {advice.bottleneck}", f"evidence: {advice.evidence}", f"change: {advice.change}"]
    parts += [f"then: {step}" for step in advice.next_steps]
    return "\n".join(parts)


def _attempt(attempt: Iteration) -> str:
    candidate, verdict = attempt.candidate, attempt.verdict
    name = candidate.strategy if candidate else "no code"
    said = fingerprint(attempt) or (verdict.summary if verdict else "not judged")
    return f"attempt {attempt.attempt} ({attempt.kind}) {name}: {attempt.outcome or 'no outcome'}; {said}"


def _row(graph: Graph, node: Node, share: float | None, detail: int) -> str:
    if detail == 0:
        hot = f" {share:.0%}" if share is not None and share >= 0.01 else ""
        return f"{node.id} {node.op.removeprefix('aten.')}{hot}"
    outputs = ", ".join(map(str, node.outputs))
    row = f"{node.id} = {node.op}({_arguments(node)}) -> {outputs}"
    if share is not None:
        time = f"{node.time_us:.1f} us" if node.time_us is not None else "not timed"
        bound = f", bound {node.bound_us:.1f} us" if node.bound_us is not None else ""
        part = f"{share:.1%}" if node.time_us is not None else f"about {share:.1%} by its FLOP and bytes"
        row += f" [{time}, {part}{bound}]"
    if detail > 1:
        row += f" {node.flops:.3g} FLOP, {node.bytes_moved:.3g} B"
    if detail > 2 and (node.module or node.source):
        row += f" # {node.module} {node.source}".rstrip()
    return row


def _arguments(node: Node) -> str:
    positional = [_value(argument) for argument in node.args]
    named = [f"{name}={_value(value)}" for name, value in node.kwargs.items() if name not in _WORDS]
    return ", ".join([*positional, *named])


def _value(argument: Any) -> str:
    if isinstance(argument, dict) and len(argument) == 1:
        return str(next(iter(argument.values())))
    if isinstance(argument, list | tuple):
        return f"[{', '.join(map(_value, argument))}]"
    return json.dumps(argument)


def _kind(graph: Graph, value: str) -> str:
    kind = graph.kind(value)
    if kind in (ValueKind.INPUT, ValueKind.NODE):
        return "activation"
    return f"{kind} {graph.source[value].target}"


def _finding(finding: Finding) -> str:
    place = f" line {finding.line}" if finding.line else ""
    where = f" ({finding.where})" if finding.where else ""
    detail = {
        name: finding.detail[name]
        for name in ("expected", "got", "pattern", "share")
        if name in finding.detail
    }
    more = f" {json.dumps(detail)}" if detail else ""
    return f"{finding.category}{place}: {finding.message}{where}{more}"


def _diagnostics(verdict: Verdict) -> Sequence[Finding]:
    return verdict.build.diagnostics if verdict.build else ()


def _failed(verdict: Verdict) -> list[Any]:
    return [trial for trial in verdict.trials if not trial.passed][:5]


def _timed(timing: Timing, bound_us: float | None) -> list[str]:
    median = timing.candidate.median_us
    lines = [f"time {median:.1f} us ({timing.candidate.low_us:.1f}..{timing.candidate.high_us:.1f})"]
    lines += [
        f"{ratio.value:.2f}x of {name} ({timing.baselines[name].median_us:.1f} us), {ratio.verdict}"
        for name, ratio in timing.speedups.items()
    ]
    if timing.replaced is not None:
        ratio = timing.replaced.speedup
        lines.append(f"{ratio.value:.3f}x of the program that it shall replace, {ratio.verdict}")
    if bound_us and median:
        lines.append(f"roofline bound {bound_us:.1f} us: {bound_us / median:.0%} of what the device can do")
    return lines


def _yes(value: bool) -> str:
    return "yes" if value else "no"
