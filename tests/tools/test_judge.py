"""The judge as the engine meets it: a real process for each way in which a reference can be wrong."""

import asyncio
import os
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stitch_tui.tools import reference
from stitch_tui.tools.errors import EnvironmentFault, ReferenceFault, StitchError, UsageError
from stitch_tui.tools.judge import Judge, message_of
from stitch_tui.tools.memory import session_members
from stitch_tui.tools.reference import ReferenceOptions, ReferenceSummary, open_reference

HEADER = "import os, sys, time\nimport torch\nimport torch.nn as nn\n"
GOOD = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 2)
    def forward(self, x):
        return self.line(x)
def get_inputs():
    return [torch.randn(3, 4)]
def get_init_inputs():
    return []
"""


def forward(body: str) -> str:
    return GOOD.replace("return self.line(x)", body)


def inputs(body: str) -> str:
    return GOOD.replace("return [torch.randn(3, 4)]", body)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def judge(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """One judge for all references that do not take it down."""
    judge = Judge(sys.executable, tmp_path_factory.mktemp("project with spaces"))
    runner.run(judge.start())
    yield judge
    runner.run(judge.close())


async def opened(judge: Judge, source: str, path: str = "model.py", **options: Any) -> ReferenceSummary:
    (judge.project / path.partition(":")[0]).write_text(HEADER + source)
    return await open_reference(judge, ReferenceOptions(path=path, **options))


def line_of(source: str, text: str) -> str:
    lines = (HEADER + source).splitlines()
    return f"model.py:{next(i for i, line in enumerate(lines, 1) if text in line)}"


MISTAKES = {
    "syntax error": (GOOD + "def broken(:\n", "not valid Python", "def broken"),
    "missing class": (GOOD.replace("Model(nn", "Net(nn"), "no class Model", ""),
    "missing get_inputs": (GOOD.replace("get_inputs", "make"), r"no function get_inputs\(\)", ""),
    "not a module": (GOOD.replace("(nn.Module)", ""), "Model is not an nn.Module class", ""),
    "missing package": ("import no_such_package\n" + GOOD, "raised ModuleNotFoundError", "import no_such"),
    "exit on import": ("sys.exit(3)\n" + GOOD, r"sys.exit\(3\)", "sys.exit"),
    "raises in __init__": (
        GOOD.replace("nn.Linear(4, 2)", "nn.Linear(4, 2) + 1"),
        "constructing Model raised TypeError",
        "nn.Linear",
    ),
    "wrong init arity": (
        GOOD.replace("return []", "return [1, 2]"),
        "constructing Model raised TypeError",
        "class Model",
    ),
    "raises in forward": (
        forward("return self.line(x.t())"),
        "forward raised RuntimeError",
        "self.line(x.t())",
    ),
    "wrong arity": (
        inputs("return [torch.randn(3, 4)] * 2"),
        "forward raised TypeError",
        "def forward",
    ),
    "inputs not a list": (
        inputs("return torch.randn(3, 4)"),
        "returns a strided torch.float32 tensor, not a list",
        "def get_inputs",
    ),
    "inputs raise": (inputs("return [missing]"), r"get_inputs\(\) raised NameError", "missing"),
    "strange input": (inputs("return [object()]"), "holds an object", "def get_inputs"),
    "complex input": (inputs("return [torch.randn(3, 4) * 1j]"), "holds torch.complex64", "def get_inputs"),
    "meta input": (inputs("return [torch.randn(3, 4, device='meta')]"), "meta tensor", "def get_inputs"),
    "returns a dict": (forward("return {'y': x}"), "returns a dict", "def forward"),
    "returns None": (forward("return None"), "returns None", "def forward"),
    "returns nothing": (forward("return ()"), "returns no tensor", "def forward"),
    "returns a number": (forward("return x, 3"), "returns an int", "def forward"),
    "reads stdin": (forward("return input()"), "forward raised EOFError", "input()"),
    "too large": (forward("return torch.empty(2**50)"), "too large for memory", "2**50"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_has_one_located_error_and_the_judge_lives_on(
    mistake: str, judge: Judge, runner: asyncio.Runner
) -> None:
    source, what, line = MISTAKES[mistake]
    with pytest.raises(ReferenceFault, match=what) as caught:
        runner.run(opened(judge, source))
    assert caught.value.where == (line_of(source, line) if line else "model.py")
    assert judge.alive


def test_a_missing_class_is_met_with_the_names_that_are_there(judge: Judge, runner: asyncio.Runner) -> None:
    with pytest.raises(ReferenceFault) as caught:
        runner.run(opened(judge, GOOD.replace("Model(nn", "Net(nn")))
    assert "model.py:Net" in caught.value.advice


def test_files_classes_and_dotted_modules_are_found(judge: Judge, runner: asyncio.Runner) -> None:
    package = judge.project / "nets"
    package.mkdir()
    (package / "parts.py").write_text("WIDTH = 4\n")
    source = GOOD.replace("Model(", "Net(").replace("(4, 2)", "(WIDTH, 2)")
    source = HEADER + "from .parts import WIDTH\n" + source
    (package / "net.py").write_text(source)
    found = runner.run(open_reference(judge, ReferenceOptions(path="nets.net:Net")))
    assert (found.path, found.class_name) == ("nets/net.py", "Net")
    with pytest.raises(ReferenceFault, match="ImportError") as caught:
        runner.run(open_reference(judge, ReferenceOptions(path="nets/net.py:Net")))
    assert "pkg.mod:Class" in caught.value.advice
    with pytest.raises(ReferenceFault, match="no such reference file"):
        runner.run(open_reference(judge, ReferenceOptions(path="nowhere.py")))


def test_a_good_reference_is_summarised(judge: Judge, runner: asyncio.Runner) -> None:
    seen: list[str] = []

    async def story() -> tuple[ReferenceSummary, Any, Any, Any]:
        (judge.project / "good.py").write_text(HEADER + GOOD)
        summary = await open_reference(
            judge, ReferenceOptions(path="good.py", mode="eval", seed=7), lambda event, _: seen.append(event)
        )
        exported = await reference.graph(judge)
        peaks = {"f32": 1e12}
        timed = await reference.measured(judge, exported.graph, budget_s=5, bandwidth=1e9, peak_flops=peaks)
        return summary, exported, await reference.variants(judge), timed

    summary, exported, variants, timed = runner.run(story())
    assert seen == ["stage"] * 3
    assert (summary.seed, summary.parameters, summary.flags["mode"]) == (7, 10, "eval")
    assert [str(item.spec) for item in summary.inputs] == ["f32[3, 4]"]
    assert not summary.notes
    assert exported.opaque is None
    (node,) = timed.nodes
    assert node.time_us > 0
    assert node.bound_us == pytest.approx(4 * (12 + 8 + 2 + 6) / 1e9 * 1e6)
    assert [variant.name for variant in variants.variants][:1] == ["full"]
    assert str(variants.variants[1].inputs[0]) == "f32[1, 4]"


NOTES = {
    "zero": forward("return self.line(x) * 0"),
    "constant": forward("return torch.ones(3, 3)"),
    "below_tolerance": forward("return 1000 + self.line(x) * 5e-4"),
    "independent": forward("return self.line(torch.ones(3, 4)).cumsum(0)"),
    "nonfinite": forward("return self.line(x) / 0"),
    "random": forward("return self.line(x) + torch.rand(3, 2)"),
    "nondeterministic": forward("return self.line(x) + time.perf_counter_ns() % 1000003"),
    "fixed_inputs": inputs("return [torch.arange(12.0).view(3, 4)]"),
    "reference": forward("self.seen = x; return self.line(x)"),
}


@pytest.mark.parametrize("kind", NOTES)
def test_what_weakens_a_verdict_is_a_note_and_no_error(
    kind: str, judge: Judge, runner: asyncio.Runner
) -> None:
    summary = runner.run(opened(judge, NOTES[kind]))
    assert kind in [note.kind for note in summary.notes]


def test_an_output_below_a_peers_tolerance_is_a_note(judge: Judge, runner: asyncio.Runner) -> None:
    (note,) = runner.run(opened(judge, forward("return self.line(x) * 1e-6"))).notes
    assert "KernelBench's tolerance takes zeros for it" in note.text


def test_floats_are_cast_and_integers_are_not(judge: Judge, runner: asyncio.Runner) -> None:
    source = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 2)
    def forward(self, x, rows):
        return self.line(x)[rows], rows
def get_inputs():
    return [torch.randn(3, 4), torch.tensor([2, 0])]
"""
    wide = source.replace("torch.randn(3, 4)", "torch.randn(3, 4, dtype=torch.float64)")
    assert "float64 inputs" in runner.run(opened(judge, wide)).notes[0].text
    summary = runner.run(opened(judge, source, dtype="bf16"))
    assert [str(item.spec) for item in summary.inputs] == ["bf16[3, 4]", "i64[2]"]
    assert [str(spec) for spec in summary.outputs] == ["bf16[2, 2]", "i64[2]"]


