"""The reference's forward pass as the JSON of ``tools/graph.Graph``: ``torch.export``, cleaned."""

import operator
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument

from . import cost, decompositions
from .encoding import Unencodable, encode, encode_spec
from .faults import LONGEST_WHY, Located, silent_logs, source_line
from .interpreter import operands
from .reference import Reference

Json = dict[str, Any]

OPAQUE = "opaque"
"""``op`` of the one node that stands for a reference that cannot be exported."""

_KINDS = {
    InputKind.USER_INPUT: "input",
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
}
_MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)


_OF_ANY_LAYOUT = dict.fromkeys(("aten.view.default", "aten._unsafe_view.default"), "aten.reshape.default")
"""A view fits the layout that its operand had in the trace.  Another precision, device or a kernel in front
may give another layout (attention in float64 does on a GPU), and the values are the same."""


class Inexportable(Exception):
    """The reference has no graph; says why and where.  It is then one opaque node."""

    def __init__(self, why: str, where: str = "") -> None:
        super().__init__(why)
        self.why, self.where = why, where


class Exported:
    """One shape variant's graph: JSON, and the tensors behind its constants."""

    def __init__(self, graph: Json, constants: Mapping[str, torch.Tensor]) -> None:
        self.graph, self.constants = graph, dict(constants)
        self.sources: dict[str, Json] = {source["id"]: source for source in graph["sources"]}
        self.nodes: dict[str, Json] = {node["id"]: node for node in graph["nodes"]}

    @property
    def skeleton(self) -> list[tuple[str, str, list[str]]]:
        """What must agree between shape variants: ids, operators and operands."""
        return [(node["id"], node["op"], operands(node)) for node in self.graph["nodes"]]

    def spec(self, value: str) -> Json:
        """Spec of a value that is not a tuple."""
        spec: Json = self.sources[value]["spec"] if value in self.sources else self.nodes[value]["outputs"][0]
        return spec


def export(reference: Reference, args: Sequence[Any]) -> Exported:
    """The graph of the reference's forward on `args`, in the module's current mode.

    Raises:
        Inexportable: data-dependent control flow, operators without a functional form, types that
            the candidate ABI lacks.
    """
    program = _program(reference, args)
    try:
        return _Translation(program, reference, args).exported()
    except Unencodable as error:
        raise Inexportable(f"the graph holds {error}") from error


