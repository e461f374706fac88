"""The engine's part in a race: builds side by side, one call of the judge, what became of each."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stitch_tui.tools.bench import Bench, Cuda, OnEvent
from stitch_tui.tools.graph import Region
from stitch_tui.tools.race import Race
from stitch_tui.tools.racing import UNBUILT, raced
from stitch_tui.tools.toolkit import Toolkit
from stitch_tui.tools.verdict import Build, Category, Finding

REGION = Region(nodes=("relu",), inputs=("x",), outputs=("relu",))


class Compiler(Cuda):
    """Says of a source what its text says; never ends with one that asks for it."""

    async def build(self, source: Path) -> Build:
        text = source.read_text()
        if text == "endless":
            await asyncio.Event().wait()
        faults = (Finding(category=Category.BUILD_ERROR, message="no kernel"),) if text == "wrong" else ()
        return Build(ok=not faults, artifact=f"{text}.so", diagnostics=faults, device="cuda")


@dataclass
class Judge:
    """Answers one ``race``."""

    report: dict[str, Any]
    calls: list[tuple[str, Any]] = field(default_factory=list)

    async def call(
        self, method: str, params: Any = None, *, timeout: float, on_event: OnEvent | None = None
    ) -> Any:
        self.calls.append((method, params))
        return self.report


def run(judge: Judge, sources: dict[str, str], seconds: float) -> tuple[Race, list[str]]:
    cuda = Compiler(name="H200", arch="sm_90", toolkit=Toolkit(None), cache=Path("/nowhere"))
    stages: list[str] = []
    heard = lambda event, data: stages.append(data["stage"])  # noqa: E731
    bench = Bench(judge, None, cuda=cuda)
    return asyncio.run(raced(bench, sources, REGION, seconds=seconds, on_event=heard)), stages


def test_those_that_build_are_timed_in_one_call_and_told_the_fastest_first() -> None:
    blocks = {"slow": [[20.0, 22.0]] * 9, "fast": [[10.0, 11.0]] * 9}
    judge = Judge({"blocks": blocks, "failed": {"crash": "illegal_access: at run"}, "left_out": {}})
    sources = {"slow": "s", "broken": "wrong", "fast": "f", "crash": "c"}
    race, stages = run(judge, sources, 60.0)
    ((method, params),) = judge.calls
    assert method == "race"
    assert {name: runner["load"] for name, runner in params["runners"].items()} == {
        "slow": "s.so",
        "fast": "f.so",
        "crash": "c.so",
    }
    assert 0 < params["options"]["seconds"] <= 60.0
    assert stages == ["build", "timing"]
    assert (race.winner, list(race.times)) == ("fast", ["fast", "slow"])
    assert race.times["fast"].low_us <= 10.5 <= race.times["fast"].high_us
    assert race.failed == {"broken": "build_error: no kernel", "crash": "illegal_access: at run"}
    assert "fast won" in race.sentence
    assert "slow 21.0 us" in race.sentence
    assert "broken (build_error: no kernel)" in race.sentence


def test_a_build_without_an_end_is_left_out_and_the_others_race() -> None:
    judge = Judge({"blocks": {"quick": [[1.0]] * 9}, "failed": {}, "left_out": {}})
    race, _ = run(judge, {"endless": "endless", "quick": "q"}, 0.5)
    assert (race.winner, race.left_out) == ("quick", {"endless": UNBUILT})


def test_where_nothing_builds_the_judge_is_not_asked() -> None:
    judge = Judge({})
    race, stages = run(judge, {"one": "wrong"}, 60.0)
    assert (race.winner, judge.calls, stages) == ("", [], ["build"])
    assert race.sentence == "nobody was timed; without one (build_error: no kernel)"
