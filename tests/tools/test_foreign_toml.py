"""TOML of other people's: every fault is one error, and a byte order mark is none."""

import tomllib

import pytest

from stitch_tui.tools import foreign_toml


@pytest.mark.parametrize(
    ("text", "why"),
    [("a = " + "[" * 5000 + "]" * 5000, "nested"), ("a = " + "9" * 5000, "digits"), ("a =", "Invalid value")],
)
def test_what_is_no_toml_is_one_kind_of_error(text: str, why: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match=why):
        foreign_toml.loads(text)


def test_a_byte_order_mark_says_nothing() -> None:
    assert foreign_toml.loads("\ufeffa = 1\r\n") == {"a": 1}