def _program(reference: Reference, args: Sequence[Any]) -> torch.export.ExportedProgram:
    try:
        with torch.no_grad(), silent_logs(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.export(reference.module, tuple(args), strict=False)
            with decompositions.operators_listed_once():
                functional: torch.export.ExportedProgram = program.run_decompositions(
                    decompositions.table(reference.device)
                )
            return functional
    except Exception as error:  # export raises whatever the traced code provokes
        located = reference.loaded.located
        where = located.of_exception(error)
        why = _first_sentence(str(error)) or type(error).__name__
        if line := source_line(where, located.project):
            why = f"{why} [{line}]"
        raise Inexportable(why, where) from error


class _Translation:
    """One `ExportedProgram` on its way to JSON."""

    def __init__(
        self, program: torch.export.ExportedProgram, reference: Reference, args: Sequence[Any]
    ) -> None:
        self.program, self.reference = program, reference
        self.signature = program.graph_signature
        self.fx = {node.name: node for node in program.graph.nodes}
        self.aliases: dict[str, str] = {}
        self.arguments = iter(reference.argument_names(args))

    def exported(self) -> Exported:
        sources = self._sources()
        results = [
            (spec.arg.name, spec)
            for spec in self.signature.output_specs
            if isinstance(spec.arg, TensorArgument)
        ]
        if len(results) != len(self.signature.output_specs):
            raise Inexportable("an output is not a tensor")
        outputs = [self._name(name) for name, spec in results if spec.kind is OutputKind.USER_OUTPUT]
        mutations = {
            self._mutated(spec): self._name(name) for name, spec in results if spec.kind in _MUTATIONS
        }
        nodes = self._live([*outputs, *mutations.values()])
        read = {operand for node in nodes for operand in operands(node)} | {*outputs, *mutations}
        graph = {
            "sources": sorted(
                (s for s in sources if s["kind"] == "input" or s["id"] in read),
                key=lambda s: bool(s["kind"] != "input"),
            ),
            "nodes": nodes,
            "outputs": outputs,
            "mutations": mutations,
        }
        constants = {
            spec.arg.name: self.program.constants[str(spec.target)]
            for spec in self.signature.input_specs
            if spec.kind is InputKind.CONSTANT_TENSOR
        }
        return Exported(graph, {name: value.detach() for name, value in constants.items()})

    def _sources(self) -> list[Json]:
        """Every placeholder once; names of shared parameters fall together under the first."""
        first = _first_names(self.reference.module)
        sources: dict[tuple[str, str], Json] = {}
        for spec in self.signature.input_specs:
            if isinstance(spec.arg, ConstantArgument):
                continue
            if spec.kind not in _KINDS:
                raise Inexportable(f"it takes a {spec.kind.name.lower().replace('_', ' ')}")
            kind, name = _KINDS[spec.kind], spec.arg.name
            target = next(self.arguments) if kind == "input" else str(spec.target)
            target = first.get(target, target) if kind in ("parameter", "buffer") else target
            known = sources.setdefault(
                (kind, target),
                {
                    "id": name,
                    "kind": kind,
                    "target": target,
                    "spec": encode_spec(self.fx[name].meta["val"]),
                },
            )
            self.aliases[name] = known["id"]
        return list(sources.values())

    def _mutated(self, spec: Any) -> str:
        for source in self.signature.input_specs:
            name = source.arg.name
            if spec.target in (source.target, name) and source.kind is not InputKind.PARAMETER:
                return self._name(name)
        raise Inexportable(f"it changes {spec.target} in place")

    def _name(self, name: str) -> str:
        return self.aliases.get(name, name)

    def _live(self, results: Sequence[str]) -> list[Json]:
        """Nodes that `results` need, in order."""
        calls = [node for node in self.program.graph.nodes if node.op == "call_function"]
        wanted, kept = set(results), []
        for fx_node in reversed(calls):
            if fx_node.name in wanted:
                node = self._node(fx_node)
                wanted.update(operands(node))
                kept.append(node)
        return kept[::-1]

    def _node(self, fx_node: Any) -> Json:
        where = self._where(fx_node)
        op = _op_name(fx_node.target, where)
        value = fx_node.meta["val"]
        results = cost.tensors_in(value)
        if not isinstance(value, (torch.Tensor, list, tuple)) or not results:
            raise Inexportable(f"{op} gives a {type(value).__name__} that depends on data", where)
        try:
            args = encode(list(fx_node.args), self._reference)
            kwargs = {key: encode(item, self._reference) for key, item in fx_node.kwargs.items()}
            read = cost.tensors_in([node.meta["val"] for node in fx_node.all_input_nodes])
            specs = [encode_spec(tensor) for tensor in (*results, *read)][: len(results)]
        except Unencodable as error:
            raise Inexportable(f"{op} uses {error}", where) from error
        free = cost.is_view(op, fx_node.target)
        fakes = torch.fx.node.map_arg(fx_node.args, lambda node: node.meta["val"])
        return {
            "id": fx_node.name,
            "op": op,
            "args": args,
            "kwargs": kwargs,
            "outputs": specs,
            "module": _module_path(fx_node.meta.get("nn_module_stack")),
            "source": where,
            "flops": 0.0 if free else cost.flops(op, fakes, results),
            "bytes_moved": 0.0 if free else cost.bytes_moved(read, results),
        }

    def _reference(self, argument: Any) -> dict[str, str] | None:
        return {"ref": self._name(argument.name)} if isinstance(argument, torch.fx.Node) else None

    def _where(self, fx_node: Any) -> str:
        return _innermost(fx_node.meta.get("stack_trace") or "", self.reference.loaded.located)


def _op_name(target: Any, where: str) -> str:
    if target is operator.getitem:
        return "getitem"
    if not isinstance(target, torch._ops.OpOverload):
        raise Inexportable(f"it uses {getattr(target, '__name__', target)}", where)
    if target._schema.is_mutable:
        raise Inexportable(f"{target} changes its operand in place", where)
    return _OF_ANY_LAYOUT.get(str(target), str(target))


def _first_names(module: torch.nn.Module) -> dict[str, str]:
    """Every name of a parameter or buffer -> the first name of the same tensor."""
    first: dict[int, str] = {}
    names = {}
    for named in (module.named_parameters, module.named_buffers):
        for name, value in named(remove_duplicate=False):
            names[name] = first.setdefault(id(value), name)
    return names


def _module_path(stack: Mapping[str, tuple[str, Any]] | None) -> str:
    """``layers.0.attn`` from the innermost entry of ``nn_module_stack``."""
    if not stack:
        return ""
    path = str(list(stack.values())[-1][0])
    return re.sub(r"@\d+", "", path.removeprefix("L['self'].").removeprefix("L['self']"))


def _innermost(trace: str, located: Located) -> str:
    """``file:line`` of the innermost frame of a stack trace that lies in the user's files."""
    for filename, line in reversed(re.findall(r'File "([^"]+)", line (\d+)', trace)):
        if name := located.relative(filename):
            return f"{name}:{line}"
    return ""


def _first_sentence(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[0][:LONGEST_WHY] if lines else ""
