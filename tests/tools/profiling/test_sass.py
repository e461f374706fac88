"""The machine code of a candidate: cuobjdump's listing as it comes, and all the ways in which it does not."""

import asyncio
import sys
from pathlib import Path

import pytest

from stitch_tui.tools.profiling.profile import Evidence, KernelCode, Profile
from stitch_tui.tools.profiling.sass import code_of, tensor_instructions
from stitch_tui.tools.profiling.summary import lines
from stitch_tui.tools.toolkit import Toolkit
from stitch_tui.tools.verdict import Build, KernelFacts

LISTING = """
Fatbin elf code:
================
arch = sm_90

\tcode for sm_90
\t\tFunction : _Z7productILi64EEvPK6__halfS2_Pf
\t.headerflags\t@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                       /* 0x00000a00ff017b82 */
                                                                                /* 0x000ff00000000800 */
        /*0320*/                   HMMA.16816.F32 R12, R24, R12, RZ ;           /* 0x0000000c180c723c */
        /*0330*/              @!P0 HMMA.16816.F32 R12, R24, R12, RZ ;           /* 0x0000000c180c723c */
        /*0340*/                   WARPGROUP.ARRIVE ;                           /* 0x0000000c180c723c */
        /*0350*/                   HGMMA.64x128x16.F32 R24, gdesc[UR4], R24 ;   /* 0x0000000c180c723c */
\t\tFunction : _Z5plainPf
        /*0000*/                   FFMA R1, R2, R3, R4 ;                        /* 0x00000a00ff017b82 */
"""
FACTS = (
    KernelFacts(kernel="void product<(int)64>(__half const*, float*)", registers=96, spill_bytes=128),
    KernelFacts(kernel="plain(float*)", registers=8),
)
DEMANGLER = """#!/bin/sh
while read -r name || [ -n "$name" ]; do
  case $name in
    *product*) echo 'void product<(int)64>(__half const*, float*)' ;;
    *) echo 'plain(float*)' ;;
  esac
done
"""


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def code(folder: Path, body: str | None) -> tuple[tuple[KernelCode, ...], str]:
    """What is learnt with a program of that body in cuobjdump's place, or with none."""
    cuobjdump = (
        None if body is None else program(folder / "cuobjdump", f"#!{sys.executable}\nimport sys\n{body}")
    )
    toolkit = Toolkit(cuobjdump=cuobjdump, demangler=program(folder / "cu++filt", DEMANGLER))
    build = Build(ok=True, device="cuda", artifact=str(folder / "candidate.so"), kernels=FACTS)
    return asyncio.run(code_of(build, toolkit))


def test_tensor_core_instructions_are_counted_by_function_and_mnemonic() -> None:
    assert tensor_instructions(LISTING) == {
        "_Z7productILi64EEvPK6__halfS2_Pf": {"HMMA": 2, "HGMMA": 1},
        "_Z5plainPf": {},
    }


def test_ptxas_and_cuobjdump_speak_of_the_same_kernels(tmp_path: Path) -> None:
    (product, plain), why = code(tmp_path, f"print({LISTING!r})")
    assert why == ""
    assert (product.kernel, product.registers, product.spill_bytes) == ("product<(int)64>", 96, 128)
    assert product.tensor_text == "1 HGMMA, 2 HMMA"
    assert plain.tensor_text == "no tensor-core instructions"
    profile = Profile(evidence=Evidence.CODE, why="", code=(product, plain))
    assert profile.code_of("product<64>") == product  # as another demangler writes it
    assert profile.code_of("cublas_kernel") is None
    assert "product<(int)64>: 96 registers, 128 bytes spilled, 1 HGMMA, 2 HMMA" in lines(profile)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (None, "cuobjdump is not installed"),
        ("sys.exit('cuobjdump fatal   : Could not open input file')", "Could not open input file"),
        ("print('nothing of the sort')", "printed no kernel"),
        (f"print({LISTING!r}); sys.exit('Killed')", "Killed"),
    ],
)
def test_without_a_listing_ptxas_alone_is_believed(tmp_path: Path, body: str | None, reason: str) -> None:
    (product, _), why = code(tmp_path, body)
    assert reason in why
    assert (product.spill_bytes, product.tensor, product.tensor_text) == (128, None, "")
