"""``ModelNew.forward`` and its ``steps`` as text: the graph in order, kernels in the place of nodes."""

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence

from stitch_tui.tools.bundle.calls import DEVICE, call_text
from stitch_tui.tools.bundle.contents import TENSOR, Kernel, Program, Structure
from stitch_tui.tools.bundle.schedule import Step, reads, writes
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.graph import DType, Source, ValueKind

_LOCAL = {"w", "kernel", DEVICE}
_GLOBAL = {"self", "torch", "aten", "float", "getattr", "stitch_same"}


def forward_text(program: Program, steps: Sequence[Step]) -> str:
    """Both methods, indented by four spaces.

    Raises:
        UsageError: the structure of inputs or outputs does not fit the graph.
    """
    arguments = arguments_of(program)
    leaves = dict(_leaves_by_source(program, arguments))
    parameters = dict(_parameters(leaves))
    names = _names(program, parameters)
    checked = ", ".join(f"{literal(leaf)}: {leaf}" for leaf in leaves.values())
    lines = [
        "@torch.no_grad()",
        f"def forward({', '.join(['self', *arguments])}):",
        *(f"    {alias} = {name}" for name, alias in _aliases(arguments).items() if alias != name),
        *(f"    {line}" for line in _plain_values(arguments)),
        f"    return self._stitch.call(self, {{{checked}}}, self.steps)",
        "",
        f"def steps({', '.join(['self', 'w', 'kernel', DEVICE, *parameters.values()])}):",
        *(f"    {line}" for line in _steps(program, steps, names)),
        f"    return {_result(program, names)}",
    ]
    return "\n".join(f"    {line}" if line else "" for line in lines)


