"""What every lowering of a region begins with and ends with, whatever its values are read by."""

from collections.abc import Iterable, Sequence

from stitch_tui.agents.builtin import c_scalar
from stitch_tui.agents.builtin.ir import Access, NotFusable, ScalarDag, Store
from stitch_tui.agents.builtin.scalar import Program
from stitch_tui.tools.graph import Graph, Region


class RegionLowering:
    """One region: its nodes, and the scalar program and the operands that they become."""

    def __init__(self, graph: Graph, region: Region) -> None:
        self.graph, self.region = graph, region
        self.nodes = [graph.node[n] for n in region.nodes]
        self.inside = set(region.nodes)
        self.program = Program()
        self.accesses: list[Access] = []

    def _dag(self, stores: Sequence[Store]) -> ScalarDag:
        """The whole program.

        Raises:
            NotFusable: an instruction that C has no expression for.
        """
        for instr in self.program.instrs:
            if not c_scalar.supported(instr):
                raise NotFusable(f"{instr.op} of {instr.register}")
        return ScalarDag(tuple(self.program.instrs), tuple(stores))

    def _require_all_read(self, elsewhere: Iterable[str] = ()) -> None:
        """Raise for an input that neither an operand reads nor what the region is built around."""
        read = {access.value for access in self.accesses} | set(elsewhere)
        if unused := [value for value in self.region.inputs if value not in read]:
            raise NotFusable(f"{unused[0]} is not needed for any result")
