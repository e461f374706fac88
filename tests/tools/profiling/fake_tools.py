"""Programs in the profilers' places, and a judge that draws nothing."""

import sys
from pathlib import Path
from typing import Any

SCRIPT = "#!{python}\nimport pathlib, sqlite3, sys\narguments = sys.argv[1:]\n{body}\n"
NSYS = """
def made(option): return pathlib.Path(arguments[arguments.index(option) + 1])
if arguments[0] == "profile": made("--output").with_suffix(".nsys-rep").touch()
else:
    database = sqlite3.connect(next(a for a in arguments if a.startswith("--output=")).partition("=")[2])
    database.executescript(pathlib.Path({sql!r}).read_text())
    database.executescript({more!r})
    database.commit()
"""
NCU = """
if "--version" in arguments: print("Version 2025.3.1.0")
elif "--import" in arguments: print(pathlib.Path({table!r}).read_text())
else: pathlib.Path(arguments[arguments.index("--export") + 1] + ".ncu-rep").write_text(" ".join(arguments))
"""


class NoJudge:
    """Draws nothing: the programs here look at no inputs."""

    async def call(self, method: str, params: Any = None, *, timeout: float, on_event: Any = None) -> Any:
        assert method == "specimen"
        assert params["full"]


def program(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(SCRIPT.format(python=sys.executable, body=body))
    path.chmod(0o755)
    return path
