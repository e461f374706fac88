"""Whatever the tools print or leave, a profile comes of it with its evidence level, and never an error."""

import asyncio
import json
from pathlib import Path

import pytest

from stitch_tui.tools.bench import Bench, Cuda
from stitch_tui.tools.profiling import candidate, system
from stitch_tui.tools.profiling.profile import Evidence, Profile
from stitch_tui.tools.toolkit import Toolkit
from stitch_tui.tools.verdict import Build, KernelFacts
from tests.tools.profiling.fake_tools import NCU, NSYS, NoJudge, program

TABLE = (Path(__file__).parents[2] / "agents" / "recorded" / "profiles" / "healthy.csv").read_text()
SQL = Path(__file__).parent / "recorded" / "nsys.sql"
MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
GOOD_NSYS = NSYS.format(sql=str(SQL), more="")
BROKEN = "sys.exit(1)"
KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
CUT = """
if "--export" in arguments: pathlib.Path(arguments[arguments.index("--export") + 1] + ".ncu-rep").touch()
"""
TRACE = {
    "traceEvents": [
        {
            "ph": "X",
            "cat": "kernel",
            "name": "scaled(float*)",
            "ts": 10,
            "dur": 90,
            "args": {"grid": [1, 1, 1]},
        },
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1, "dur": 2},
    ]
}


def printing(text: str, *, then: str = "") -> str:
    """An ncu whose report reads as `text`."""
    return f"""
if "--version" in arguments: print("Version 2025.3.1.0")
elif "--import" in arguments: sys.stdout.write({text!r}); sys.stdout.flush(); {then or "pass"}
else: pathlib.Path(arguments[arguments.index("--export") + 1] + ".ncu-rep").write_text("a report")
"""


def exporting(sql: str) -> str:
    """An nsys whose export was changed."""
    return NSYS.format(sql=str(SQL), more=sql)


def profiled(
    folder: Path, *, nsys: str = GOOD_NSYS, ncu: str = NCU, cuobjdump: str = BROKEN, cupti: str = BROKEN
) -> Profile:
    """What is learnt with programs of those bodies in the tools' places."""
    good = NCU.format(table=str(folder / "table.csv"))
    (folder / "table.csv").write_text(TABLE)
    toolkit = Toolkit(
        nsys=program(folder, "nsys", nsys),
        ncu=program(folder, "ncu", good if ncu is NCU else ncu),
        cuobjdump=program(folder, "cuobjdump", cuobjdump),
    )
    cuda = Cuda("NVIDIA H200", "sm_90", toolkit, folder / "builds", profiles=folder / "profiles")
    source = folder / "mine.cu"
    source.write_text("y[i] = 2 * x[i];")
    facts = (KernelFacts(kernel="scaled(float const*)", registers=22),)
    build = Build(
        ok=True, device="cuda", artifact=str(folder / "none.so"), artifact_sha256="a" * 64, kernels=facts
    )
    python = str(program(folder, "python", cupti))
    found = asyncio.run(
        candidate.profiled(Bench(NoJudge(), None, python=python, cuda=cuda), {}, source, build)
    )
    assert found is not None
    assert [code.registers for code in found.code] == [22]
    return found


@pytest.fixture(autouse=True)
def _as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "RUNS", 5)


