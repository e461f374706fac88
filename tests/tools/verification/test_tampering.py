"""What the runner notices of itself once a candidate has returned, and how the judge is told at once."""

import builtins
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stitch_tui.tools.worker.audit import _hook
from stitch_tui.tools.worker.module_faults import told_at_once
from stitch_tui.tools.worker.tampering import intact

SOURCE = """
LIMIT = 3
def measured(times=(1, 2)): return sum(times)
def other(times=(1, 2)): return 0
class Base:
    def take(self): return LIMIT
class Runner(Base):
    def give(self): return measured()
"""


def runner_module() -> Any:
    module = ModuleType("a_runner")
    exec(compile(SOURCE, "a_runner.py", "exec"), vars(module))
    return module


def by_code(module: Any) -> None:
    module.measured.__code__ = module.other.__code__


def by_defaults(module: Any) -> None:
    module.measured.__defaults__ = ((0, 0),)


@pytest.mark.parametrize(
    ("done", "named"),
    [
        (lambda module: setattr(module, "measured", module.other), "measured"),
        (by_code, "measured"),
        (by_defaults, "measured"),
        (lambda module: setattr(module, "LIMIT", 4), "LIMIT"),
        (lambda module: setattr(module, "sum", max), "sum"),
        (lambda module: setattr(module.Base, "take", module.other), "take"),
        (lambda module: setattr(module.Runner, "take", module.other), "take"),
        (lambda module: setattr(module.Runner, "__getattribute__", module.other), "__getattribute__"),
        (lambda module: setattr(module.runner, "take", module.other), "take"),
        (lambda module: delattr(module, "other"), "other"),
    ],
)
def test_whatever_of_the_runner_is_replaced_is_named(done: Callable[[Any], None], named: str) -> None:
    module = runner_module()
    module.runner = module.Runner()
    changed = intact([module], module.runner)
    assert changed() == ""
    done(module)
    assert changed() == f"the runner's own {named} was replaced"


def test_what_python_puts_there_itself_is_not_held_against_anybody() -> None:
    module = runner_module()
    changed = intact([module], module.Runner())
    with warnings.catch_warnings(record=True):
        exec("import warnings; warnings.warn('odd')", vars(module))
    del vars(module)["warnings"]
    assert "__warningregistry__" in vars(module)
    assert changed() == ""


def test_a_replaced_builtin_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = intact([], object.__new__(type("Runner", (), {})))
    with monkeypatch.context() as patched:
        patched.setattr(builtins, "zip", lambda *_: ())
        said = changed()
    assert said == "builtins.zip was replaced"
    assert changed() == ""


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("work/own/a.txt", False),
        ("work/own", False),
        ("work/own-of-another/a.txt", True),
        ("work/a.txt", True),
        ("work/own/../a.txt", True),
        ("work/own/reference.py", True),
    ],
)
def test_a_folder_that_may_be_read_is_that_folder_and_none_of_a_longer_name(
    tmp_path: Path, path: str, told: bool
) -> None:
    folder, seen, sent = tmp_path.resolve() / "work" / "own", list[str](), list[str]()
    heard = _hook((str(folder),), (str(folder / "reference.py"),), seen, sent.append)
    heard("open", (str(tmp_path / path), "r", 0))
    assert (bool(seen), seen) == (told, sent)


def test_the_judge_is_told_in_the_protocols_own_lines() -> None:
    sent: list[bytes] = []
    tell, is_loaded = told_at_once(sent.append)
    tell('reads "a\nb"')
    is_loaded()
    tell('reads "a\nb"')
    first, second = (line.decode() for line in sent)
    assert first == 'error hack_suspected reads "a b"\n'
    kind, _, told = second.partition(" ")
    assert (kind, second.count("\n")) == ("finding", 1)
    assert json.loads(told)["msg"] == 'reads "a\nb"'
    assert json.loads(told)["severity"] == "error"
