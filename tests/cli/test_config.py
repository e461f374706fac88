import os
from pathlib import Path

import pytest

from stitch_tui import trust
from stitch_tui.agents.settings import Settings
from stitch_tui.config import load
from stitch_tui.config_fields import catalogue
from stitch_tui.config_layers import Layer
from stitch_tui.files import user_config_file
from stitch_tui.tools.errors import UsageError


def write_user_file(text: str) -> Path:
    path = user_config_file()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def error_of(project: Path, text: str | bytes, **environ: str) -> str:
    (project / "stitch.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(UsageError) as caught:
        load(project, environ=environ)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(str(project) + "/", "")


def test_without_files_or_variables_every_value_is_the_default(project: Path) -> None:
    effective = load(project, environ={})
    assert effective.settings == Settings()
    assert {value.layer for _, _, value in effective.rows()} == {Layer.DEFAULT}
    assert len(list(effective.rows())) == sum(not s.is_mapping for s in catalogue().values())


def test_later_layers_win_and_each_value_knows_its_origin(project: Path) -> None:
    user = write_user_file("[limits]\niterations = 2\nminutes = 2\ntokens = 2\ncost = 2\n")
    (project / "stitch.toml").write_text("[limits]\n\nminutes = 3\ntokens = 3\ncost = 3\n")
    environ = {"STITCH_LIMITS__TOKENS": "4", "STITCH_LIMITS__COST": "4"}
    effective = load(project, environ=environ, flags={"limits.cost": "5"})
    limits = effective.settings.limits
    assert (limits.iterations, limits.minutes, limits.tokens, limits.cost) == (2, 3, 4, 5)
    told = {name: (v.layer, v.where) for name, _, v in effective.rows()}
    origins = {name: told[f"limits.{name}"] for name in ("iterations", "minutes", "tokens", "cost")}
    assert origins == {
        "iterations": (Layer.USER, f"{user}:2"),
        "minutes": (Layer.PROJECT, f"{project / 'stitch.toml'}:3"),
        "tokens": (Layer.ENVIRONMENT, "STITCH_LIMITS__TOKENS"),
        "cost": (Layer.FLAG, "command line"),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[limits]\niteration = 3\n", ":2: unknown setting limits.iteration (did you mean limits.iterations"),
        ("[limit]\niterations = 3\n", "stitch.toml:1: unknown setting limit (did you mean limits?)"),
        ("\n[device]\nkind = 'gpu'\n", ':3: device.kind = "gpu" is not allowed: it should be \'auto\''),
        ("device = 3\n", "stitch.toml:1: device = 3 is not allowed: it is a table, [device]"),
        ("[limits]\nminutes = -1\n", ":2: limits.minutes = -1 is not allowed: it should be greater than 0"),
        ("[limits]\nminutes = inf\n", "stitch.toml:2: limits.minutes = inf is not allowed"),
        ("[limits]\nminutes = -1\niterations = 0\n", "; and 1 more"),
        ("models.coder = {model = 3}\n", "stitch.toml:1: models.coder.model = 3 is not allowed"),
        ("[limits\n", "stitch.toml:1:8: not TOML"),
        ("[limits]\nminutes = \n", "stitch.toml:2:11: not TOML"),
        ("[limits]\nminutes = [1,\n", "stitch.toml:2:14: not TOML"),
        (b"[limits]\n# \xff\n", "stitch.toml:2: not UTF-8"),
        ("# " + "x" * 1_000_000, "stitch.toml: cannot read the configuration: more than 1,000,000 bytes"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_line_with_its_place(project: Path, text: str | bytes, said: str) -> None:
    assert said in error_of(project, text)


@pytest.mark.parametrize("name", ["a..b", "x.lock", "-x", ".x", "x.", "", "a/b", "ä", "x\\n", "x" * 101])
def test_a_branch_prefix_that_git_refuses_is_refused_with_its_line(project: Path, name: str) -> None:
    shown = name if len(name) < 100 else ""
    said = error_of(project, f'[git]\nbranch_prefix = "{name}"\n')
    assert said.startswith(f'stitch.toml:2: git.branch_prefix = "{shown}')
    assert "is not allowed: it should be letters" in said


def test_an_author_of_another_form_is_refused_with_its_line(project: Path) -> None:
    said = error_of(project, "[git]\nauthor = 'Ada'\n")
    assert said == "stitch.toml:2: git.author = \"Ada\" is not allowed: it should be 'Name <mail>'"
    (project / "stitch.toml").write_text("git = {author = 'Ada <a@x>', branch_prefix = 'my_team.stitch-1'}")
    assert load(project, environ={}).settings.git.branch_prefix == "my_team.stitch-1"


def test_a_file_that_cannot_be_read_is_one_line(project: Path) -> None:
    (project / "stitch.toml").mkdir()
    with pytest.raises(UsageError, match=r"stitch\.toml: cannot read the configuration: Is a directory"):
        load(project, environ={})


@pytest.mark.parametrize("device", ["", "/dev/zero", "/dev/tty"])
def test_a_pipe_or_a_device_is_not_waited_for(project: Path, device: str) -> None:
    path = project / "stitch.toml"
    os.symlink(device, path) if device else os.mkfifo(path)
    with pytest.raises(UsageError, match=r"stitch\.toml: cannot read the configuration"):
        load(project, environ={})


def test_a_variable_that_names_no_setting_is_an_error(project: Path) -> None:
    assert "STITCH_LIMITS__MINUTE: unknown setting" in error_of(project, "", STITCH_LIMITS__MINUTE="3")
    assert "STITCH_LIMITS__MINUTES)" in error_of(project, "", STITCH_LIMITS__MINUTE="3")
    assert "STITCH_MINUTES: unknown setting" in error_of(project, "", STITCH_MINUTES="3")
    for name in ("STITCH_LIMITS", "STITCH_LIMIT"):
        assert "such as STITCH_LIMITS__ITERATIONS)" in error_of(project, "", **{name: "1"})
    with pytest.raises(UsageError, match=r"unknown setting limits \(did you mean limits\.iterations\?\)"):
        load(project, environ={}, flags={"limits": "1"})


def test_a_variable_with_a_wrong_value_is_named(project: Path) -> None:
    said = error_of(project, "", STITCH_LIMITS__MINUTES="soon")
    assert said.startswith('STITCH_LIMITS__MINUTES: limits.minutes = "soon" is not allowed')
    said = error_of(project, "", STITCH_AUTONOMY__DENY="commit,nettwork")
    assert said.endswith("is not allowed: it should be 'write', 'build', 'run', 'commit' or 'network'")


def test_variables_are_read_as_their_setting_needs(project: Path) -> None:
    environ = {
        "STITCH_AUTONOMY__DENY": "network, commit",
        "STITCH_SESSION__WARM_START": "false",
        "STITCH_MODELS__CODER__MODEL": "3",
        "STITCH_MODELS__CODER__HEADERS": '{ "X-Team" = "gpu" }',
        "STITCH_MODELS__CODER__TEMPERATURE": "0.5",
    }
    settings = load(project, environ=environ).settings
    assert settings.autonomy.deny == ("network", "commit")
    assert not settings.session.warm_start
    assert settings.models.coder.model == "3"
    assert settings.models.coder.headers == {"X-Team": "gpu"}
    assert settings.models.coder.temperature == 0.5


def test_the_endpoint_variable_never_turns_a_builtin_role_into_a_model(project: Path) -> None:
    environ = {"OPENAI_BASE_URL": "http://localhost:1/v1", "OPENAI_API_KEY": "k"}
    assert load(project, environ=environ).settings == Settings()


def test_the_endpoint_variable_is_the_default_of_roles_that_are_models(project: Path) -> None:
    write_user_file(
        "[models.coder]\nprovider = 'openai'\n"
        "[models.verifier]\nprovider = 'openai'\nbase_url = 'http://localhost:2/v1'\n"
    )
    effective = load(project, environ={"OPENAI_BASE_URL": "http://localhost:1/v1"})
    assert effective.settings.models.coder.base_url == "http://localhost:1/v1"
    assert effective.settings.models.verifier.base_url == "http://localhost:2/v1"
    assert effective.origins[("models", "coder", "base_url")].where == "OPENAI_BASE_URL"


GUARDED = [
    "reference.python = '/tmp/python'",
    "autonomy.deny = ['network']",
    "models.coder.provider = 'openai'",
    "models.coder.base_url = 'http://evil/v1'",
    "models.verifier.api_key_env = 'AWS_SECRET_ACCESS_KEY'",
    "models.coder.proxy = 'http://evil'",
    "models.coder.ca_bundle = 'evil.pem'",
    "models.coder.headers.X-A = 'b'",
    "models = { coder = { headers = { X-A = 'b' } } }",
]


@pytest.mark.parametrize("text", GUARDED)
def test_an_untrusted_project_file_cannot_set_what_leads_outside(project: Path, text: str) -> None:
    said = error_of(project, text)
    assert said.startswith("stitch.toml:1: ")
    assert "stitch trust" in said


@pytest.mark.parametrize("text", GUARDED)
def test_a_trusted_project_file_may_set_them_until_it_changes(project: Path, text: str) -> None:
    path = project / "stitch.toml"
    path.write_text(text)
    trust.accept(path, path.read_bytes())
    assert load(project, environ={}).settings != Settings()
    assert "stitch trust" in error_of(project, text + "\n")


def test_an_untrusted_project_file_cannot_lift_the_users_deny_rules(project: Path) -> None:
    write_user_file("[autonomy]\ndeny = ['network']\n")
    assert "autonomy.deny" in error_of(project, "[autonomy]\ndeny = []\n")


def test_an_untrusted_project_file_may_repeat_what_holds_already(project: Path) -> None:
    (project / "stitch.toml").write_text("[autonomy]\ndeny = []\n[models.coder]\nbase_url = ''\n")
    assert load(project, environ={}).settings == Settings()


def test_header_values_are_not_shown(project: Path) -> None:
    write_user_file("[models.coder.headers]\nX-Key = 'hunter2'\n")
    rows = {name: shown for name, shown, _ in load(project, environ={}).rows()}
    assert rows["models.coder.headers.X-Key"] == "(set)"
