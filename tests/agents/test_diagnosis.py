"""The rules on recorded profiles: kernels built to have one disease each, measured on an H200."""

import asyncio
from pathlib import Path

import pytest

from stitch_tui.agents.builtin.advised import ordered
from stitch_tui.agents.builtin.emit_cublas import NAME
from stitch_tui.agents.builtin.ir import Tune
from stitch_tui.agents.builtin.planner import plan
from stitch_tui.agents.builtin.roles import BuiltinAdviser
from stitch_tui.agents.criteria import CRITERIA
from stitch_tui.agents.diagnosis import Work, advice, diagnose
from stitch_tui.agents.reference_times import at_its_pace
from stitch_tui.agents.roles import AdviceBrief
from stitch_tui.agents.state import Bottleneck, Disease, Iteration
from stitch_tui.tools.graph import region_of
from stitch_tui.tools.iteration import Kind
from stitch_tui.tools.profiling.ncu_csv import launches, profiles
from stitch_tui.tools.profiling.profile import (
    Evidence,
    KernelCode,
    KernelProfile,
    KernelTime,
    Profile,
    SystemProfile,
)
from stitch_tui.tools.verdict import Category
from tests.agents import sessions

RECORDED = Path(__file__).parent / "recorded" / "profiles"
PRODUCT = Work(products=True, tensor_cores=True)
KERNELS = {
    "healthy": (Disease.MEMORY, Bottleneck.MEMORY, "device memory at 86 %", "fewer bytes"),
    "uncoalesced": (Disease.UNCOALESCED, Bottleneck.MEMORY, "12 % of the bytes", "neighbouring addresses"),
    "bank_conflicts": (Disease.BANK_CONFLICTS, Bottleneck.MEMORY, "92%", "pad each row"),
    "low_occupancy": (Disease.LOW_OCCUPANCY, Bottleneck.LATENCY, "by shared memory", "less shared memory"),
    "latency_bound": (Disease.LATENCY, Bottleneck.LATENCY, "97% of their time", "more loads in flight"),
    "spill": (Disease.SPILL, Bottleneck.MEMORY, "588.3 MB", "fewer values alive"),
    "divergent": (Disease.DIVERGENCE, Bottleneck.COMPUTE, "7.7 of 32", "same branch"),
    "no_tensor_cores": (Disease.NO_TENSOR_CORES, Bottleneck.COMPUTE, "used 1 %", "mma.sync"),
    "tail_effect": (Disease.TAIL, Bottleneck.LATENCY, "1.06 waves", "persistent grid"),
}
LAUNCHES = SystemProfile(
    runs=5, wall_us=533, busy_us=52.6, launch_us=432, launches=64, gaps=64, gap_us=467, longest_gap_us=91
)


def recorded(name: str) -> Profile:
    kernels, _ = profiles(launches((RECORDED / f"{name}.csv").read_text()))
    return Profile(evidence=Evidence.NCU, why="", kernels=kernels)


@pytest.mark.parametrize("name", KERNELS)
def test_a_recorded_disease_is_named_with_its_numbers_and_one_change(name: str) -> None:
    disease, bottleneck, evidence, change = KERNELS[name]
    first, *_ = diagnose(recorded(name), PRODUCT if name == "no_tensor_cores" else Work())
    assert (first.disease, first.bottleneck) == (disease, bottleneck)
    assert evidence in first.evidence
    assert change in first.change


@pytest.mark.parametrize(
    ("name", "disease"), [("launch_bound", Disease.LAUNCH_BOUND), ("host_bound", Disease.HOST_BOUND)]
)
def test_a_device_that_waits_comes_before_any_kernel(name: str, disease: Disease) -> None:
    traced = Profile.model_validate_json((RECORDED / f"{name}.json").read_text())
    assert [d.disease for d in diagnose(traced)] == [disease]
    profile = recorded("uncoalesced").model_copy(update={"system": traced.system})
    first, second, *_ = diagnose(profile)
    assert (first.disease, second.disease) == (disease, Disease.UNCOALESCED)


def test_tensor_cores_are_not_recommended_where_the_precision_forbids_them() -> None:
    found = diagnose(recorded("no_tensor_cores"), Work(products=True))
    assert Disease.NO_TENSOR_CORES not in [d.disease for d in found]


