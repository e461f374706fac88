"""Start one worker module: ``python boot.py MODULE ARG...`` runs ``stitch_worker.MODULE`` as main.

Run by path under an interpreter that does not have stitch installed.
"""

import importlib.util
import runpy
import sys
from pathlib import Path


def main() -> None:
    here = Path(__file__).resolve().parent
    sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    spec = importlib.util.spec_from_file_location(
        "stitch_worker", here / "__init__.py", submodule_search_locations=[str(here)]
    )
    if spec is None or spec.loader is None:
        raise SystemExit(f"stitch: {here} is not readable")
    package = importlib.util.module_from_spec(spec)
    sys.modules["stitch_worker"] = package
    spec.loader.exec_module(package)
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    runpy.run_module(f"stitch_worker.{module}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
