"""A candidate with every kernel emptied, judged: a result that is still right came from elsewhere."""

from stitch_tui.tools import launches, scratch
from stitch_tui.tools.bench import BUILD_SECONDS, CHECK_SECONDS, Bench, Json
from stitch_tui.tools.emulator import Mode
from stitch_tui.tools.killed import unless_killed
from stitch_tui.tools.verdict import Category

TRIALS: Json = {"full": 0, "distributions": False, "metamorphic": False, "decorative": True}
"""One, which must fail."""


async def is_still_right(bench: Bench, target: Json, name: str, hollow: str, runner: Json) -> bool | None:
    """Does the emptied source give the right result?  None: it does not build.

    Args:
        name: of the candidate's file.
        runner: how the whole candidate is started.
    """
    with scratch.folder("stitch-hollow-") as folder:
        path = folder / name
        path.write_text(hollow, encoding="utf-8")
        if cuda := bench.cuda:
            build = await cuda.build(path)
            runner = runner | {"load": build.artifact}
        else:
            assert bench.emulator
            build = await bench.emulator.build(path, Mode.FAST, timeout=BUILD_SECONDS)
            runner = launches.emulated(bench.emulator, build, order=0, deadline_s=bench.deadline_s)
        if not build.ok:
            return None
        return await is_right(bench, target, runner, TRIALS)


async def is_right(bench: Bench, target: Json, runner: Json, trials: Json) -> bool:
    """Does a candidate that should fail those trials pass them, one at least?"""
    params = {"target": target, "runner": runner, "trials": trials}
    report = await unless_killed(lambda: bench.judge.call("check", params, timeout=CHECK_SECONDS))
    return bool(report["category"] == Category.CORRECT and report["trials"])
