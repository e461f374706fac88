"""Writes ``stitch.toml.example`` of a checkout: ``python -m stitch_tui.config_example``.

It is generated from the settings' classes, and a test compares it with them.
"""

from pathlib import Path

from stitch_tui.config_fields import Path as Key
from stitch_tui.config_fields import Setting, catalogue
from stitch_tui.toml_text import render, render_key

HEAD = """\
# Every setting of stitch with its built-in value.  Put the ones you change into stitch.toml in your
# project (`stitch init` starts one) or into stitch.toml in the user's folder (`stitch config path`).
# Later wins: built-in, user's file, project's file, environment (STITCH_LIMITS__MINUTES=30), flags
# (--set limits.minutes=30).  Keys and passwords never stand in these files.
#
# In a project's file these are refused before `stitch trust`: reference.python, autonomy.deny, and
# provider, base_url, api_key_env, proxy, ca_bundle and headers of models.
"""


def example() -> str:
    """The text of ``stitch.toml.example``; settings without a value are comments."""
    parts, table = [HEAD], Key()
    for setting in catalogue().values():
        if setting.path[:-1] != table:
            table = setting.path[:-1]
            parts.append(f"\n[{render_key(table)}]\n")
        parts.append(_entry(setting))
    return "".join(parts)


def _entry(setting: Setting) -> str:
    key = render_key(setting.path[-1:])
    comment = f"# {setting.text}\n" if setting.text else ""
    if setting.default is None:
        return f"{comment}# {key} = 0.2\n"
    return f"{comment}{key} = {render(setting.default)}\n"


def main() -> None:
    path = Path("stitch.toml.example")
    path.write_text(example(), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
