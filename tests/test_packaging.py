"""The wheel holds every module and data file, and every dependency is declared and explained."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {"stitch_tui": "stitch_tui", "agents": "stitch_tui/agents", "tools": "stitch_tui/tools", "themes": "stitch_tui/themes"}  # fmt: skip  # noqa: E501
USER_DEPENDENCIES = {
    "textual", "rich", "torch", "openai", "gitpython", "watchfiles", "tree-sitter", "lancedb", "tomli-w",
}  # fmt: skip


def metadata() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def shipped() -> dict[str, Path]:
    """Path in the wheel -> file in the checkout, of everything that lies in the package's folders."""
    return {
        f"{installed}/{path.relative_to(ROOT / folder).as_posix()}": path
        for folder, installed in SOURCES.items()
        for path in sorted((ROOT / folder).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9_.-]", requirement)[0].lower() for requirement in requirements}


def test_every_folder_with_modules_is_a_declared_package() -> None:
    folders = {str(Path(name).parent).replace("/", ".") for name in shipped() if name.endswith(".py")}
    assert set(metadata()["tool"]["setuptools"]["packages"]) == folders


def test_every_package_has_an_init() -> None:
    """Without one an editable install does not find the package."""
    files = shipped()
    assert [
        name for name in files if name.endswith(".py") and f"{Path(name).parent}/__init__.py" not in files
    ] == []


def test_every_data_file_is_declared() -> None:
    setuptools = metadata()["tool"]["setuptools"]
    declared = {
        f"{package.replace('.', '/')}/{file.relative_to(folder).as_posix()}"
        for package, patterns in setuptools["package-data"].items()
        for folder in [ROOT / folder_of(package)]
        for pattern in patterns
        for file in folder.glob(pattern)
    }
    assert {name for name in shipped() if not name.endswith(".py")} - declared == set()


def folder_of(package: str) -> str:
    """The checkout's folder of an installed package."""
    path = package.replace(".", "/")
    best = max((i for i in SOURCES.values() if path == i or path.startswith(f"{i}/")), key=len)
    folder = next(folder for folder, installed in SOURCES.items() if installed == best)
    return folder + path.removeprefix(best)


def test_the_users_dependencies_are_declared() -> None:
    assert names(metadata()["project"]["dependencies"]) >= USER_DEPENDENCIES


def test_every_dependency_is_explained() -> None:
    project = metadata()["project"]
    declared = names(project["dependencies"] + project["optional-dependencies"]["dev"])
    rows = re.findall(r"^\| ([a-z0-9-]+) \|", (ROOT / "docs/dependencies.md").read_text(), re.MULTILINE)
    assert declared == set(rows) - {"package", "---"}


@pytest.mark.slow
def test_the_wheel_holds_everything_and_runs_from_elsewhere(tmp_path: Path) -> None:
    source = tmp_path / "source"  # setuptools leaves build/ beside what it builds
    copy = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(copy, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    build = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(source),
    ]
    subprocess.run(build, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
        archive.extractall(tmp_path / "site")
    assert inside == set(shipped())
    done = subprocess.run(
        [sys.executable, "-P", "-m", "stitch_tui", "--version"],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "site")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("stitch ")
