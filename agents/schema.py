"""Writes ``docs/events.schema.json`` of a checkout: ``python -m stitch_tui.agents.schema``."""

import json
from pathlib import Path

from stitch_tui.agents.events import schema


def main() -> None:
    path = Path("docs/events.schema.json")
    path.write_text(json.dumps(schema(), indent=1, sort_keys=True) + "\n")
    print(path)


if __name__ == "__main__":
    main()