LINES = TABLE.splitlines()
HALF_A_ROW = "\n".join([*LINES, LINES[-1][: len(LINES[-1]) // 2]])
DRAM = '"86.26"'


@pytest.mark.parametrize(
    "text",
    [
        "==PROF== Connected to process 7\n==WARNING== Nobody asked.\n" + TABLE,
        "NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0\n\n"
        + TABLE
        + "\n==PROF== Done\n",
        HALF_A_ROW,
        TABLE.replace("\n", "\r\n"),
    ],
    ids=["warnings", "banner", "cut off", "other line ends"],
)
def test_a_whole_table_is_read_among_other_lines(tmp_path: Path, text: str) -> None:
    found = profiled(tmp_path, ncu=printing(text))
    assert found.evidence is Evidence.NCU
    assert [kernel.kernel for kernel in found.kernels] == ["scaled"]
    assert found.kernels[0].dram_percent == 86.26


@pytest.mark.parametrize(
    ("ncu", "reason"),
    [
        (printing(""), "printed no table: nothing"),
        (printing(LINES[0][:200]), "no launch in it"),
        (printing(LINES[0][:8]), "printed no table"),
        (printing("\n".join(LINES[:2])), "no launch in it"),
        *(
            (printing(TABLE.replace(DRAM, f'"{numeral}"')), f"another locale's way: {numeral}")
            for numeral in ("86,26", "1.234,5", "1.234.567", "1 234,5", "1'234.5", "12,34.5")
        ),
        (printing(TABLE.replace('"86.26"', '"' + "9" * 200_000 + '"')), "cannot be read: field larger"),
        (printing(LINES[0], then=KILLED), "no launch in it"),
        (printing("\x00\xff\xfe garbage"), "printed no table"),
        (KILLED, "status -9 and no report"),
        (CUT, "printed no table: nothing"),
        ("sys.exit('error while loading shared libraries: libnvperf.so: cannot open')", "libnvperf.so"),
    ],
)  # fmt: skip
def test_garbage_of_ncu_leaves_the_trace(tmp_path: Path, ncu: str, reason: str) -> None:
    found = profiled(tmp_path, ncu=ncu)
    assert (found.evidence, found.kernels, found.report) == (Evidence.NSYS, (), "")
    assert reason in found.why
    assert found.system is not None


def test_a_value_that_cannot_be_costs_that_value_alone(tmp_path: Path) -> None:
    found = profiled(tmp_path, ncu=printing(TABLE.replace('"86.26"', '"1e999"')))
    assert found.evidence is Evidence.NCU
    assert found.kernels[0].dram_percent is None
    assert found.kernels[0].l2_percent is not None


@pytest.mark.parametrize(
    ("nsys", "reason"),
    [
        (exporting("DROP TABLE StringIds"), "no such table"),
        (exporting("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL"), "holds no kernel"),
        (exporting("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL"), "holds no kernel"),
        (exporting("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = -1"), "holds no kernel"),
        (exporting("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = '?', end = '?'"), "cannot be read"),
        (exporting(f"CREATE TABLE {MEMSET} AS SELECT 1 start, 2 end, 9e999 bytes"), "infinity"),
        (exporting("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 9e999"), "to inf ns"),
        ("sys.exit('libdw.so.1: cannot open shared object file')", "it needs libdw.so.1"),
        (KILLED, "left no .nsys-rep"),
    ],
)  # fmt: skip
def test_garbage_of_nsys_leaves_cupti(tmp_path: Path, nsys: str, reason: str) -> None:
    told = f"pathlib.Path(arguments[-1]).write_text({json.dumps(TRACE)!r})"
    found = profiled(tmp_path, nsys=nsys, cupti=told)
    assert (found.evidence, found.system_evidence) == (Evidence.NCU, Evidence.CUPTI)
    assert reason in found.why


STATS = """
elif arguments[0] == "stats": print(tables[arguments[arguments.index("--report") + 1]])
"""


def stating(device: str, calls: str = "SKIPPED: no CUDA API") -> str:
    """An nsys whose export has tables of another version, and that prints these of its own."""
    tables = {"cuda_gpu_trace": device, "cuda_api_trace": calls}
    before, _, rest = exporting("DROP TABLE StringIds").partition("\nelse:")
    return f"tables = {tables!r}{before}{STATS.rstrip()}\nelse:{rest}"


TITLES = "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Bytes (MB),Name"
FILL = "3000,90,2,,,,,,,0.5,[CUDA memset]"
ROW = "1000,900,1,65536,1,1,256,1,1,,scaled(const float *)"


@pytest.mark.parametrize(
    "printed",
    [
        f"Generating SQLite file run.sqlite\nProcessing [run.sqlite] with [trace.py]...\n\n{TITLES}\n{ROW}\n",
        f"{TITLES}\r\n{ROW}\r\n2000,9",
        f"{TITLES}\n{ROW}\n" + ROW[:20],
    ],
    ids=["banner", "cut off, other line ends", "cut off"],
)
def test_an_export_of_another_version_is_followed_by_nsyss_own_tables(tmp_path: Path, printed: str) -> None:
    found = profiled(tmp_path, nsys=stating(printed))
    assert (found.evidence, found.system_evidence) == (Evidence.NCU, Evidence.NSYS)
    assert found.system is not None
    (kernel,) = found.system.kernels
    assert (kernel.kernel, kernel.blocks, kernel.threads) == ("scaled", 65536, 256)


@pytest.mark.parametrize(
    "printed", ["", "SKIPPED", TITLES, f"{TITLES}\n{ROW.replace('900', '9.0,0')}", f"{TITLES}\n1;9;0",
                f"{TITLES}\n{ROW.replace('900', '-1')}", f"{TITLES}\n{ROW.replace('900', 'nan')}",
                f"{TITLES.replace('(ns)', '(h)')}\n{ROW}", "Start,Name\n1,f",
                f"{TITLES.replace('Duration', 'Took')}\n{ROW}", f"{TITLES.replace('Bytes', 'Size')}\n{FILL}",
                f"{TITLES}\n{FILL.replace('0.5', 'inf')}"],
)  # fmt: skip
def test_garbage_of_nsyss_own_tables_leaves_cupti(tmp_path: Path, printed: str) -> None:
    told = f"pathlib.Path(arguments[-1]).write_text({json.dumps(TRACE)!r})"
    found = profiled(tmp_path, nsys=stating(printed), cupti=told)
    assert (found.evidence, found.system_evidence) == (Evidence.NCU, Evidence.CUPTI)
    assert "no such table" in found.why


def test_a_launch_that_was_cut_off_is_left_out_of_the_trace(tmp_path: Path) -> None:
    more = "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, nameId) VALUES (1, 0, 25)"
    assert profiled(tmp_path, nsys=exporting(more)).system == profiled(tmp_path).system


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        ("", "left no trace"),
        ("{", "left no trace"),
        (json.dumps(TRACE)[:80], "left no trace"),
        (json.dumps(TRACE).replace("90", "NaN"), "scaled is from 10000.0 to nan ns"),
        (json.dumps(TRACE).replace(": 90", ": -1"), "is from 10000.0 to 9000.0 ns"),
        (json.dumps(TRACE).replace('"cuda_runtime", "name": "cudaLaunchKernel"', '"gpu_memcpy", "name": "x"'),
         "IndexError"),
        (json.dumps({"traceEvents": []}), "holds no kernel"),
    ],
)  # fmt: skip
def test_garbage_of_cupti_leaves_the_counters(tmp_path: Path, trace: str, reason: str) -> None:
    found = profiled(tmp_path, nsys=BROKEN, cupti=f"pathlib.Path(arguments[-1]).write_text({trace!r})")
    assert (found.evidence, found.system) == (Evidence.NCU, None)
    assert reason in found.why


def test_where_no_tool_works_the_compiler_is_believed(tmp_path: Path) -> None:
    found = profiled(tmp_path, nsys=BROKEN, ncu=BROKEN)
    assert (found.evidence, found.system, found.kernels) == (Evidence.CODE, None, ())
    assert "ncu ended with status 1" in found.why
    assert "tensor-core instructions were not counted" in found.notes[0]


def test_a_folder_that_cannot_be_made_costs_the_profile_alone(tmp_path: Path) -> None:
    (tmp_path / "profiles").write_text("a file in its place")
    found = profiled(tmp_path)
    assert found.evidence is Evidence.CODE
    assert "could not be prepared" in found.why


def test_an_importer_that_lacks_a_library_says_which(tmp_path: Path) -> None:
    collects = "pathlib.Path(arguments[arguments.index('--output') + 1] + '.qdstrm').touch()"
    program(tmp_path, "QdstrmImporter", "sys.exit('libbz2.so.1.0: cannot open shared object file')")
    found = profiled(tmp_path, nsys=collects)
    assert "QdstrmImporter left no .nsys-rep: it needs libbz2.so.1.0" in found.why
    assert found.evidence is Evidence.NCU
