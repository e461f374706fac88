"""The order in which the built-in Coder tries what is left, once a profile says what slows the best down."""

from collections.abc import Sequence

from stitch_tui.agents.builtin import emit_cublas, emit_tensor_cores
from stitch_tui.agents.builtin.ir import Tune
from stitch_tui.agents.state import Disease

_SMALLER_BLOCKS = {Disease.TAIL, Disease.SMALL_GRID, Disease.LATENCY}
"""More blocks with less work each: the sizes of a block count."""
_LIGHTER_THREADS = {Disease.SPILL, Disease.LOW_OCCUPANCY}
"""Fewer registers and less shared memory: what a thread holds counts."""
_LIBRARY = {Disease.COMPUTE, Disease.NO_TENSOR_CORES}
"""Better instructions for the same products: the library has them, else more work on each loaded value."""
_BIGGER_TILES = {Disease.MEMORY, Disease.UNCOALESCED, Disease.BANK_CONFLICTS}
"""More work on each value that was loaded: what a thread holds counts, the more the better."""
_LIBRARIES = {emit_cublas.NAME, emit_tensor_cores.NAME}
"""Strategies whose blocks are the library's affair."""


def ordered(tunes: Sequence[Tune], disease: Disease | None) -> list[Tune]:
    """Strategies that act on the disease first; those that say nothing of it stay as they were."""
    if disease in _SMALLER_BLOCKS:
        return sorted(tunes, key=lambda t: (not _is_split(t), t.name in _LIBRARIES, _block(t)))
    if disease in _LIGHTER_THREADS:
        return sorted(tunes, key=_thread)
    if disease in _LIBRARY:
        return sorted(tunes, key=lambda tune: (tune.name != emit_cublas.NAME, -_thread(tune)))
    if disease in _BIGGER_TILES:
        return sorted(tunes, key=lambda tune: -_thread(tune))
    return list(tunes)


def _is_split(tune: Tune) -> bool:
    """Its rows are cut into parts, a block for each."""
    return "PARTS" in tune.constants


def _thread(tune: Tune) -> float:
    """Results, or elements, that a thread holds at once."""
    sizes = tune.constants
    if "BLOCK_M" in sizes:
        return sizes["BLOCK_M"] * sizes["BLOCK_N"] / 256
    return sizes.get("PACK", 1) * sizes.get("ITEMS", 1) * sizes.get("RESULTS", 1)


def _block(tune: Tune) -> float:
    """Results, or elements, that a block holds at once."""
    sizes = tune.constants
    threads = sizes.get("THREADS", sizes.get("LANES", 1) * sizes.get("ROWS", 1))
    return sizes["BLOCK_M"] * sizes["BLOCK_N"] if "BLOCK_M" in sizes else _thread(tune) * threads