def test_poor_accesses_are_the_limit_only_where_they_are_much_of_the_traffic() -> None:
    stores = KernelProfile(
        kernel="f", launches=1, time_us=9, blocks=4000, memory_percent=70, sm_percent=40,
        store_use_percent=25, load_use_percent=100,
    )  # fmt: skip

    def found(**more: float) -> list[Disease]:
        kernel = stores.model_copy(update=more)
        return [d.disease for d in diagnose(Profile(evidence=Evidence.NCU, why="", kernels=(kernel,)))]

    assert found(loaded_sectors=900.0, stored_sectors=100.0)[0] is Disease.MEMORY
    assert found(loaded_sectors=500.0, stored_sectors=500.0)[0] is Disease.UNCOALESCED
    assert found()[0] is Disease.UNCOALESCED
    assert Disease.UNCOALESCED not in found(memory_percent=25.0)


def test_slow_products_belong_on_tensor_cores_unless_device_memory_is_the_limit() -> None:
    waiting = KernelProfile(
        kernel="f", launches=1, time_us=9, blocks=4000, memory_percent=30, sm_percent=37, tensor_percent=0.1
    )
    for dram, disease in ((1.0, Disease.NO_TENSOR_CORES), (85.0, Disease.MEMORY)):
        kernel = waiting.model_copy(update={"dram_percent": dram, "memory_percent": max(30.0, dram)})
        (first, *_) = diagnose(Profile(evidence=Evidence.NCU, why="", kernels=(kernel,)), PRODUCT)
        assert first.disease is disease


def test_few_blocks_and_waiting_warps_are_told_apart() -> None:
    few = KernelProfile(
        kernel="f", launches=1, time_us=9, blocks=16, memory_percent=5, sm_percent=3, multiprocessors=132
    )
    many = few.model_copy(update={"blocks": 4000})
    for kernel, disease in ((few, Disease.SMALL_GRID), (many, Disease.LATENCY)):
        (first, *_) = diagnose(Profile(evidence=Evidence.NCU, why="", kernels=(kernel,)))
        assert first.disease is disease


@pytest.mark.parametrize(
    ("busiest", "disease", "change"),
    [
        ({"memory_percent": 70.0, "l1_percent": 70.0, "l2_percent": 30.0}, Disease.MEMORY, "from registers"),
        ({"memory_percent": 70.0, "l2_percent": 70.0, "l1_percent": 30.0}, Disease.MEMORY, "bigger tiles"),
        ({"memory_percent": 65.0, "dram_percent": 65.0}, Disease.MEMORY, "fewer bytes"),
        ({"memory_percent": 61.0, "sm_percent": 67.0}, Disease.COMPUTE, "fewer instructions"),
    ],
)
def test_the_busiest_part_of_the_device_is_the_limit(
    busiest: dict[str, float], disease: Disease, change: str
) -> None:
    kernel = KernelProfile(kernel="f", launches=1, time_us=9, blocks=4000).model_copy(update=busiest)
    (found,) = diagnose(Profile(evidence=Evidence.NCU, why="", kernels=(kernel,)))
    assert found.disease is disease
    assert change in found.change


def test_bytes_that_move_more_than_once_are_counted_against_what_must_move() -> None:
    must = 2 * 4 * (1 << 26)  # the recorded kernel reads and writes 2^26 floats
    (once, *_) = diagnose(recorded("healthy"), Work(least_bytes=must))
    (often, *_) = diagnose(recorded("healthy"), Work(least_bytes=must / 2))
    assert "times the bytes" not in once.evidence
    assert "it moves 1.9 times the bytes that it must" in often.evidence
    assert "each byte once" in often.change


def traced(kernel: str) -> SystemProfile:
    """A busy device that runs one kernel."""
    longest = KernelTime(kernel=kernel, launches=1, time_us=500)
    return LAUNCHES.model_copy(update={"busy_us": 500.0, "launches": 1, "kernels": (longest,)})


def test_without_counters_the_code_of_the_kernel_that_takes_longest_is_believed() -> None:
    spilling = KernelCode(kernel="product<(int)64>", spill_bytes=256, tensor={})
    tidy = KernelCode(kernel="sum", tensor={})
    known = Profile(evidence=Evidence.NSYS, why="", system=traced("product<64>"), code=(spilling, tidy))
    spill, idle = diagnose(known, PRODUCT)
    assert (spill.disease, idle.disease) == (Disease.SPILL, Disease.NO_TENSOR_CORES)
    assert "256 bytes a thread" in spill.evidence
    assert "no tensor-core instructions" in idle.evidence
    assert diagnose(known.model_copy(update={"system": traced("sum")}), Work()) == ()
    library = known.model_copy(update={"system": traced("sm90_xmma_gemm")})
    assert diagnose(library, PRODUCT) == ()  # a library's kernel, whose code is not the candidate's
    alone = Profile(evidence=Evidence.CODE, why="", code=(spilling,))
    assert [d.disease for d in diagnose(alone, PRODUCT)] == [Disease.SPILL]
    uncounted = spilling.model_copy(update={"tensor": None, "spill_bytes": 8})
    assert diagnose(known.model_copy(update={"code": (uncounted,)}), PRODUCT) == ()


