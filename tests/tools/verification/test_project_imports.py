"""A reference that imports more of its project, and the bundle that holds its text."""

from pathlib import Path
from typing import Any

import pytest

from stitch_tui.tools.worker.checking import check
from stitch_tui.tools.worker.faults import Fault
from stitch_tui.tools.worker.launch import Launch
from stitch_tui.tools.worker.project_imports import with_imports
from stitch_tui.tools.worker.reference import Options, Reference
from stitch_tui.tools.worker.session import Session
from stitch_tui.tools.worker.task import Task

from .linear_target import module_launch

LAYERS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x):
        return torch.relu(self.layer(x))
"""
ADAPTER = """
import torch
from layers_of_the_project import Net as Model

def get_inputs():
    return [torch.rand(4, 5)]
"""
BUNDLE = """
import importlib.util
from pathlib import Path

import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        spec = importlib.util.spec_from_file_location("beside", Path(__file__).with_name("reference.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.layer = module.Model().layer

    def forward(self, x):
        return torch.relu(self.layer(x))
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    project = tmp_path_factory.mktemp("project")
    (project / "layers_of_the_project.py").write_text(LAYERS)
    (project / "adapter.py").write_text(ADAPTER)
    opened = Session()
    opened.task = Task(Reference.open(Options(project=project, path="adapter.py")))
    return opened


def bundle(folder: Path, reference: str) -> Launch:
    """The launch of a bundle with this text as its reference."""
    (folder / "model_new.py").write_text(BUNDLE)
    (folder / "reference.py").write_text(reference)
    return Launch.of(module_launch(folder / "model_new.py"))


def test_a_bundle_of_a_reference_that_imports_its_project_is_judged(session: Session, tmp_path: Path) -> None:
    runner = module_launch(Path(bundle(tmp_path, ADAPTER).load))
    trials = {"small": [], "distributions": False}
    params = {"target": {"kind": "program"}, "runner": runner, "trials": trials}
    report = check(session, params, lambda *_: None)
    assert report["category"] == "correct", report["findings"]


def test_only_a_bundle_of_this_very_reference_may_import_from_the_project(
    session: Session, tmp_path: Path
) -> None:
    reference = session.task.reference
    mine = with_imports(bundle(tmp_path, ADAPTER), reference)
    assert mine.imports == (str(reference.options.project),)
    other = bundle(tmp_path, ADAPTER + "# changed\n")
    assert with_imports(other, reference) == other
    (tmp_path / "reference.py").unlink()
    assert with_imports(other, reference) == other, "no bundle"
    kernel = Launch(("kernel",))
    assert with_imports(kernel, reference) == kernel, "linked in: nothing is loaded"


def test_a_bundle_of_a_reference_in_one_file_gets_nothing_of_the_project(tmp_path: Path) -> None:
    text = LAYERS.replace("Net", "Model") + "\ndef get_inputs():\n    return [torch.rand(4, 5)]\n"
    (tmp_path / "alone.py").write_text(text)
    alone = Reference.open(Options(project=tmp_path, path="alone.py"))
    launch = bundle(tmp_path, text)
    assert with_imports(launch, alone) == launch


NEEDY = """
import os
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, int(os.environ["WIDTH_OF_THIS_PROJECT"]))

    def forward(self, x):
        return torch.relu(self.layer(x))

def get_inputs():
    return [torch.rand(4, 5)]
"""


@pytest.mark.slow
def test_a_reference_that_cannot_be_constructed_again_is_blamed_and_not_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIDTH_OF_THIS_PROJECT", "3")
    (tmp_path / "needy.py").write_text(NEEDY)
    opened = Session()
    opened.task = Task(Reference.open(Options(project=tmp_path, path="needy.py")))
    params = {"target": {"kind": "program"}, "trials": {"small": [], "distributions": False}}

    def judged(text: str) -> dict[str, Any]:
        runner = module_launch(Path(bundle(tmp_path, text).load))
        return check(opened, params | {"runner": runner}, lambda *_: None)

    with pytest.raises(Fault, match="cannot be constructed a second time") as caught:
        judged(NEEDY)
    assert (caught.value.kind, caught.value.where) == ("reference", "needy.py")
    assert caught.value.why == "KeyError: 'WIDTH_OF_THIS_PROJECT' (line 9 of reference.py)"
    other = judged(NEEDY + "# changed\n")
    assert other["category"] == "launch_error", "a text of the candidate's own is its own fault"
    assert "KeyError" in other["findings"][0]["message"]
