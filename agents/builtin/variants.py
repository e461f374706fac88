"""Every legal set of parameters for a subtask's kind of kernel, the likeliest first: what a race is made of.

The strategies of a kind, which an attempt each is made of, are the few of them that differ most.  Pure.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from stitch_tui.agents.builtin import emit_conv, emit_gemm, emit_rows
from stitch_tui.agents.builtin.ir import ConvRoot, GemmRoot, Kind, RowsRoot, ScanRoot, Subtask, Tune
from stitch_tui.tools.race import Race

MOST_THREADS, MOST_SHARED_BYTES = 1024, 48 << 10
"""Of a block, on every CUDA device: its threads, and the shared memory that needs no permission."""
MOST_SUMS = 64
"""Of one thread in a tile: a register each, of the 255 that it may have."""
WARP = 32
SIDES, DEPTHS = (32, 64, 128), (8, 16, 32)
"""Of tiles: 16 threads lie along a side."""
READS = 2.0
"""What a read from shared memory costs beside a multiply-add; only orders the tiles."""


def variants(subtask: Subtask, strategies: Sequence[Tune]) -> list[Tune]:
    """The kind's strategies and what its other parameters allow, none twice.

    Tiles come in the order of what they cost, all others as the kind orders them, strategies first.
    """
    known = {tuple(sorted(tune.constants.items())) for tune in strategies}
    further = [
        tune
        for tune in _further(subtask, strategies)
        if is_legal(tune) and tuple(sorted(tune.constants.items())) not in known
    ]
    together = [*strategies, *further]
    if not isinstance(subtask.root, GemmRoot | ConvRoot):
        return together
    others = [tune for tune in together if "BLOCK_M" not in tune.constants]
    tiles = sorted((t for t in together if "BLOCK_M" in t.constants), key=lambda t: tile_cost(subtask, t))
    return [*others, *tiles] if strategies[0] in others else [*tiles[:1], *others, *tiles[1:]]


def left_after(race: Race, tunes: Sequence[Tune], *, found: bool) -> list[Tune]:
    """What is worth an attempt after a race: the fastest first, then those whom nobody could time.

    Args:
        found: one of those that were timed is correct: the slower ones are of no more use.
    """
    named = {tune.name: tune for tune in tunes}
    timed = [] if found else [named[name] for name in race.times if name in named]
    return [*timed, *(named[name] for name in race.left_out if name in named)]


def is_legal(tune: Tune) -> bool:
    """May a block have so many threads, and so much memory, on any device?"""
    sizes = tune.constants
    if "BLOCK_M" in sizes:
        m, n, k = sizes["BLOCK_M"], sizes["BLOCK_N"], sizes["BLOCK_K"]
        padded = 2 * 4 * k * (m + 4 + n + 4) + 8 * m
        whole = m * k % 256 == 0 and n * k % 256 == 0 and 256 % n == 0
        return whole and m * n // 256 <= MOST_SUMS and padded <= MOST_SHARED_BYTES
    threads = sizes.get("THREADS", sizes.get("LANES", 1) * sizes.get("ROWS", 1))
    return threads % WARP == 0 and threads <= MOST_THREADS


def tile_cost(subtask: Subtask, tune: Tune) -> float:
    """What a tile's kernel takes, in multiply-adds of one multiprocessor: only orders the tiles.

    As many rounds of tiles as the fullest multiprocessor has, each with the products and with the reads that
    feed them: a thread that holds more results reads less for each.
    """
    root = subtask.root
    assert isinstance(root, GemmRoot | ConvRoot)
    (rows, columns, depth), sizes = root.extents, tune.constants
    m, n, k = sizes["BLOCK_M"], sizes["BLOCK_N"], sizes["BLOCK_K"]
    groups = root.groups if isinstance(root, ConvRoot) else max(1, subtask.points // max(1, rows * columns))
    tiles = -(-rows // m) * -(-columns // n) * groups
    reads = READS * (16 / m + 16 / n)
    return -(-tiles // emit_gemm.MULTIPROCESSORS) * m * n * -(-depth // k) * k * (1 + reads)


def _further(subtask: Subtask, strategies: Sequence[Tune]) -> Iterator[Tune]:
    """Other values of the parameters that the kind's strategies have."""
    first, root = strategies[0], subtask.root
    if subtask.kind is Kind.POINTWISE:
        yield from _blocks(strategies[:1], (128, 256, 512))
        if (half := first.constants["PACK"] // 2) > 1:
            sentence = f"Each thread moves packs of {half} elements; else one at a time."
            yield Tune(f"packs-of-{half}", sentence, {"THREADS": 256, "PACK": half})
    elif subtask.kind is Kind.POOL:
        yield from _blocks(strategies[:1], (64, 1024))
    elif subtask.kind is Kind.INDEX:
        for results, threads in product((1, 2, 4, 8), (128, 256, 512)):
            sentence = f"Each thread writes {results} results, a block of {threads} apart."
            sizes = first.constants | {"THREADS": threads, "RESULTS": results}
            yield Tune(f"{results}-results-{threads}", sentence, sizes)
    elif isinstance(root, RowsRoot):
        yield from _rows(subtask, root, strategies)
    elif isinstance(root, ScanRoot):
        yield from _scans(root, first)
    elif isinstance(root, GemmRoot | ConvRoot):
        tile = emit_gemm.tile if isinstance(root, GemmRoot) else emit_conv.tile
        yield from (tile(m, n, k) for m, n, k in product(SIDES, SIDES, DEPTHS))


def _blocks(strategies: Sequence[Tune], sizes: Sequence[int]) -> Iterator[Tune]:
    """The same with blocks of other sizes."""
    for tune, threads in product(strategies, sizes):
        yield Tune(
            f"{tune.name}-{threads}",
            f"{tune.sentence} Blocks of {threads} threads.",
            tune.constants | {"THREADS": threads},
        )


def _rows(subtask: Subtask, root: RowsRoot, strategies: Sequence[Tune]) -> Iterator[Tune]:
    """A row has a power of two of threads: whole warps side by side, several with one row a block."""
    length = root.extents[1]
    if root.along:
        pack = emit_rows.pack_of(subtask)
        for rows in (1, 2, 8):
            sentence = f"One warp for each row, rows in a block: {rows}"
            yield emit_rows.tune(f"warp-per-row-{rows}", sentence, WARP, rows, pack, length)
        yield emit_rows.tune("two-warps-per-row", "Two warps for each row", 2 * WARP, 1, pack, length)
    else:
        for lanes, rows in product((2, 4, 16), (32, 64)):
            sentence = f"{rows} neighbouring rows in a block, {lanes} threads for each"
            yield emit_rows.tune(f"columns-{rows}x{lanes}", sentence, lanes, rows, 1, length)
    for tune in strategies:
        if "PARTS" in tune.constants:
            for blocks in (4, 8, 32):
                sizes = tune.constants | {"BLOCKS": blocks * emit_gemm.MULTIPROCESSORS}
                told = f"{tune.sentence} About {blocks} blocks for each multiprocessor."
                yield Tune(f"{tune.name}-{blocks}", told, sizes)


def _scans(root: ScanRoot, first: Tune) -> Iterator[Tune]:
    """As rows; a pack for each thread at a time."""
    pack = first.constants["PACK"]
    if root.along:
        for lanes, rows in ((32, 1), (32, 8), (64, 1), (128, 1), (512, 1)):
            sentence = f"{lanes} threads for each row, a tile at a time; rows in a block: {rows}."
            yield Tune(f"scan-{rows}x{lanes}", sentence, {"LANES": lanes, "ROWS": rows, "PACK": pack})
    else:
        for lanes, rows in product((4, 8, 32), (32,)):
            sentence = f"Neighbouring threads on neighbouring rows, {lanes} threads on each."
            yield Tune(f"columns-{rows}x{lanes}", sentence, {"LANES": lanes, "ROWS": rows, "PACK": 1})
