"""The Verifier's work on one candidate, cheapest first, ending at the first failure.

::

    bench = Bench(judge, Emulator(cache))                      # no GPU: functional verdicts
    bench = Bench(judge, Emulator(cache), cuda=Cuda(...))      # a GPU: timed ones
    verdict = await verify_region(bench, Path("gelu.cu"), region, flops=2e6)
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from stitch_tui.tools.bench import Bench, Cuda, Json, OnEvent, target_of
from stitch_tui.tools.graph import Region
from stitch_tui.tools.kernel_verification import KernelVerification
from stitch_tui.tools.program_verification import ProgramVerification
from stitch_tui.tools.verdict import Verdict

__all__ = ["Bench", "Cuda", "verify_program", "verify_region"]


async def verify_region(
    bench: Bench,
    source: Path,
    region: Region,
    *,
    flops: float = 0.0,
    bound_us: float | None = None,
    time_it: bool = True,
    becomes_best: Callable[[Verdict], bool] | None = None,
    upcoming: Json | None = None,
    on_event: OnEvent | None = None,
) -> Verdict:
    """Judge one ``.cu`` against the same nodes of the reference.

    Args:
        flops: of the region at full size; decides whether the emulator can run it there.
        bound_us: the speed of light for the region; a time below `BELIEVED` of it is quarantined.
        time_it: measure a correct candidate where there is a GPU.
        becomes_best: asked of a correct and timed verdict; if so, compute-sanitizer has the last word, and
            what it accepts is profiled.
        upcoming: the target that is judged next: its baselines compile beside this one's checks.
        on_event: ``(event, data)``: ``stage``, ``trial`` after each comparison, ``waiting`` for the GPU.  A
            stage that is announced again begins anew, and its trials with it.

    Raises:
        StitchError: the reference or the judge is at fault, never the candidate.
    """
    how = (bench, target_of(region), flops, bound_us, time_it, on_event)
    verification = KernelVerification(*how, becomes_best=becomes_best, upcoming=upcoming)
    return await verification.of_kernel(source)


async def verify_program(
    bench: Bench,
    module: Path,
    kernels: Mapping[str, Path] | None = None,
    *,
    flops: float = 0.0,
    bound_us: float | None = None,
    small_shapes: bool = False,
    time_it: bool = True,
    traced_as: Json | None = None,
    replaces: Path | None = None,
    on_event: OnEvent | None = None,
) -> Verdict:
    """Judge a whole program, a Python file with ``ModelNew``, end to end.

    Args:
        module: ``stitched/model_new.py``, or any module in KernelBench's form.
        kernels: the bundle's ``.cu`` files by file name; built for the emulator where there is no GPU.
        small_shapes: try the reference's small shapes too; a bundle is made for one shape.
        traced_as: how its reference is opened; a correct program is then profiled.
        replaces: the module of the program before it, with the same kernels: timed in the same blocks.  Each
            kernel of a program that replaces another has to matter to its result.
    """
    how = (bench, {"kind": "program"}, flops, bound_us, time_it, on_event)
    verification = ProgramVerification(*how, traced_as=traced_as, replaces=replaces)
    return await verification.of_module(module, kernels or {}, small_shapes)
