"""Events, commands and replies in one JSON Schema.

``python -m stitch_tui.agents.schema`` writes ``docs/events.schema.json`` of a checkout.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from stitch_tui.agents.commands import Command, Reply
from stitch_tui.agents.events import Event


def schema() -> dict[str, Any]:
    """JSON Schema of one line of the journal, the stream or the socket."""
    lines: TypeAdapter[Any] = TypeAdapter(Event | Command | Reply)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **lines.json_schema()}


def main() -> None:
    path = Path("docs/events.schema.json")
    path.write_text(json.dumps(schema(), indent=1, sort_keys=True) + "\n")
    print(path)


if __name__ == "__main__":
    main()
