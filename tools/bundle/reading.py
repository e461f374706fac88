"""A bundle read back, from a folder or from the files of a commit, and checked for completeness."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from stitch_tui.tools import foreign_toml
from stitch_tui.tools.bundle.contents import ReferenceSource
from stitch_tui.tools.bundle.plan_file import FORMAT
from stitch_tui.tools.errors import UsageError
from stitch_tui.tools.verdict import Verdict

Files = Mapping[str, bytes]
"""Contents by path below ``stitched/``."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BundledKernel(_Data):
    """A subtask of a bundle; `source` is empty when PyTorch runs its nodes."""

    id: str
    title: str
    state: str = ""
    strategy: str = ""
    nodes: tuple[str, ...]
    inputs: tuple[dict[str, Any], ...] = ()
    outputs: tuple[dict[str, Any], ...] = ()
    ints: tuple[int, ...] = ()
    floats: tuple[float, ...] = ()
    options: tuple[str, ...] = ()
    source: str = ""
    verdict: Verdict | None = None

    @property
    def file(self) -> str:
        """Name of the kernel's file, the key of ``STITCH_KERNELS``."""
        return f"{self.id}.cu"


class Bundle(_Data):
    """What a clone needs to build the kernels again and to verify the program."""

    reference: ReferenceSource
    kernels: tuple[BundledKernel, ...]
    model_new: str
    report: str
    verdict: Verdict | None = None
    session: str = ""
    coverage: float = 0.0
    coverage_basis: str = ""


def read_bundle(source: Path | Files) -> Bundle:
    """The bundle in a folder (``stitched/``) or in a mapping of its files.

    Raises:
        UsageError: a file is missing, is not what it should be, or was changed since it was verified.
    """
    files, where = (_load(source), str(source)) if isinstance(source, Path) else (source, "the bundle")
    plan = _plan(files, where)
    verdicts = _verdicts(files, where)
    try:
        facts, program = plan["reference"], plan["program"]
        return Bundle(
            reference=_reference(files, facts, where),
            kernels=tuple(
                _kernel(files, row, verdicts["subtasks"], where) for row in plan.get("subtask", [])
            ),
            model_new=_text(files, "model_new.py", where),
            report=_text(files, "report.md", where),
            verdict=verdicts["program"],
            session=program.get("session", ""),
            coverage=program["coverage"],
            coverage_basis=program["coverage_basis"],
        )
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        reason = f"{error.args[0]} is missing" if isinstance(error, KeyError) else _first_line(error)
        raise _broken("plan.toml or verdict.json", where, reason) from error


def _load(folder: Path) -> dict[str, bytes]:
    """The bundle's files; others in the folder are none of its business."""
    if not (folder / "plan.toml").is_file():
        raise UsageError("no bundle here: plan.toml is missing", where=str(folder))
    names = ["plan.toml", "model_new.py", "reference.py", "verdict.json", "report.md"]
    names += [f"kernels/{path.name}" for path in sorted((folder / "kernels").glob("*"))]
    return {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}


def _plan(files: Files, where: str) -> dict[str, Any]:
    try:
        plan = foreign_toml.loads(_text(files, "plan.toml", where))
    except tomllib.TOMLDecodeError as error:
        raise _broken("plan.toml", where, str(error)) from error
    if (version := plan.get("format")) != FORMAT:
        raise _broken("plan.toml", where, f"format {version!r}, this stitch reads {FORMAT}")
    return plan


def _verdicts(files: Files, where: str) -> dict[str, Any]:
    try:
        verdicts = json.loads(_text(files, "verdict.json", where))
    except json.JSONDecodeError as error:
        raise _broken("verdict.json", where, str(error)) from error
    if not isinstance(verdicts, dict):
        raise _broken("verdict.json", where, "not an object")
    return verdicts


def _reference(files: Files, facts: Mapping[str, Any], where: str) -> ReferenceSource:
    text = _text(files, facts["file"], where)
    _require_unchanged(facts["file"], text, facts["sha256"], where)
    return ReferenceSource(
        text=text, class_name=facts["class"], mode=facts["mode"], origin=facts.get("origin", "")
    )


def _kernel(files: Files, row: Mapping[str, Any], verdicts: Mapping[str, Any], where: str) -> BundledKernel:
    fields = {key: value for key, value in row.items() if key not in ("kernel", "sha256", "verdict")}
    source = ""
    if "kernel" in row:
        source = _text(files, row["kernel"], where)
        _require_unchanged(row["kernel"], source, row["sha256"], where)
    return BundledKernel.model_validate({**fields, "source": source, "verdict": verdicts.get(row["id"])})


def _require_unchanged(name: str, text: str, sha256: str, where: str) -> None:
    if hashlib.sha256(text.encode()).hexdigest() != sha256:
        raise UsageError(
            f"{name} is not the file that was verified",
            where=where,
            why=f"its sha256 differs from the one in plan.toml, {sha256[:12]}",
            advice="restore it from git, or verify the changed file by itself",
        )


def _text(files: Files, name: str, where: str) -> str:
    if name not in files:
        raise UsageError(f"{name} is missing", where=where, advice="restore the bundle from git")
    try:
        return files[name].decode()
    except UnicodeDecodeError as error:
        raise _broken(name, where, "not UTF-8 text") from error


def _broken(name: str, where: str, why: str) -> UsageError:
    return UsageError(f"{name} cannot be read", where=where, why=why, advice="restore the bundle from git")


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
