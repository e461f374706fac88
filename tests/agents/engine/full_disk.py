"""A run on a file system that fills up at one moment, and its resumption once there is room again.

``python full_disk.py FOLDER RECORDING EVENT N`` in a mount namespace of its own, where it mounts a small
file system on FOLDER.  Prints as JSON how the first run ended, and fails when the second does not complete.
"""

import json
import subprocess
import sys
from pathlib import Path

from engine_projects import made

from stitch_tui.agents import journal
from stitch_tui.tools.iteration import Outcome

SIZE = "16m"


def main(folder: Path, recording: Path, event: str, number: int) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)], check=True)
    project = made(folder, recording, folder / "cache")
    before = project.user_state()
    code, printed = project.run(fill=[event, number])
    lines = project.journal.read_bytes()
    told = {
        "code": code,
        "last": printed[-1].type,
        "reason": printed[-1].reason,
        "whole": lines.endswith(b"\n"),
    }
    assert project.user_state() == before
    (folder / "filler").unlink()
    code, _ = project.run(resume="")
    assert code == 0
    session, commits = project.session, project.commits
    assert [i.commit for i in session.iterations] == [c.sha for c in commits]
    sequence = [event.seq for event in journal.read(project.journal)]
    assert sequence == list(range(1, len(sequence) + 1))
    told["cancelled"] = sum(i.outcome is Outcome.CANCELLED for i in session.iterations)
    assert project.user_state() == before
    assert not list((project.folder / ".git").rglob("*.lock"))
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
