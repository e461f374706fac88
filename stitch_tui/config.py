"""Settings in layers: defaults < user file < project file < environment < flags.

Every value remembers its layer and place; every error names file:line (or variable, or flag), the
value and what is allowed.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stitch_tui import trust
from stitch_tui.agents.settings import Settings
from stitch_tui.config_fields import Path as Key
from stitch_tui.config_fields import catalogue
from stitch_tui.config_layers import (
    Layer,
    Value,
    Values,
    environment_values,
    file_values,
    flag_values,
    read,
    shown,
)
from stitch_tui.files import project_config_file, user_config_file
from stitch_tui.tools.errors import UsageError

GUARDED = re.compile(
    r"reference\.python|autonomy\.deny"
    r"|models\.\w+\.(provider|base_url|api_key_env|proxy|ca_bundle|headers(\..*)?)"
)
"""What a project file may set only after `stitch trust`: where source, keys and execution go."""


@dataclass(frozen=True)
class Effective:
    """The settings in force and, for each that is not a default, the value's origin."""

    settings: Settings
    origins: Values

    def rows(self) -> Iterator[tuple[str, Any, Value]]:
        """Name, value and origin of every setting; values of request headers are not shown."""
        data = self.settings.model_dump(mode="json")
        for key, setting in catalogue().items():
            value: Any = data
            for name in key:
                value = value[name]
            if setting.is_mapping:
                for name in value:
                    yield ".".join((*key, name)), "(set)", self.origins[(*key, name)]
            else:
                yield ".".join(key), value, self.origins.get(key, Value(value, Layer.DEFAULT, ""))


def load(
    project: Path,
    *,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
    refuse: bool = True,
) -> Effective:
    """The settings of `project`, from all layers; `flags` are by dotted name and win.

    What an untrusted project file must not set is refused; with `refuse` off it is left out, for
    commands that only read history and should work in any clone.

    Raises:
        UsageError: a file cannot be read, is not TOML, or sets what does not exist, is not allowed,
            or needs `stitch trust`.
    """
    values = file_values(user_config_file(), Layer.USER)
    path = project_config_file(project)
    content = read(path)
    from_project = file_values(path, Layer.PROJECT, content)
    if from_project and not trust.is_trusted(path, content):
        guarded = _guarded(from_project, values)
        if guarded and refuse:
            raise _untrusted(*next(iter(guarded.items())))
        from_project = {key: value for key, value in from_project.items() if key not in guarded}
    values |= from_project | environment_values(environ) | flag_values(flags or {})
    values |= _endpoint_defaults(values, environ)
    return Effective(validated(values), values)


def validated(values: Values) -> Settings:
    """The settings that `values` give on top of the defaults.

    Raises:
        UsageError: the first value that is not allowed, with what is.
    """
    data: dict[str, Any] = {}
    for key, value in values.items():
        table = data
        for name in key[:-1]:
            table = table.setdefault(name, {})
        table[key[-1]] = value.value
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        raise _not_allowed(error, values) from error


def _guarded(project: Values, below: Values) -> Values:
    """The project file's values that need trust; repeating what holds already needs none."""
    found: Values = {}
    for key, value in project.items():
        default = getattr(catalogue().get(key), "default", None)
        beneath = below[key].value if key in below else default
        same = value.value == (list(beneath) if isinstance(beneath, tuple) else beneath)
        if GUARDED.fullmatch(".".join(key)) and not same:
            found[key] = value
    return found


def _untrusted(key: Key, value: Value) -> UsageError:
    return UsageError(
        f"{'.'.join(key)} is not taken from a project file that is not trusted",
        where=value.where,
        advice="read the file, then run `stitch trust`",
    )


def _endpoint_defaults(values: Values, environ: Mapping[str, str]) -> Values:
    """OPENAI_BASE_URL for roles that are openai and name no endpoint; no role becomes openai by it."""
    url = environ.get("OPENAI_BASE_URL", "")
    roles = {
        key[1] for key, v in values.items() if key[0::2] == ("models", "provider") and v.value == "openai"
    }
    origin = Value(url, Layer.ENVIRONMENT, "OPENAI_BASE_URL")
    keys = [("models", role, "base_url") for role in sorted(roles)]
    return {key: origin for key in keys if url and not (key in values and values[key].value)}


def _not_allowed(error: ValidationError, values: Values) -> UsageError:
    first, *others = error.errors()
    loc = tuple(str(part) for part in first["loc"])
    key = next((loc[:n] for n in range(len(loc), 0, -1) if loc[:n] in values), loc)
    origin = values[key]
    more = f"; and {len(others)} more" if others else ""
    return UsageError(
        f"{'.'.join(key)} = {shown(origin.value)} is not allowed",
        where=origin.where,
        why=re.sub(r"^(Input should|String should|Value error, it should)", "it should", first["msg"]) + more,
    )
