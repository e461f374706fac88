"""The single file that KernelBench takes: self-contained, the same weights, the reference never run."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from stitch_tui.tools.bundle import render, single_file
from stitch_tui.tools.bundle.source_text import raw, rename
from stitch_tui.tools.errors import UsageError

REFERENCE = '''
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
    def forward(self, x):
        return self.linear(x)
class Model(nn.Module):
    """The Model of this test."""
    def __init__(self, width: int, scale: float = 1.0):
        super(Model, self).__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.norm, self.scale = nn.BatchNorm1d(width), scale
    def forward(self, x):
        for block in self.blocks:
            x = F.relu(block(x))
        return self.norm(x) * self.scale
def get_inputs():
    return [torch.randn(3, 4)]
def get_init_inputs():
    return [4, 0.5]
'''


def executed(text: bytes) -> dict[str, Any]:
    """The file as KernelBench runs it: exec in an empty namespace, no file behind it."""
    names: dict[str, Any] = {"__name__": "kernelbench"}
    exec(compile(text, "<candidate>", "exec"), names)
    return names


def test_it_needs_no_file_and_starts_with_the_reference_s_weights(case: Any, assert_same: Any) -> None:
    exported = case(REFERENCE)
    names = executed(single_file(render(exported.program())))
    assert "Model" not in names
    torch.manual_seed(7)
    reference = exported.reference.loaded.build(4, 0.5)
    torch.manual_seed(7)
    mine = names["ModelNew"](4, scale=0.5)
    assert_same(mine.state_dict(), reference.state_dict())
    x = torch.randn(3, 4)
    assert_same(mine(x), reference(x))
    assert_same(mine.state_dict(), reference.state_dict())


def test_it_runs_in_a_process_that_has_only_torch(case: Any, tmp_path: Path) -> None:
    exported = case(REFERENCE)
    path = tmp_path / "candidate.py"
    path.write_bytes(single_file(render(exported.program())))
    check = f"exec(open({str(path)!r}).read()); print(ModelNew(4, 0.5)(torch.ones(3, 4)).shape)"
    result = subprocess.run(
        [sys.executable, "-I", "-c", check], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert result.stdout.strip() == "torch.Size([3, 4])", result.stderr


def test_the_reference_s_forward_is_never_called(case: Any) -> None:
    exported = case(REFERENCE)
    names = executed(single_file(render(exported.program())))

    def forbidden(*_: Any) -> None:
        raise AssertionError("the reference ran")

    names["ModelReference"].forward = forbidden
    names["Block"].forward = forbidden
    assert names["ModelNew"](4, 0.5)(torch.ones(3, 4)).shape == (3, 4)


def test_kernels_travel_inside(case: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported = case(REFERENCE)
    source = "// it's \"quoted\" '''three times''' \\ and é\n"
    program = exported.program([exported.kernel("s01", ["mul"], source)])
    names = executed(single_file(render(program)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    facts = names["ModelNew"].stitch_program
    folder = names["stitch_unpack"](facts.files)
    assert (folder / "s01.cu").read_text() == source
    assert "STITCH_ABI 1" in (folder / "stitch.h").read_text()
    assert folder == names["stitch_unpack"](facts.files)
    with pytest.raises(RuntimeError, match="no GPU here"):
        names["ModelNew"](4, 0.5)(torch.ones(3, 4))


def test_a_program_changed_by_hand_has_no_single_file(case: Any) -> None:
    files = render(case(REFERENCE).program())
    changed = files["model_new.py"].replace(b'/ "kernels"', b'/ "mine"')
    with pytest.raises(UsageError, match="not as stitch writes it"):
        single_file({**files, "model_new.py": changed})


def test_future_imports_move_to_the_top(case: Any) -> None:
    exported = case(REFERENCE)
    text = f'"""Mine."""\nfrom __future__ import annotations\n{exported.source.text}'
    source = exported.source.model_copy(update={"text": text})
    program = exported.program().model_copy(update={"reference": source})
    names = executed(single_file(render(program)))
    assert names["ModelReference"].__init__.__annotations__["width"] == "int"


def test_names_that_both_need_are_refused(case: Any) -> None:
    exported = case(REFERENCE.replace("Block", "StitchKernel"))
    with pytest.raises(UsageError, match="the reference defines StitchKernel"):
        single_file(render(exported.program()))


def test_only_the_class_is_renamed() -> None:
    text = 'class {0}(M):\n    net = x.Net\n    def f(self, Net=1): super({0}, self), f(Net=2), "Net", Nets\n'
    assert rename(text.format("Net"), "Net", "New") == text.format("New")


@pytest.mark.parametrize(
    "text",
    ["", "a\nb\n", "'''", "\"\"\" and '''", "ends with '", "ends with \\", "line\r\nline", "\\n \x00 é"],
)
def test_embedded_source_is_unchanged(text: str) -> None:
    assert ast.literal_eval(raw(text)) == text


def test_the_text_is_clean_python(case: Any, tmp_path: Path) -> None:
    exported = case(REFERENCE)
    kernels = [exported.kernel("s01", ["mul"], "// nothing\n")]
    text = single_file(render(exported.program(kernels))).decode()
    assert not re.search(r"[ \t]+$", text, re.MULTILINE)
    path = tmp_path / "candidate.py"
    path.write_text(text)
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select=E4,E7,E9,F,B",
        "--ignore=E402,F811",
    ]
    result = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
