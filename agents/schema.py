"""Events, commands and replies in one JSON Schema.

``python -m stitch_tui.agents.schema`` writes ``docs/events.schema.json`` of a checkout.
"""

import json
from pathlib import Path
from typing import Any, get_args

from pydantic import TypeAdapter

from stitch_tui.agents.commands import Command, Reply
from stitch_tui.agents.events import Event
from stitch_tui.tools.field_docs import sentences


def schema() -> dict[str, Any]:
    """JSON Schema of one line of the journal, the stream or the socket."""
    lines: TypeAdapter[Any] = TypeAdapter(Event | Command | Reply)
    described = lines.json_schema()
    commands = get_args(get_args(Command)[0])
    for line in (*commands, Reply):
        for name, sentence in sentences(line).items():
            described["$defs"][line.__name__]["properties"][name]["description"] = sentence
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}


def main() -> None:
    path = Path("docs/events.schema.json")
    path.write_text(json.dumps(schema(), indent=1, sort_keys=True) + "\n")
    print(path)


if __name__ == "__main__":
    main()
