"""``model_new.py`` as text: the loader, the program's facts, and ``ModelNew``."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stitch_tui.tools.bundle import parts
from stitch_tui.tools.bundle.calls import TORCH_DTYPE, is_random
from stitch_tui.tools.bundle.contents import Kernel, Program
from stitch_tui.tools.bundle.forward import forward_text, input_specs, literal, one_line
from stitch_tui.tools.bundle.memory import lifetimes, place
from stitch_tui.tools.bundle.schedule import schedule
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.graph import TensorSpec, ValueKind

_PARTS = Path(parts.__file__).parent
_NAMES = ("loader.py", "replay.py", "module.py")
RULE = "# " + "-" * 96
_PROGRAM = f"{RULE}\n# The program.\n\n"
FILES = 'Path(__file__).resolve().parent / "kernels"'
"""Where a bundle's ``model_new.py`` finds its kernels, as an expression."""
_FLAGS = {ValueKind.PARAMETER: 1, ValueKind.BUFFER: 2, ValueKind.CONSTANT: 2}
_CONSTANT_LIMIT = 65536
"""Numbers in a constant that is written out in the program's text."""


def folder_text(program: Program) -> str:
    """``model_new.py`` of a bundle: kernels and reference are files beside it."""
    name = one_line(program.reference.class_name)
    docstring = (
        f"ModelNew: the program of {name} (reference.py) with {_count(program)}.\n\n"
        "Written by stitch. Needs torch, an NVIDIA GPU and nvcc, not stitch; the kernels are compiled on\n"
        "first use and kept in the user's cache. Takes the constructor arguments, the inputs and the\n"
        "state_dict of the reference, for the shapes that it was verified with. Inference only.\n"
    )
    return _module(program, docstring)


def made_by(class_name: str) -> str:
    """The expression for the reference's class in a bundle's ``model_new.py``."""
    return f'stitch_reference(Path(__file__).resolve().parent / "reference.py").{one_line(class_name)}'


def _count(program: Program) -> str:
    owned = sum(len(kernel.region.nodes) for kernel in program.stitched)
    kernels = len(program.stitched)
    return (
        f"{owned} of {len(program.graph.nodes)} operators in {kernels} CUDA kernel file{'s'[: kernels != 1]}"
    )


def _module(program: Program, docstring: str) -> str:
    bodies = "".join(f"{body}\n\n\n" for body in _bodies())
    standard = "\n".join(_imports(*map(_part, _NAMES)))
    host = program.host or host_text(program)
    return (
        f'"""{docstring}"""\n\n{standard}\n\nimport torch\nfrom torch import nn\n\n'
        f"{bodies}{_PROGRAM}{host.strip(chr(10))}\n"
    )


def host_text(program: Program) -> str:
    """The host side as stitch writes it: the facts of the program, and a ``forward`` of a line a node.

    All of a ``model_new.py`` below its last line of dashes; what a Coder may write otherwise.
    """
    return f"aten = torch.ops.aten\n\n\n{_class(program)}"


def host_part(text: str) -> str:
    """The host side of a ``model_new.py``; empty where there is none."""
    return text.partition(_PROGRAM)[2]


def _bodies() -> list[str]:
    """The parts as they stand in every program: all below their imports."""
    return [f"{RULE}{_part(name).partition(RULE)[2].rstrip()}" for name in _NAMES]


def without_loader(text: str) -> str:
    """A program's text without the parts that stitch ships, on the same lines; changed parts stay.

    For the static screen: loading kernels starts a compiler, which a candidate must not do.
    """
    for body in _bodies():
        text = text.replace(body, "\n" * body.count("\n"))
    return text


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")


LOADER = "\n".join(map(_part, _NAMES))
"""The parts that every program carries."""


def _imports(*texts: str) -> Iterator[str]:
    """The import lines of all parts together, but for torch and for what one part takes from another."""
    statements = [statement for text in texts for statement in ast.parse(text).body]
    modules = {a.name for s in statements if isinstance(s, ast.Import) for a in s.names if a.name != "torch"}
    froms = [statement for statement in statements if isinstance(statement, ast.ImportFrom)]
    names: dict[str, set[str]] = {}
    for statement in froms:
        module = statement.module or ""
        if module.partition(".")[0] not in ("torch", "stitch_tui"):
            names.setdefault(module, set()).update(alias.name for alias in statement.names)
    yield from (f"import {name}" for name in sorted(modules))
    yield from (f"from {module} import {', '.join(sorted(names[module]))}" for module in sorted(names))


def _class(program: Program) -> str:
    return (
        'class ModelNew(StitchModule):\n    """The stitched program."""\n\n'
        f"    stitch_program = {_facts(program)}\n\n"
        "    def __init__(self, *args, **kwargs):\n"
        f"        super().__init__({made_by(program.reference.class_name)}(*args, **kwargs))\n\n"
        f"{forward_text(program, schedule(program.graph, program.stitched))}\n"
    )