def test_counters_and_code_stand_side_by_side_in_the_evidence() -> None:
    (kernel,) = recorded("spill").kernels
    code = KernelCode(kernel=kernel.kernel, spill_bytes=512)
    (first, *_) = diagnose(recorded("spill").model_copy(update={"code": (code,)}))
    assert first.evidence.endswith("ptxas: 512 bytes spilled a thread")


def test_every_disease_has_a_criterion_with_its_source() -> None:
    assert set(CRITERIA) == set(Disease)
    assert all("ours" in text or "guide" in text for text in CRITERIA.values())


def test_without_evidence_nothing_is_said() -> None:
    nothing = KernelProfile(kernel="f", launches=1, time_us=9, blocks=4000)
    assert diagnose(Profile(evidence=Evidence.NONE, why="no tool")) == ()
    assert diagnose(Profile(evidence=Evidence.NCU, why="", kernels=(nothing,))) == ()
    assert advice(Profile(evidence=Evidence.NONE, why="no tool")) is None


def test_the_built_in_adviser_speaks_of_a_profiled_verdict_alone() -> None:
    def advised(profile: Profile | None) -> Disease | None:
        verdict = sessions.verdict(Category.CORRECT, speedup=1.5).model_copy(update={"profile": profile})
        attempt = Iteration(number=1, subtask="s01", attempt=1, kind=Kind.DRAFT, verdict=verdict)
        graph = sessions.two_layers()
        subtask = sessions.subtask().model_copy(update={"region": region_of(graph, ["a"])})
        said = asyncio.run(BuiltinAdviser().advise(AdviceBrief(graph, subtask, attempt)))
        return said.disease if said else None

    assert advised(None) is None
    assert advised(recorded("spill")) is Disease.SPILL


def test_the_coder_tries_first_what_acts_on_the_disease() -> None:
    tiles = [Tune(f"{m}x{n}", "", {"BLOCK_M": m, "BLOCK_N": n}) for m, n in ((64, 64), (128, 128), (32, 32))]

    def order(disease: Disease | None) -> list[str]:
        return [tune.name for tune in ordered(tiles, disease)]

    assert order(None) == ["64x64", "128x128", "32x32"]
    assert order(Disease.SMALL_GRID) == ["32x32", "64x64", "128x128"]
    assert order(Disease.SPILL) == ["32x32", "64x64", "128x128"]
    assert order(Disease.COMPUTE) == ["128x128", "64x64", "32x32"]
    tiles.append(Tune(NAME, "", {"THREADS": 256, "PACK": 4}))
    assert order(Disease.COMPUTE) == [NAME, "128x128", "64x64", "32x32"]
    assert order(Disease.NO_TENSOR_CORES)[0] == NAME
    assert order(Disease.SMALL_GRID) == ["32x32", "64x64", "128x128", NAME]


def test_rows_in_parts_come_first_where_blocks_are_few() -> None:
    sizes = {"LANES": 256, "ROWS": 1}
    rows = [Tune("whole", "", sizes), Tune("split", "", sizes | {"PARTS": 512})]
    assert [tune.name for tune in ordered(rows, Disease.SMALL_GRID)] == ["split", "whole"]
    assert [tune.name for tune in ordered(rows, Disease.MEMORY)] == ["whole", "split"]


def test_a_waiting_device_makes_every_launch_count_and_changes_the_order_of_the_plan() -> None:
    graph = sessions.two_layers()
    alone = {"a": 50.0, "b": 2.0, "c": 40.0, "d": 2.0, "e": 60.0}
    timed = graph.model_copy(
        update={"nodes": tuple(n.model_copy(update={"time_us": alone[n.id]}) for n in graph.nodes)}
    )
    busy = LAUNCHES.model_copy(update={"busy_us": 500.0})
    waiting = LAUNCHES.model_copy(update={"wall_us": 400.0, "launches": 4})
    assert at_its_pace(timed, busy) == timed
    assert at_its_pace(timed, None) == timed
    paced = at_its_pace(timed, waiting)
    assert {node.time_us for node in paced.nodes} == {100.0}
    orders = [[p.region.nodes for p in plan(graph).proposals] for graph in (timed, paced)]
    assert orders[0] == [("e",), ("a", "b"), ("c", "d")]
    assert orders[1] == [("a", "b"), ("c", "d"), ("e",)]


def test_a_view_costs_nothing_at_any_pace() -> None:
    graph = sessions.two_layers()
    views = graph.model_copy(
        update={"nodes": tuple(n.model_copy(update={"time_us": 0.0}) for n in graph.nodes)}
    )
    assert at_its_pace(views, LAUNCHES) == views