def test_an_unknown_device_or_method_is_named(judge: Judge, runner: asyncio.Runner) -> None:
    with pytest.raises(EnvironmentFault, match="no device cuda:99"):
        runner.run(opened(judge, GOOD, device="cuda:99"))
    with pytest.raises(UsageError, match="no method dance"):
        runner.run(judge.call("dance", timeout=10))


def test_a_forked_child_that_comes_back_does_not_answer(judge: Judge, runner: asyncio.Runner) -> None:
    summary = runner.run(opened(judge, forward("os.fork(); return self.line(x)")))
    assert [str(spec) for spec in summary.outputs] == ["f32[3, 2]"]
    assert runner.run(reference.graph(judge)).graph.nodes


def test_fifty_megabytes_of_output_are_drained_and_mostly_dropped(
    judge: Judge, runner: asyncio.Runner
) -> None:
    summary = runner.run(opened(judge, "print(('x' * 99 + '\\n') * 500000)\nprint('the end')\n" + GOOD))
    assert summary.class_name == "Model"
    assert len(judge.log) <= 64 * 1024
    assert judge.log.rstrip().endswith("the end")


async def death_of(folder: Path, source: str, **options: Any) -> tuple[StitchError, Judge]:
    """The error of a reference that takes its judge down; checks that nothing is left of it."""
    memory = options.pop("memory_limit", None)
    async with Judge(sys.executable, folder, memory_limit=memory) as judge:
        with pytest.raises(StitchError) as caught:
            await opened(judge, source, **options)
        with pytest.raises(StitchError) as again:
            await judge.call("graph", timeout=10)
        assert again.value is caught.value
        assert not judge.alive
    assert not session_members(judge.info["pid"])
    return caught.value, judge


