import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stitch_tui import __version__, cli, trust
from stitch_tui.agents import presence
from stitch_tui.cli import invoke
from stitch_tui.tools.errors import EnvironmentFault, ExitCode

MODEL = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"


def files(project: Path) -> dict[str, bytes]:
    return {str(p.relative_to(project)): p.read_bytes() for p in project.rglob("*") if p.is_file()}


def refused(capsys: pytest.CaptureFixture[str], code: ExitCode, *words: str) -> str:
    """The one line on stderr of a command that fails with `code` and changes nothing here."""
    before = files(Path.cwd())
    assert invoke(words) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("stitch: ")
    assert err.count("\n") == 1
    assert files(Path.cwd()) == before
    return err


@pytest.mark.parametrize(
    ("words", "run"),
    [
        (["--auto", "m.py"], ["run", "m.py"]),
        (["--auto"], ["run"]),
        (["--json", "--auto", "m.py", "--device", "cuda"], ["run", "--json", "m.py", "--device", "cuda"]),
        (["--auto", "--help"], ["run", "--help"]),
        (["--help"], ["--help"]),
        (["log", "--auto"], ["log", "--auto"]),
        ([], []),
    ],
)  # fmt: skip
def test_auto_before_any_subcommand_is_a_run(words: list[str], run: list[str]) -> None:
    assert cli._run_first(words) == run


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    def walk(command: object, words: list[str]) -> None:
        for name, child in getattr(command, "commands", {}).items():
            walk(child, [*words, name])
        if not getattr(command, "commands", None):
            assert invoke([*words, "--help"]) == 0
            assert "Example: stitch " in capsys.readouterr().out, words

    walk(cli._command(), [])


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--version"]) == 0
    assert capsys.readouterr().out == f"stitch {__version__}\n"


