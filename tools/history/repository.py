"""Find the git repository of a folder and run git in it without the user's hooks, index or signing."""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools.errors import EnvironmentFault, UsageError

CONFIG = {
    "core.hooksPath": "/dev/null",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.autocrlf": "false",
    "core.quotePath": "false",
    "core.commentChar": "#",  # else "S" would turn every trailer into a comment
    "color.ui": "false",
    "diff.orderFile": "/dev/null",  # git dies where the file named there is missing
    "i18n.commitEncoding": "UTF-8",
    "i18n.logOutputEncoding": "UTF-8",
    "log.follow": "false",
    "log.showRoot": "true",
    "log.showSignature": "false",
    "trailer.separators": ":",
}
"""Overrides for every call of stitch's own: nothing of the user's runs, nothing is converted."""

_OWN = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_LITERAL_PATHSPECS": "1"}

_LEAKS = (
    *("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_PREFIX", "GIT_NAMESPACE"),
    *("GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH"),
    *("GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_CONFIG"),
    *("GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_LITERAL_PATHSPECS"),
    *("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE", "GIT_DIFF_OPTS", "GIT_EXTERNAL_DIFF"),
    *("GIT_INTERNAL_SUPER_PREFIX", "GIT_ATTR_SOURCE"),
)
"""Variables that would point git at another repository, index, date or diff program, or change what a
pathspec means.  GIT_CONFIG_COUNT and its kin stay: containers set safe.directory with them, and CONFIG
outranks them."""

_UNSAFE = re.compile(r"[\x00-\x1f\x7f\ufffd]")
"""\ufffd: not UTF-8."""


class GitFailed(EnvironmentFault):
    """A git command failed; `why` holds git's own message."""


@dataclass(frozen=True)
class Answer:
    """What a git command returned."""

    status: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", errors="replace").rstrip("\n")


@dataclass(frozen=True)
class Repository:
    """A git working tree and the project's folder in it."""

    top: Path
    """Top level of the working tree."""
    folder: str
    """The project's folder relative to `top`, with ``/``; empty when the project is the top level."""
    object_format: str
    """``sha1`` or ``sha256``."""
    program: str
    """Absolute path of git."""

    @classmethod
    def find(cls, path: Path) -> "Repository":
        """The repository that the folder `path` lies in: a subfolder, linked worktree or submodule too.

        Raises:
            UsageError: no such folder, or a name that no commit message can carry.
            EnvironmentFault: no git, no repository, a bare one, or one that git refuses to trust.
        """
        if not path.is_dir():
            raise UsageError("no such folder", where=str(path))
        program = shutil.which("git")
        if program is None:
            raise EnvironmentFault("git is not installed", advice="install git 2.31 or newer")
        query = ["rev-parse", "--is-inside-work-tree", "--show-object-format", "--show-prefix"]
        answer = _execute(program, path, query)
        if answer.status:
            raise _unusable(path, answer)
        inside, object_format, prefix = (*answer.text.split("\n"), "")[:3]
        if inside != "true":
            raise EnvironmentFault(
                "this repository has no working tree here",
                where=str(path),
                why="it is bare, or the folder lies inside .git",
                advice="clone it and work in the clone",
            )
        folder = prefix.rstrip("/")
        if _UNSAFE.search(answer.text.replace("\n", "")) or folder != folder.lstrip():
            raise UsageError(
                "the project folder's name cannot stand in a commit message",
                where=repr(str(path)),
                why="control characters, a leading space, or not UTF-8",
            )
        top = _execute(program, path, ["rev-parse", "--show-toplevel"])
        if top.status:
            raise _unusable(path, top)
        return cls(Path(os.fsdecode(top.out.removesuffix(b"\n"))), folder, object_format, program)

    def ask(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Answer:
        """Run git from the top level and return whatever it answers."""
        return _execute(self.program, self.top, args, stdin=stdin, env=env)

    def git(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """The output of a git command that must succeed.

        Raises:
            GitFailed: it did not; a read-only repository ends here too.
        """
        answer = self.ask(*args, stdin=stdin, env=env)
        if answer.status:
            raise failed(self.top, args[0], answer)
        return answer.out

    def text(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """As `git`, decoded, without the last newline."""
        return self.git(*args, stdin=stdin, env=env).decode("utf-8", errors="replace").rstrip("\n")

    def as_user(self, *args: str, stdin: bytes = b"") -> Answer:
        """Run git as the user would, with their hooks, signing and identity; pathspecs have their magic."""
        return _execute(self.program, self.top, args, stdin=stdin, own=False)


def failed(top: Path, command: str, answer: Answer) -> GitFailed:
    """The error for a git command that failed, with git's words and what to do about them."""
    why = _last_words(answer)
    advice = ""
    if re.search(r"permission denied|read-only file system|insufficient permission", why, re.IGNORECASE):
        advice = "make the repository's .git folder writable, or work in a clone of your own"
    elif "No space left" in why:
        advice = "free some disk space"
    return GitFailed(f"git {command} failed", where=str(top), why=why, advice=advice)


def _unusable(path: Path, answer: Answer) -> EnvironmentFault:
    why = _last_words(answer)
    if "dubious ownership" in why:
        cure = re.search(r"git config --global --add safe\.directory \S[^\n]*", answer.err)
        advice = (
            cure[0] if cure else "become the owner of the repository, or see safe.directory in git config"
        )
        return EnvironmentFault("git does not trust this repository", where=str(path), why=why, advice=advice)
    if "not a git repository" in why:
        return EnvironmentFault(
            "no git repository here",
            where=str(path),
            why="every iteration is stored as a commit",
            advice=f"git init '{path}'",
        )
    return failed(path, "rev-parse", answer)


def _last_words(answer: Answer) -> str:
    """git's message as one line: from its first ``fatal:`` or ``error:`` on, without hints."""
    lines = [line.strip() for line in answer.err.split("\n") if line.strip()]
    start = next((i for i, line in enumerate(lines) if line.startswith(("fatal:", "error:"))), 0)
    return "; ".join(line for line in lines[start:] if not line.startswith("hint:"))[:1000]


def _execute(
    program: str,
    folder: Path,
    args: list[str] | tuple[str, ...],
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    own: bool = True,
) -> Answer:
    # GitPython looks for git while it is imported, and the command line must start without it.
    from git.cmd import Git

    variables = (_OWN if own else {}) | dict(env or {})
    config = [word for key, value in CONFIG.items() for word in ("-c", f"{key}={value}")] if own else []
    # GitPython can add variables to git's environment but not take any away: env(1) does.
    argv = ["env", *(word for name in _LEAKS for word in ("-u", name))]
    argv += [*(f"{key}={value}" for key, value in variables.items()), program, *config, *args]
    with tempfile.TemporaryFile() as source:
        source.write(stdin)
        source.seek(0)
        status, out, err = Git(folder).execute(
            argv,
            istream=source,
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
            start_new_session=True,  # Ctrl+C at the terminal must not break a commit in two
        )
    return Answer(status, out, err)