def test_a_reference_that_exits_is_named(tmp_path: Path) -> None:
    error, _ = asyncio.run(death_of(tmp_path, forward("print('so long'); os._exit(0)")))
    assert isinstance(error, ReferenceFault)
    assert (
        error.what == "the reference ended the process (exit code 0) during one forward pass of the reference"
    )
    assert error.why == "so long"


MEDDLING = """
def meddle():
    for fd in range(3, 64):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, b"[1]\\n")
"""


def test_a_reference_that_writes_into_the_judges_connection_is_named(tmp_path: Path) -> None:
    source = "import contextlib, stat\n" + MEDDLING + forward("meddle(); return x")
    error, _ = asyncio.run(death_of(tmp_path, source))
    assert isinstance(error, ReferenceFault)
    assert error.what == "the reference wrote into the judge's connection"


@pytest.mark.parametrize("line", [b"", b"\xff", b"3", b"[1]", b"{}", b'{"id": 1}', b"[" * 100_000])
def test_a_line_that_no_judge_writes_is_no_message(line: bytes) -> None:
    assert message_of(line) is None
    assert message_of(b'{"id": 1, "result": null}') == {"id": 1, "result": None}


def test_a_crash_is_named_with_its_line(tmp_path: Path) -> None:
    source = forward("import ctypes; ctypes.string_at(0)")
    error, _ = asyncio.run(death_of(tmp_path, source))
    assert error.what == "the reference crashed (SIGSEGV)"
    assert error.where == line_of(source, "string_at")


def test_a_hang_ends_at_its_limit_and_names_the_line(tmp_path: Path) -> None:
    source = forward("\n        while True:\n            time.sleep(0.01)")
    error, _ = asyncio.run(death_of(tmp_path, source, forward_seconds=1.0))
    assert error.what == "one forward pass of the reference took longer than 1 s"
    assert error.where in (line_of(source, "while True"), line_of(source, "time.sleep"))


@pytest.mark.slow
def test_a_reference_that_outgrows_its_memory_is_ended(tmp_path: Path) -> None:
    source = forward("self.kept = [torch.ones(2**20).clone() for _ in range(100000)]; return x")
    error, _ = asyncio.run(death_of(tmp_path, source, memory_limit=1 << 30))
    assert error.what == "the reference is too large for memory"
    assert "1.0 allowed" in error.why


