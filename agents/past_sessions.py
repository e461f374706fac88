"""What a project's past sessions came to, as pages for the index: what worked on which kernel."""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from stitch_tui.tools.atomic_write import replace_file, writing
from stitch_tui.tools.docs.sources import sessions_folder
from stitch_tui.tools.history import Commit, History
from stitch_tui.tools.history.iteration import PROGRAM, Iteration
from stitch_tui.tools.iteration import Kind, Outcome

_TRIED = {Outcome.KEPT, Outcome.SLOWER, Outcome.WRONG, Outcome.ERROR}
_BY_SOMEBODY = {Kind.DRAFT, Kind.REPAIR, Kind.OPTIMISE, Kind.HUMAN}


def write(project: Path, history: History) -> int:
    """Write a page for each session that git knows, and drop the others; how many there are.

    Raises:
        EnvironmentFault: git or the file system refuses.
    """
    folder = sessions_folder() / hashlib.sha256(str(project.resolve()).encode()).hexdigest()[:16]
    pages = {s.name: page(s.name, history.log(s.name)) for s in history.sessions()}
    with writing(folder, "the pages on past sessions cannot be written"):
        folder.mkdir(exist_ok=True)
        (folder / "project").write_text(str(project.resolve()), encoding="utf-8")
        for name, text in pages.items():
            path = folder / f"{name}.md"
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                replace_file(path, text.encode())
        for path in folder.glob("*.md"):
            if path.stem not in pages:
                path.unlink()
    _drop_gone()
    return len(pages)


def page(session: str, commits: Sequence[Commit]) -> str:
    """A session as Markdown: a section for each subtask, what was tried in it and what came of it."""
    tried: dict[str, list[tuple[str, Iteration]]] = {}
    for commit in commits:
        entry = commit.entry
        if entry is None or entry.subtask == PROGRAM:
            continue
        if entry.kind in _BY_SOMEBODY and entry.outcome in _TRIED:
            tried.setdefault(entry.subtask, []).append((commit.sha, entry))
    parts = [f"# Session {session}"]
    for subtask, entries in tried.items():
        name = next((entry.name for _, entry in reversed(entries) if entry.name), subtask)
        parts.append(f"## {name}: what worked in session {session}, {subtask}")
        parts.append("\n".join(_lines(entries)))
    return "\n\n".join(parts) + "\n"


def _lines(entries: Sequence[tuple[str, Iteration]]) -> Iterator[str]:
    """The best first, by its speedup; then what was correct and slower; then what was not."""
    for sha, entry in sorted(entries, key=lambda each: _rank(each[1]), reverse=True):
        verdict = str(entry.verdict).replace("_", " ") if entry.verdict else "no verdict"
        speeds = [
            f"{value:.3g}x of {baseline}"
            for value, baseline in (
                (entry.speedup_best_baseline, entry.best_baseline or "the best baseline"),
                (entry.speedup_eager, "eager"),
            )
            if value is not None
        ]
        facts = [str(entry.outcome), verdict, *speeds, *([entry.device] if entry.device else [])]
        where = f"iteration {entry.iteration}, commit {sha[:12]}"
        yield f"- {entry.title or 'untitled'}: {', '.join(facts)} ({where})"


def _rank(entry: Iteration) -> tuple[bool, float]:
    return entry.outcome is Outcome.KEPT, entry.speedup_best_baseline or entry.speedup_eager or 0.0


def _drop_gone() -> None:
    """Pages of projects whose folder is gone."""
    for folder in sessions_folder().iterdir():
        told = folder / "project"
        if told.is_file() and not Path(told.read_text(encoding="utf-8")).is_dir():
            shutil.rmtree(folder, ignore_errors=True)
