"""What a candidate must not do to the machine: contained, named, and the next candidate is judged rightly."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stitch_tui.tools import reference
from stitch_tui.tools.emulator import Emulator
from stitch_tui.tools.graph import region_of
from stitch_tui.tools.judge import Judge
from stitch_tui.tools.verdict import Category, Finding, Verdict
from stitch_tui.tools.verification import Bench, verify_region

from .linear_target import REFERENCE

pytestmark = pytest.mark.slow

HONEST = (Path(__file__).parent / "candidates" / "linear_relu.cu").read_text()
MISBEHAVIOUR = {
    "fork bomb": "for (;;) GLUED(fo, rk)();",
    "10 GB of output": "for (int i = 0; i < 10240; i++) (void)!write(1, chunk, sizeof chunk);",
    "100 GB of memory": "char* huge = (char*)malloc((size_t)100 << 30);"
    " for (size_t at = 0; at < (size_t)100 << 30; at += 4096) ((volatile char*)huge)[at] = 1;",
    "endless kernel": "for (volatile int turn = 0;; turn = 0) {}",
    "endless at full size": "if (c->in[0].shape[0] == 40) for (volatile int turn = 0;; turn = 0) {}",
    "closed descriptors": "for (int descriptor = 0; descriptor < 256; descriptor++) close(descriptor);",
    # a clock that nobody can set: that it is asked for is enough
    "clock set back": "struct timespec then = {1, 0}; GLUED(clock_set, time)(CLOCK_MONOTONIC, &then);",
}
NAMED = {
    "fork bomb": ((Category.HACK_SUSPECTED,), "it starts processes"),
    "10 GB of output": ((Category.HACK_SUSPECTED,), "more than 64 MiB"),
    "100 GB of memory": ((Category.ILLEGAL_ACCESS, Category.OUT_OF_MEMORY_HOST), ""),
    "endless kernel": ((Category.HANG,), "no answer within 3 s"),
    "endless at full size": ((Category.HANG,), "task/full"),
    "closed descriptors": ((Category.HACK_SUSPECTED,), "process was ended"),
    "clock set back": ((Category.HACK_SUSPECTED,), "sets the clock"),
}
"""What each is called; 100 GB are refused by some kernels at once, and by others when they are touched."""
HEAD = """#include <cstdlib>
#include <time.h>
#include <unistd.h>
#define GLUED(first, second) first##second
static char chunk[1 << 20];
"""
"""Names are glued together, so that the screen of sources does not see them."""


def planted(folder: Path, misbehaviour: str) -> Path:
    """The honest candidate with that before its launch; without any for an empty name."""
    source = folder / f"{misbehaviour.replace(' ', '_') or 'honest'}.cu"
    start = 'extern "C" int stitch_run(const stitch_call* c) {\n'
    assert start in HONEST
    source.write_text(HEAD + HONEST.replace(start, f"{start}  {MISBEHAVIOUR.get(misbehaviour, '')}\n"))
    return source


async def judged(folder: Path, emulator: Emulator) -> dict[str, list[Verdict]]:
    """The verdict on each, and those on the honest candidate after it."""
    (folder / "model.py").write_text(REFERENCE)
    async with Judge(sys.executable, folder) as judge:
        await reference.open_reference(judge, reference.ReferenceOptions(path="model.py"))
        graph = (await reference.graph(judge)).graph
        region = region_of(graph, [node.id for node in graph.nodes])
        bench = Bench(judge, emulator, python=sys.executable, deadline_s=60.0)
        hasty = replace(bench, deadline_s=3.0)
        found = {}
        for name in NAMED:
            chosen = hasty if name.startswith("endless") else bench
            attempts = (planted(folder, name), planted(folder, name), planted(folder, ""))
            found[name] = [await verify_region(chosen, source, region) for source in attempts]
        return found


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory, emulator: Emulator) -> dict[str, list[Verdict]]:
    """With builds that are not refused for what they call: what contains them is looked at."""

    async def nothing(*_: object) -> tuple[Finding, ...]:
        return ()

    with pytest.MonkeyPatch.context() as unread:
        unread.setattr("stitch_tui.tools.emulator.emulator.forbidden_imports", nothing)
        return asyncio.run(judged(tmp_path_factory.mktemp("misbehaviour"), emulator))


@pytest.mark.parametrize("name", NAMED)
def test_misbehaviour_is_contained_and_named_and_the_next_candidate_is_correct(
    name: str, verdicts: dict[str, list[Verdict]]
) -> None:
    categories, words = NAMED[name]
    first, _, honest = verdicts[name]
    assert first.category in categories, first.summary
    assert words in first.summary
    assert honest.correct, honest.summary


def test_a_candidate_that_hung_is_not_run_again(verdicts: dict[str, list[Verdict]]) -> None:
    _, again, _ = verdicts["endless kernel"]
    assert again.category is Category.HANG
    assert "is not run again" in again.summary
    assert again.trials == ()
