"""Times of a reference, and what a plan may win by them."""

from pydantic import BaseModel

from stitch_tui.tools.graph import Graph
from stitch_tui.tools.profiling.choice import BUSY
from stitch_tui.tools.profiling.profile import SystemProfile, Trace


class ReferenceTimes(BaseModel):
    """What was measured of the reference."""

    graph: Graph
    """With the time of each node, measured alone; without times on the emulator."""
    trace: Trace = Trace()
    """Of whole passes in a row."""

    @property
    def planned(self) -> Graph:
        """The graph as a Planner shall weigh it; see `at_its_pace`."""
        return at_its_pace(self.graph, self.trace.system)


def at_its_pace(graph: Graph, system: SystemProfile | None) -> Graph:
    """`graph` with times that say what removing a node wins.

    Where the device mostly waits for the host, a short kernel costs what launching it takes: no node then
    counts less than the run's time for one launch.  Views, which launch nothing, cost nothing.
    """
    if system is None or system.busy_share >= BUSY or not system.launches:
        return graph
    least = system.wall_us / system.launches
    nodes = tuple(
        node.model_copy(update={"time_us": max(node.time_us, least)}) if node.time_us else node
        for node in graph.nodes
    )
    return graph.model_copy(update={"nodes": nodes})
