import tomllib
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from stitch_tui.toml_text import places, render, set_value
from stitch_tui.tools.errors import UsageError

FILE = """\
# my settings
[limits]   # keep short
minutes = 30  # half an hour
note = "a # b"  # c
list = [
  1,  # one
  2,
]

[models]
coder = { model = "m", timeout_seconds = 3 }
judge.model = "j"
"""

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
values = st.one_of(scalars, st.lists(scalars, max_size=3))
documents = st.dictionaries(names, st.dictionaries(names, values, max_size=4), max_size=4)  # fmt: skip


def test_places_are_the_lines_that_a_person_sees() -> None:
    found = {".".join(path): line for path, line in places(FILE).items()}
    assert found == {
        "limits": 2,
        "limits.minutes": 3,
        "limits.note": 4,
        "limits.list": 5,
        "models": 10,
        "models.coder": 11,
        "models.coder.model": 11,
        "models.coder.timeout_seconds": 11,
        "models.judge.model": 12,
    }


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        ("limits.minutes", 5, "minutes = 30  # half an hour", "minutes = 5  # half an hour"),
        ("limits.note", "x#y", 'note = "a # b"  # c', 'note = "x#y"  # c'),
        ("limits.list", [], "list = [\n  1,  # one\n  2,\n]", "list = []"),
        ("limits.cost", 1.5, "  2,\n]\n", "  2,\n]\ncost = 1.5\n"),
        ("models.coder.model", "n", 'model = "m", timeout', 'model = "n", timeout'),
        ("models.coder.proxy", "p", "timeout_seconds = 3 }", 'timeout_seconds = 3, proxy = "p" }'),
        ("models.judge.proxy", "p", 'judge.model = "j"\n', 'judge.model = "j"\njudge.proxy = "p"\n'),
        ("git.author", "A <b>", 'judge.model = "j"\n', 'judge.model = "j"\n\n[git]\nauthor = "A <b>"\n'),
    ],
)
def test_an_edit_changes_one_place(path: str, value: Any, old: str, new: str) -> None:
    assert old in FILE
    assert set_value(FILE, tuple(path.split(".")), value) == FILE.replace(old, new)


def test_carriage_returns_stay() -> None:
    text = FILE.replace("\n", "\r\n")
    edited = set_value(text, ("limits", "minutes"), 5)
    assert edited == text.replace("minutes = 30 ", "minutes = 5 ")
    assert set_value(text, ("limits", "cost"), 5).count("\r\n") == text.count("\r\n") + 1


def test_a_layout_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(UsageError, match="by hand"):
        set_value("[[limits]]\nminutes = 3\n", ("limits", "minutes"), 5)
    with pytest.raises(UsageError, match="by hand"):
        set_value("limits = 3\n", ("limits", "minutes"), 5)


@given(documents, names, names, values)
def test_setting_any_key_gives_that_document_with_that_key(
    document: dict[str, Any], table: str, key: str, value: Any
) -> None:
    edited = set_value(tomli_w.dumps(document), (table, key), value)
    assert tomllib.loads(edited) == document | {table: document.get(table, {}) | {key: value}}


@given(documents, names, names, values)
def test_comments_survive_edits(document: dict[str, Any], table: str, key: str, value: Any) -> None:
    text = "# first\n" + tomli_w.dumps(document) + "  # last\n"
    edited = set_value(text, (table, key), value)
    assert edited.startswith("# first\n")
    assert "\n  # last\n" in edited


@given(values)
def test_a_rendered_value_reads_back(value: Any) -> None:
    text = render(value)
    assert "\n" not in text
    assert tomllib.loads(f"v = {text}")["v"] == value
