"""Files that others put there are read, refused or passed by; nothing is waited for."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from stitch_tui.tools.emulator.sources import read_sources
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.regular_file import read_regular
from stitch_tui.tools.snapshot import take


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


odd = pytest.mark.parametrize("odd", [pipe, device, folder])


def test_what_is_longer_than_it_may_be_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"x" * 11)
    assert read_regular(path, 11) == b"x" * 11
    with pytest.raises(OSError, match="more than 10 bytes"):
        read_regular(path, 10)


@odd
def test_a_candidate_that_is_no_file_is_refused(tmp_path: Path, odd: Callable[[Path], None]) -> None:
    path = tmp_path / "s01.cu"
    odd(path)
    with pytest.raises(UsageError, match=r"s01\.cu: cannot read the source"):
        take(path, [])
    with pytest.raises(OSError, match=r"regular|directory"):
        read_sources(path)


@odd
def test_a_header_that_is_no_file_is_the_compilers_to_report(
    tmp_path: Path, odd: Callable[[Path], None]
) -> None:
    path = tmp_path / "s01.cu"
    path.write_text('#include "odd.h"\n#include "good.h"\n')
    (tmp_path / "good.h").write_text("// good\n")
    odd(tmp_path / "odd.h")
    assert [header.name for header in take(path, []).headers] == ["good.h"]
    assert [file.name for file in read_sources(path).texts] == ["s01.cu", "good.h"]