def _facts(program: Program) -> str:
    """The ``StitchProgram`` of the module, one fact a line."""
    graph = program.graph
    read = {value for node in graph.nodes for value in node.operands} | {*graph.outputs, *graph.mutations}
    weights = {
        source.target: source.spec
        for source in graph.sources
        if source.kind in (ValueKind.PARAMETER, ValueKind.BUFFER) and source.id in read
    }
    inputs = {leaf: source.spec for leaf, source in input_specs(program).items()}
    offsets, arena = place(lifetimes(graph, schedule(graph, program.stitched)))
    changing = tuple(graph.source[buffer].target for buffer in graph.mutations)
    kernels = "".join(_kernel(program, kernel, offsets) for kernel in program.stitched)
    lines = [
        f"mode={literal(program.reference.mode)},",
        f"files={FILES},",
        f"inputs={_specs(inputs)},",
        f"weights={_specs(weights)},",
        f"constants={_constants(program)},",
        f"kernels=({_indented(kernels)}),",
        f"arena_bytes={arena},",
        *([f"changing={_python(changing)},"] if changing else []),
        *(["random=True,"] if any(map(is_random, graph.nodes)) else []),
    ]
    return "StitchProgram(\n" + "".join(f"        {line}\n" for line in lines) + "    )"


def _specs(specs: Mapping[str, TensorSpec]) -> str:
    rows = (
        f"            {literal(name)}: ({spec.shape!r}, {TORCH_DTYPE[spec.dtype]}),\n"
        for name, spec in specs.items()
    )
    return "{\n" + "".join(rows) + "        }" if specs else "{}"


def _constants(program: Program) -> str:
    rows = [
        f"            {literal(source.target)}: {_constant(program, source.target, source.spec)},\n"
        for source in program.graph.sources
        if source.kind is ValueKind.CONSTANT
    ]
    return "{\n" + "".join(rows) + "        }" if rows else "{}"


def _constant(program: Program, target: str, spec: TensorSpec) -> str:
    """None for an attribute of the reference, else the values and the dtype."""
    if target not in program.constants:
        return "None"
    if spec.numel > _CONSTANT_LIMIT:
        raise UsageError(
            f"the constant {target} has {spec.numel} elements",
            why=f"model_new.py writes out at most {_CONSTANT_LIMIT}",
            advice="make it a buffer of the model",
        )
    return f"({_values(program.constants[target].values)}, {TORCH_DTYPE[spec.dtype]})"


def _values(values: Any) -> str:
    if isinstance(values, (list, tuple)):
        return f"[{', '.join(_values(item) for item in values)}]"
    text = repr(values)
    return f'float("{text}")' if text in ("inf", "-inf", "nan") else text


def _indented(text: str) -> str:
    return f"\n{text}        " if text else ""


def _kernel(program: Program, kernel: Kernel, offsets: Mapping[str, int]) -> str:
    """One ``StitchKernel`` of the facts."""
    graph = program.graph
    rows = [f"{literal(kernel.id)},", f"{literal(kernel.file)},"]
    rows.append(_tensors(_input(program, value) for value in kernel.region.inputs))
    rows.append(_tensors(_output(program, value, offsets) for value in kernel.region.outputs))
    options: dict[str, Sequence[Any] | bool] = {
        "ints": kernel.region.ints,
        "floats": kernel.region.floats,
        "options": kernel.nvcc_options,
        "random": any(is_random(graph.node[name]) for name in kernel.region.nodes),
    }
    rows += [f"{name}={_python(value)}," for name, value in options.items() if value]
    body = "".join(f"                {row}\n" for row in rows)
    return f"            StitchKernel(\n{body}            ),\n"


def _python(value: Any) -> str:
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_python, value))}{',' if len(value) == 1 else ''})"
    return _values(value)


def _tensors(rows: Iterator[str]) -> str:
    body = "".join(f"                    {row},\n" for row in rows)
    return f"(\n{body}                )," if body else "(),"


def _input(program: Program, value: str) -> str:
    graph, kind = program.graph, program.graph.kind(value)
    spec = graph.spec(value)
    name = graph.source[value].target if value in graph.source else value
    weight = ""
    if flags := _FLAGS.get(kind, 0):
        # Running statistics change with every call; only what a user changes makes bind run again.
        weight = f", flags={flags}" + ("" if value in graph.mutations else ", fixed=True")
    return f"StitchTensor({literal(name)}, {TORCH_DTYPE[spec.dtype]}, {spec.shape!r}{weight})"


def _output(program: Program, value: str, offsets: Mapping[str, int]) -> str:
    graph, spec = program.graph, program.graph.spec(value)
    more = ", flags=2" if value in graph.mutations.values() and value not in graph.outputs else ""
    more += f", offset={offsets[value]}" if value in offsets else ""
    return f"StitchTensor({literal(value)}, {TORCH_DTYPE[spec.dtype]}, {spec.shape!r}{more})"