def _parameters(leaves: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The variable that holds each input in ``steps``."""
    taken = {*_LOCAL, *_GLOBAL}
    for source, leaf in leaves.items():
        name = _identifier(leaf)
        while name in taken:
            name += "_"
        taken.add(name)
        yield source, name


def input_specs(program: Program) -> dict[str, Source]:
    """The graph's inputs by the expression that reaches them from the arguments."""
    by_source = _leaves_by_source(program, arguments_of(program))
    return {leaf: program.graph.source[source] for source, leaf in by_source}


def arguments_of(program: Program) -> dict[str, Structure]:
    """The arguments of ``forward`` and how each is nested."""
    if program.inputs is not None:
        return dict(program.inputs)
    inputs = [source for source in program.graph.sources if source.kind is ValueKind.INPUT]
    return {_identifier(source.target): TENSOR for source in inputs}


def _aliases(arguments: Mapping[str, Structure]) -> dict[str, str]:
    """The variable for each argument: another name where ours would hide it."""
    if shadowing := sorted(_GLOBAL.intersection(arguments)):
        raise UsageError(f"an argument of forward is called {shadowing[0]}", advice="rename it")
    aliases = {}
    for name in arguments:
        alias = name
        while alias in _LOCAL or (alias != name and alias in arguments):
            alias += "_"
        aliases[name] = alias
    return aliases


def _leaves_by_source(program: Program, arguments: Mapping[str, Structure]) -> Iterator[tuple[str, str]]:
    """Source id of each graph input and the expression that reaches it."""
    sources = [source.id for source in program.graph.sources if source.kind is ValueKind.INPUT]
    aliases = _aliases(arguments)
    leaves = [leaf for name, structure in arguments.items() for leaf in _paths(aliases[name], structure)]
    if len(sources) != len(leaves):
        raise UsageError(f"the graph has {len(sources)} inputs, its arguments hold {len(leaves)} tensors")
    yield from zip(sources, leaves, strict=True)


def _paths(path: str, structure: Structure) -> Iterator[str]:
    """Expressions of the tensors inside an argument, in order."""
    if structure == TENSOR:
        yield path
        return
    ((kind, value),) = structure.items()
    if kind in ("tuple", "list"):
        for index, item in enumerate(value):
            yield from _paths(f"{path}[{index}]", item)
    elif kind == "dict":
        for key, item in value.items():
            yield from _paths(f"{path}[{key!r}]", item)


def _plain_values(arguments: Mapping[str, Structure]) -> Iterator[str]:
    """Checks of the arguments that are no tensors: they are built into the program."""
    for name, alias in _aliases(arguments).items():
        yield from _plain(alias, arguments[name])


def _plain(path: str, structure: Structure) -> Iterator[str]:
    if structure == TENSOR:
        return
    ((kind, value),) = structure.items()
    if kind == "value":
        yield f"stitch_same({literal(path)}, {path}, {value!r})"
    items = value.items() if kind == "dict" else enumerate(value) if kind in ("tuple", "list") else ()
    for key, item in items:
        yield from _plain(f"{path}[{key!r}]", item)


def _names(program: Program, parameters: Mapping[str, str]) -> dict[str, str]:
    """The expression of every value: ids become variables, weights ``w["layers.0.weight"]``."""
    names = dict(parameters)
    for source in program.graph.sources:
        if source.kind is not ValueKind.INPUT:
            names[source.id] = f"w[{literal(source.target)}]"
    taken = {*_LOCAL, *_GLOBAL, *parameters.values()}
    for node in program.graph.nodes:
        name = _identifier(node.id)
        while name in taken:
            name += "_"
        taken.add(name)
        names[node.id] = name
    return names


def _steps(program: Program, steps: Sequence[Step], names: Mapping[str, str]) -> Iterator[str]:
    kept = {*program.graph.outputs, *program.graph.mutations.values(), *program.graph.source}
    last = {value: index for index, step in enumerate(steps) for value in (*reads(step), *writes(step))}
    module = None
    for index, step in enumerate(steps):
        if isinstance(step, Kernel):
            module = None
            yield from _kernel_lines(step, names)
        else:
            if step.module != module:
                module = step.module
                yield f"# {one_line(module) or 'the model itself'}"
            yield f"{names[step.id]} = {call_text(step, names)}"
        over = dict.fromkeys(v for v in (*reads(step), *writes(step)) if last[v] == index and v not in kept)
        if over:
            yield f"del {', '.join(names[value] for value in over)}"
    yield from _updates(program, names)


def _updates(program: Program, names: Mapping[str, str]) -> Iterator[str]:
    """The buffers get their new values, those of one type by one call."""
    by_dtype: dict[DType, list[str]] = {}
    for buffer in program.graph.mutations:
        by_dtype.setdefault(program.graph.spec(buffer).dtype, []).append(buffer)
    for buffers in by_dtype.values():
        old = ", ".join(names[buffer] for buffer in buffers)
        new = ", ".join(names[program.graph.mutations[buffer]] for buffer in buffers)
        yield f"torch._foreach_copy_([{old}], [{new}])" if len(buffers) > 1 else f"{old}.copy_({new})"


def _kernel_lines(kernel: Kernel, names: Mapping[str, str]) -> Iterator[str]:
    yield f"# {kernel.id}: {one_line(kernel.title)} (kernels/{kernel.file})"
    results = ", ".join(names[value] for value in kernel.region.outputs)
    if len(kernel.region.outputs) == 1:
        results = f"({results},)"
    operands = "".join(f", {names[value]}" for value in kernel.region.inputs)
    yield f'{results} = kernel("{kernel.id}"{operands})'


def _result(program: Program, names: Mapping[str, str]) -> str:
    outputs = [names[value] for value in program.graph.outputs]
    structure = program.outputs
    if structure is None:
        structure = TENSOR if len(outputs) == 1 else {"tuple": [TENSOR] * len(outputs)}
    flat = iter(outputs)
    text = _nested(structure, flat)
    if next(flat, None) is not None:
        raise UsageError("the structure of the outputs holds fewer tensors than the graph returns")
    return text


def _nested(structure: Structure, flat: Iterator[str]) -> str:
    """The expression that rebuilds one result from the flat outputs."""
    if structure == TENSOR:
        if (name := next(flat, None)) is None:
            raise UsageError("the structure of the outputs holds more tensors than the graph returns")
        return name
    ((kind, value),) = structure.items()
    if kind == "value":
        return repr(value)
    if kind == "dict":
        return f"{{{', '.join(f'{key!r}: {_nested(item, flat)}' for key, item in value.items())}}}"
    items = [_nested(item, flat) for item in value]
    if kind == "list":
        return f"[{', '.join(items)}]"
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _identifier(text: str) -> str:
    name = re.sub(r"\W", "_", text)
    return f"_{name}" if not name or name[0].isdigit() or keyword.iskeyword(name) else name


def one_line(text: str) -> str:
    """Text from outside made fit for a comment or a docstring: it must not end either."""
    return " ".join(
        "".join(c if c.isprintable() else " " for c in text).replace("\\", "/").replace('"', "'").split()
    )


def literal(text: str) -> str:
    """A string literal in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