@pytest.mark.slow
def test_a_cancelled_call_ends_the_judge(tmp_path: Path) -> None:
    async def story() -> Judge:
        async with Judge(sys.executable, tmp_path) as judge:
            running = asyncio.Event()
            source = forward("time.sleep(1000)")
            (tmp_path / "model.py").write_text(HEADER + source)
            options = ReferenceOptions(path="model.py")
            call = asyncio.create_task(open_reference(judge, options, lambda *_: running.set()))
            await running.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert not judge.alive
        return judge

    judge = asyncio.run(story())
    assert not session_members(judge.info["pid"])


@pytest.mark.slow
def test_children_in_their_own_group_do_not_outlive_the_judge(tmp_path: Path) -> None:
    async def story() -> Judge:
        async with Judge(sys.executable, tmp_path) as judge:
            spawn = "import subprocess; subprocess.Popen(['sleep', '1000'], process_group=0)\n"
            await opened(judge, spawn + GOOD)
            assert len(session_members(judge.info["pid"])) >= 2
        return judge

    judge = asyncio.run(story())
    assert all(map(_ends, session_members(judge.info["pid"])))


def _ends(pid: int) -> bool:
    """Killed is not yet gone: wait for that."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    gone, _, _ = select.select([process], [], [], 10)
    os.close(process)
    return bool(gone)


def test_secrets_do_not_reach_the_reference_and_declared_variables_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "GITHUB_PAT", "MY_VARIABLE"):
        monkeypatch.setenv(name, "hidden")
    monkeypatch.setenv("HF_HOME", "/somewhere")

    async def story() -> str:
        async with Judge(sys.executable, tmp_path, environment={"DECLARED": "yes"}) as judge:
            await opened(judge, "print(sorted(os.environ.items()), 'hidden' in os.environ.values())\n" + GOOD)
            return judge.log

    log = asyncio.run(story())
    assert "('HF_HOME', '/somewhere')" in log
    assert "('DECLARED', 'yes')" in log
    assert "True" not in log
    assert not (tmp_path / "__pycache__").exists()


async def start(python: str, project: Path) -> None:
    async with Judge(python, project):
        pass


def test_an_interpreter_that_is_not_there_is_an_environment_fault(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="cannot be started") as caught:
        asyncio.run(start(str(tmp_path / "python"), tmp_path))
    assert caught.value.where == str(tmp_path / "python")


def test_an_interpreter_without_torch_is_an_environment_fault(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(EnvironmentFault, match="torch cannot be imported") as caught:
        asyncio.run(start(str(bare), tmp_path))
    assert "[reference] python" in caught.value.advice


def test_a_program_that_is_no_python_is_an_environment_fault(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="cannot run stitch's worker"):
        asyncio.run(start("/bin/false", tmp_path))


@pytest.mark.slow
def test_a_judge_ends_with_its_engine(tmp_path: Path) -> None:
    """The engine is killed while the reference hangs in forward."""
    (tmp_path / "model.py").write_text(HEADER + forward("print('hanging'); time.sleep(1000)"))
    engine = tmp_path / "engine.py"
    engine.write_text(
        "import asyncio, os, signal, sys\nfrom pathlib import Path\n"
        f"sys.path.insert(0, {str(Path.cwd())!r})\n"
        "from stitch_tui.tools.judge import Judge\n"
        "from stitch_tui.tools.reference import ReferenceOptions, open_reference\n"
        "async def main():\n"
        f"    async with Judge(sys.executable, Path({str(tmp_path)!r})) as judge:\n"
        "        print(judge.info['pid'], flush=True)\n"
        "        call = asyncio.create_task(open_reference(judge, ReferenceOptions(path='model.py')))\n"
        "        while 'hanging' not in judge.log:\n"
        "            await asyncio.sleep(0.05)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )

    async def story() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(engine), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout
        pid = int(await process.stdout.readline())
        descriptor = os.pidfd_open(pid)
        try:
            gone = asyncio.Event()
            asyncio.get_running_loop().add_reader(descriptor, gone.set)
            await asyncio.wait_for(gone.wait(), 60)
            asyncio.get_running_loop().remove_reader(descriptor)
        finally:
            os.close(descriptor)
        assert await process.wait() == -signal.SIGKILL

    asyncio.run(story())
