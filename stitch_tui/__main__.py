"""``python -m stitch_tui``: the same as the ``stitch`` command, which imports nothing of the project's."""

import os
import sys

if not sys.flags.safe_path and sys.path[:1] in ([""], [os.getcwd()]):
    del sys.path[0]  # python -m puts it there: a project's own textual.py would be taken for the library

from stitch_tui.cli import main

if __name__ == "__main__":
    main()
