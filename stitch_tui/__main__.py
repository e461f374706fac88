"""``python -m stitch_tui``: the same as the ``stitch`` command."""

from stitch_tui.cli import main

if __name__ == "__main__":
    main()