def test_stitch_alone_says_what_it_can_do_and_does_not_claim_success(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke([]) == ExitCode.USAGE
    assert "stitch --auto" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lgo"], "No such command 'lgo'. Did you mean 'log'?"),
        (["init"], "Missing argument 'REF'. (`stitch init --help`)"),
        (["ctl", "skip"], "(`stitch ctl skip --help`)"),
        (["--frob"], "No such option: --frob (`stitch --help`)"),
        (["--auto", "--frob"], "No such option: --frob (`stitch --auto --help`)"),
        (["--auto"], "no reference"),
        (["--auto", "none.py"], "none.py: no such file"),
        (["--auto", "none.py:Net"], "none.py: no such file"),
        (["--auto", "--set", "limits.minutes"], "--set limits.minutes: is not KEY=VALUE"),
        (["--auto", "--set", "limits.minute=3"], "did you mean limits.minutes?"),
        (["--auto", "--set", "limits.minutes=0"], "limits.minutes = 0 is not allowed"),
        (["--auto", "--device", "gpu"], 'device.kind = "gpu" is not allowed'),
        (["init", "none.py"], "none.py: no such file"),
        (["init", "m.py:1x"], "'m.py:1x' does not name a reference"),
        (["init", "m.py:Net"], "m.py: no Net"),
        (["init", "broken.py"], "broken.py:1: not Python"),
        (["init", "bare.py:Net"], "bare.py: no get_inputs and no get_init_inputs"),
        (["init", "m.py", "--inputs", "m.py:make"], "m.py: there is no make"),
        (["init", "m.py", "--init", "m.py:make"], "--init needs --inputs too"),
        (["config", "set", "limits.minute", "3"], "did you mean limits.minutes?"),
        (["config", "set", "limits.minutes", "soon"], 'limits.minutes = "soon" is not allowed'),
        (["config", "set", "models.coder.headers.Authorization", "x"], "would put a secret into a file"),
        (["trust"], "no project file to trust"),
    ],
)  # fmt: skip
def test_a_usage_error_is_one_line_and_changes_nothing(
    project: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    (project / "m.py").write_text(MODEL)
    (project / "bare.py").write_text("class Net: ...\n")
    (project / "broken.py").write_text("class Net(\n")
    assert said in refused(capsys, ExitCode.USAGE, *words)


@pytest.mark.parametrize("words", [["config", "show"], ["--auto", "m.py"], ["doctor"]])
def test_a_wrong_project_file_stops_every_command_that_reads_it(
    project: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    (project / "m.py").write_text(MODEL)
    (project / "stitch.toml").write_text("[models.coder]\nbase_url = 'http://localhost/v1'\n")
    said = refused(capsys, ExitCode.USAGE, *words)
    assert "stitch.toml:2: models.coder.base_url" in said
    assert "stitch trust" in said


def test_init_writes_a_project_file_that_loads_and_is_trusted(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "m.py").write_text(MODEL)
    assert invoke(["init", "m.py", "--json"]) == 0
    config = project / "stitch.toml"
    assert json.loads(capsys.readouterr().out) == {"written": [str(config)]}
    assert config.read_text() == '[reference]\npath = "m.py"\n'
    assert trust.is_trusted(config, config.read_bytes())
    assert "is there already" in refused(capsys, ExitCode.USAGE, "init", "m.py")


def test_init_adapts_other_names(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "net.py").write_text(
        "class Net: kind = 1\ndef make_inputs(): return [7]\ndef sizes(): return [3]\n"
    )
    assert invoke(["init", "net.py:Net", "--inputs", "net.py:make_inputs", "--init", "net.py:sizes"]) == 0
    check = "import stitch_reference as r; print(r.Model.kind, r.get_inputs(), r.get_init_inputs())"
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, cwd=project, check=True
    )
    assert done.stdout == "1 [7] [3]\n"
    assert (project / "stitch.toml").read_text() == '[reference]\npath = "stitch_reference.py"\n'


def test_config_set_keeps_comments_and_trust(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = project / "stitch.toml"
    config.write_text("# mine\n[limits]\nminutes = 5  # short\n")
    trust.accept(config, config.read_bytes())
    assert invoke(["config", "set", "limits.minutes", "7.5"]) == 0
    assert invoke(["config", "set", "models.coder.base_url", "http://localhost:1/v1"]) == 0
    assert config.read_text().startswith("# mine\n[limits]\nminutes = 7.5  # short\n")
    capsys.readouterr()
    assert invoke(["config", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["limits.minutes"] == {"value": 7.5, "layer": "project file", "where": f"{config}:3"}
    assert shown["models.coder.base_url"]["value"] == "http://localhost:1/v1"
    assert shown["limits.iterations"] == {"value": 15, "layer": "default", "where": ""}


@pytest.mark.parametrize(
    ("key", "value", "should"),
    [
        ("models.coder.base_url", "127.0.0.1:8080/v1", "a URL with http or https and a host"),
        ("models.coder.base_url", "https:///v1", "a URL with http or https and a host"),
        ("models.embedding.base_url", "http://[::1/v1", "a URL with http or https and a host"),
        ("models.coder.base_url", "http://host:port/v1", "a URL with http or https and a host"),
        ("models.coder.proxy", "proxy.example:3128", "a URL with http or https and a host"),
        ("device.arch", "hopper", "sm_ and the compute capability"),
        ("device.arch", "sm_9.0", "sm_ and the compute capability"),
    ],
)
def test_config_set_refuses_what_no_run_could_use(
    project: Path, capsys: pytest.CaptureFixture[str], key: str, value: str, should: str
) -> None:
    assert invoke(["config", "set", key, value]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert f'{key} = "{value}" is not allowed: it should be {should}' in said
    assert not (project / "stitch.toml").exists()


def test_config_set_does_not_trust_a_file_of_someone_else(project: Path) -> None:
    config = project / "stitch.toml"
    config.write_text("[limits]\nminutes = 5\n")
    assert invoke(["config", "set", "limits.minutes", "7"]) == 0
    assert not trust.is_trusted(config, config.read_bytes())


def test_trust_shows_what_the_file_sets(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "stitch.toml").write_text('[reference]\npython = "python\\u001b[2J"\n')
    assert invoke(["trust"]) == 0
    out = capsys.readouterr().out
    assert "reference.python" in out
    assert "\x1b" not in out
    assert invoke(["config", "path", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["project"]["state"] == "trusted"


def test_debug_adds_the_traceback_wherever_it_stands(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["--auto", "--debug"]) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert "Traceback (most recent call last)" in err
    assert err.splitlines()[-1].startswith("stitch: no reference")


def failing(error: BaseException) -> type:
    class Failing:
        @staticmethod
        def main(**_: object) -> int:
            raise error

    return Failing


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EnvironmentFault("no disk\x1b[2J\nat all"), ExitCode.ENVIRONMENT),
        (KeyboardInterrupt(), ExitCode.INTERRUPT),
        (ZeroDivisionError("1/0"), ExitCode.GOAL_NOT_MET),
    ],
)
def test_whatever_a_command_raises_is_one_line_and_its_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    project: Path,
    error: BaseException,
    code: ExitCode,
) -> None:
    monkeypatch.setattr(cli, "_command", lambda: failing(error))
    line = refused(capsys, code, "log")
    assert "\x1b" not in line
    if isinstance(error, ZeroDivisionError):
        log = line.split("the traceback is in ")[1].split("; please")[0]
        assert "ZeroDivisionError: 1/0" in Path(log).read_text()


def stitch(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[1])} | environ
    argv = [sys.executable, "-m", "stitch_tui", *words]
    return subprocess.run(argv, capture_output=True, text=True, env=env, check=False)


def test_the_command_exits_with_the_code(project: Path) -> None:
    done = stitch("config", "set", "limits.minutes", "soon")
    assert done.returncode == ExitCode.USAGE
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


def test_a_closed_pipe_is_no_crash(project: Path) -> None:
    env = os.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[1])}
    script = f"{sys.executable} -m stitch_tui config show 2>err | true; cat err"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=env, check=False)
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("config show >/dev/full", 3, "stitch: the output cannot be written: No space left on device\n"),
        ("config show >&-", 0, ""),
        ("config set limits.minutes soon 2>&-", 2, ""),
        ("config set limits.minutes soon 2>/dev/full", 2, ""),
    ],
)
def test_output_that_cannot_leave_is_no_fault_of_stitch(
    project: Path, words: str, code: int, said: str
) -> None:
    env = os.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[1])}
    script = f"{sys.executable} -m stitch_tui {words}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


