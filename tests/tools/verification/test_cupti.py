"""CUPTI's records read through a library that hands them out as CUPTI does, but from no device."""

import shutil
import subprocess
from pathlib import Path

import pytest

from stitch_tui.tools.worker.answers import Busy, watched_of
from stitch_tui.tools.worker.candidate_fault import CandidateFault
from stitch_tui.tools.worker.cupti import Cupti, CuptiError, Span, Watch, busy_us

SOURCE = r"""
#include <stdint.h>
#include <string.h>
#include <stddef.h>
typedef void (*requested)(uint8_t **, size_t *, size_t *);
typedef void (*completed)(void *, uint32_t, uint8_t *, size_t, size_t);
struct record { uint32_t kind, differs[3]; uint64_t start, end; uint8_t more[40]; };
static requested ask;
static completed give;
static size_t at;
static int enabled;
static const struct record RECORDS[] = {
    {2, {0}, 1000, 2000}, {10, {0}, 5000, 9000}, {10, {0}, 3000, 6000}, {99, {0}, 1, 2},
    {1, {0}, 20000, 21000}, {10, {0}, 30000, 0},
};
int cuptiActivityRegisterCallbacks(requested r, completed c) { ask = r; give = c; return 0; }
int cuptiActivityEnable(int kind) { enabled++; return REFUSED; }
int cuptiActivityDisable(int kind) { enabled--; return 0; }
int cuptiGetResultString(int number, const char **text) { *text = "another profiler is at work"; return 0; }
int cuptiActivityFlushAll(uint32_t flag) {
  uint8_t *buffer; size_t size, most;
  if (enabled != 3) return 1;
  ask(&buffer, &size, &most);
  memcpy(buffer, RECORDS, sizeof RECORDS);
  at = 0;
  give(NULL, 0, buffer, size, sizeof RECORDS);
  return 0;
}
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, struct record **found) {
  if (at * sizeof(struct record) >= valid) return 12;
  *found = (struct record *)buffer + at++;
  return 0;
}
"""


def built(folder: Path, refused: int = 0) -> str:
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler, "the tests need a C compiler"
    library, source = folder / "libcupti.so", folder / "cupti.c"
    source.write_text(SOURCE.replace("REFUSED", str(refused)))
    subprocess.run([compiler, "-w", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return str(library)


def test_work_on_the_device_is_read_and_overlaps_count_once(tmp_path: Path) -> None:
    cupti = Cupti(path := built(tmp_path))
    for _ in range(2):
        cupti.start()
        spans = cupti.stop()
        assert spans == [
            Span(1000, 2000, "fill"),
            Span(3000, 6000, "kernel"),
            Span(5000, 9000, "kernel"),
            Span(20000, 21000, "copy"),
        ]
    assert busy_us(spans) == 8.0
    assert watched_of(f"n0 {Watch(path).said(fills=1)}", "n0") == {"busy": Busy(us=7.0, pieces=3)}
    with pytest.raises(CandidateFault, match="forged"):
        watched_of("n1 7.000 3", "n0")


def test_a_cupti_that_is_missing_or_refuses_says_why(tmp_path: Path) -> None:
    with pytest.raises(CuptiError, match="cannot be loaded"):
        Cupti(str(tmp_path / "libcupti.so.13"))
    said = Watch(built(tmp_path, refused=39)).said(fills=1)
    why = "cuptiActivityEnable: another profiler is at work"
    assert watched_of(f"n0 {said}", "n0") == {"unwatched": why}
