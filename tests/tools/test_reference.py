"""Naming a reference, and the adapter for models with other names."""

import ast
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stitch_tui.tools.adapter import write_adapter
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.reference import parse_target
from stitch_tui.tools.scrub import reference_environment

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


@given(folder=NAMES, stem=NAMES, name=NAMES)
def test_a_target_is_split_at_its_class(folder: str, stem: str, name: str) -> None:
    assert parse_target(f"{folder}/{stem}.py:{name}") == (f"{folder}/{stem}.py", name)
    assert parse_target(f"{folder}/{stem}.py") == (f"{folder}/{stem}.py", "")
    assert parse_target(f"{folder}.{stem}:{name}") == (f"{folder}.{stem}", name)


@pytest.mark.parametrize("text", ["", "a.py:1x", "a.py:", "a b", "../pkg", ":Model"])
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="does not name a reference"):
        parse_target(text)


MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.line = torch.nn.Linear(width, 2)

    def forward(self, x):
        return self.line(x)

def make_inputs():
    return torch.ones(3, 4)

def sizes():
    return [4]
"""


def test_an_adapter_gives_the_names_that_stitch_looks_for(tmp_path: Path) -> None:
    from stitch_tui.tools.worker.reference import Options, Reference

    folder = tmp_path / "nets"
    folder.mkdir()
    (folder / "small.py").write_text(MODEL)
    target = write_adapter(
        tmp_path, "nets/small.py:Net", "nets/small.py:make_inputs", init="nets.small:sizes"
    )
    reference = Reference.open(Options(tmp_path, target.path, target.name))
    args = reference.draw_inputs(0)
    assert [tuple(x.shape) for x in args] == [(3, 4)]
    assert reference.forward(args).outputs[0].shape == (3, 2)


def test_an_adapter_is_written_twice_but_overwrites_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    for _ in range(2):
        write_adapter(tmp_path, "model.py:Net", "model.py:make_inputs")
    ast.parse((tmp_path / "stitch_reference.py").read_text())
    with pytest.raises(UsageError, match="overwrite"):
        write_adapter(tmp_path, "model.py:Net", "model.py:make_inputs", path="model.py")
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(UsageError, match="overwrite"):
        write_adapter(tmp_path, "model.py:Net", "model.py:make_inputs", path="pipe.py")


@pytest.mark.parametrize(
    ("model", "inputs", "what"),
    [
        ("model.py:Nut", "model.py:make_inputs", "there is no Nut"),
        ("model.py", "model.py:make_inputs", "names no class or function"),
        ("other.py:Net", "model.py:make_inputs", "no such file"),
        ("my-model.py:Net", "model.py:make_inputs", "cannot be imported by name"),
        ("broken.py:Net", "model.py:make_inputs", "not valid Python"),
    ],
)
def test_an_adapter_around_what_is_not_there_is_refused(
    model: str, inputs: str, what: str, tmp_path: Path
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "my-model.py").write_text(MODEL)
    (tmp_path / "broken.py").write_text("class Net(:\n")
    with pytest.raises(UsageError, match=what):
        write_adapter(tmp_path, model, inputs)
    assert not (tmp_path / "stitch_reference.py").exists()


@given(st.sampled_from(["API_KEY", "token", "SECRET", "Password", "CREDENTIALS", "PAT"]))
def test_secrets_are_dropped_even_from_kept_families(word: str) -> None:
    inherited = {f"HF_{word}": "s", f"TORCH_{word}": "s", "HF_HOME": "h", "PATH": "p", "EDITOR": "vi"}
    kept = reference_environment({"DECLARED_TOKEN": "mine"}, inherited=inherited)
    assert kept == {"HF_HOME": "h", "PATH": "p", "PYTHONDONTWRITEBYTECODE": "1", "DECLARED_TOKEN": "mine"}