def test_an_engine_whose_session_is_gone_and_a_lock_that_is_none_are_one_line(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    home.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))

    async def while_it_runs() -> None:
        async with presence.claimed(project) as engine:
            engine.announce("gone")
            refused(capsys, ExitCode.ENVIRONMENT, "status")

    asyncio.run(while_it_runs())
    (project / ".stitch").mkdir(exist_ok=True)
    lock = project / ".stitch" / "engine.lock"
    lock.unlink(missing_ok=True)
    lock.symlink_to("elsewhere")
    assert "whether an engine runs" in refused(capsys, ExitCode.ENVIRONMENT, "status")
    lock.unlink()
    lock.mkdir()
    assert "no engine runs" in refused(capsys, ExitCode.USAGE, "attach")


def test_glyphs_do_not_break_a_terminal_without_them(project: Path) -> None:
    done = stitch("doctor", PYTHONIOENCODING="ascii", PATH="")
    assert "Traceback" not in done.stderr
    assert "C++17 compiler" in done.stdout


@pytest.mark.parametrize("name", ["pathlib", "typer", "textual", "pydantic", "agents"])
def test_a_module_of_the_projects_is_not_taken_for_a_library(project: Path, name: str) -> None:
    (project / f"{name}.py").write_text("raise SystemExit('the project was imported')\n")
    command = [sys.executable, "-m", "stitch_tui", "themes"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "stitch-night" in done.stdout


def test_starting_imports_neither_models_nor_git_nor_torch() -> None:
    heavy = "{'openai', 'git', 'torch', 'lancedb', 'transformers', 'textual', 'pydantic_core', 'rich'}"
    code = f"import sys, stitch_tui.cli as c; c.invoke(['--help']); print(sorted({heavy} & set(sys.modules)))"
    env = os.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.fixture
def only_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with git and no compiler."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("git", "env"):
        found = shutil.which(name)
        assert found
        (programs / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(programs))


RUN = ("--auto", "m.py", "--device", "emulator")


def test_a_run_without_a_repository_says_how_to_make_one(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "m.py").write_text(MODEL)
    assert "git init" in refused(capsys, ExitCode.ENVIRONMENT, *RUN)


def test_a_run_without_git_says_so(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "m.py").write_text(MODEL)
    monkeypatch.setenv("PATH", "")
    assert "git is not installed" in refused(capsys, ExitCode.ENVIRONMENT, *RUN)


@pytest.mark.usefixtures("only_git")
def test_a_run_without_a_compiler_says_so_and_changes_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "m.py").write_text(MODEL)
    subprocess.run(["git", "init", "-q"], check=True)
    assert "compiler" in refused(capsys, ExitCode.ENVIRONMENT, *RUN)
    assert subprocess.run(["git", "branch", "-a"], capture_output=True, check=True).stdout == b""


def test_a_role_without_an_endpoint_is_refused_before_anything_starts(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "m.py").write_text(MODEL)
    subprocess.run(["git", "init", "-q"], check=True)
    said = refused(capsys, ExitCode.USAGE, *RUN, "--set", "models.coder.provider=openai")
    assert "models.coder.base_url: no endpoint for this role" in said
    assert not (project / ".stitch").exists()
