"""Secrets are masked in whole texts, in data, in pieces of a stream, and in the environment of workers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stitch_tui.tools import redaction
from stitch_tui.tools.redaction import (
    MASK,
    Redactor,
    hide,
    hide_headers,
    hide_userinfo,
    redacted,
    redacted_data,
)
from stitch_tui.tools.scrub import reference_environment

SECRET = "abcabcabd-secret"


@pytest.fixture(autouse=True)
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_hidden", {})
    hide(SECRET)


@given(st.text("abcd-secrt", max_size=30), st.text("abcd-secrt", max_size=30), st.integers(1, 9))
def test_a_stream_is_masked_as_its_whole_text_is(before: str, after: str, size: int) -> None:
    text = f"{before}{SECRET}{after}"
    redactor = Redactor()
    shown = [redactor.feed(text[at : at + size]) for at in range(0, len(text), size)]
    whole = "".join(shown) + redactor.end()
    assert SECRET not in whole
    assert whole == redacted(text)


def test_data_is_masked_in_keys_and_values() -> None:
    data = {"a": [SECRET, 1, None], f"key {SECRET}": {"b": f"Bearer {SECRET}"}}
    assert redacted_data(data) == {"a": [MASK, 1, None], f"key {MASK}": {"b": f"Bearer {MASK}"}}


def test_a_secret_that_begins_like_another_leaves_nothing_of_the_longer_one() -> None:
    hide(f"{SECRET}-and-its-end")
    assert redacted(f"{SECRET}-and-its-end, {SECRET}") == f"{MASK}, {MASK}"


def test_short_placeholders_are_not_taken_for_secrets() -> None:
    hide("none")
    hide("")
    assert redacted("none of it") == "none of it"


def test_headers_and_proxies_hide_what_is_secret_in_them() -> None:
    hide_headers({"Authorization": "Bearer 12345-67890", "X-Team": "kernel-writers"})
    hide_userinfo("http://me:a-long-password@proxy:3128")
    assert redacted("12345-67890 kernel-writers a-long-password") == f"{MASK} kernel-writers {MASK}"


def test_workers_get_no_variable_that_holds_a_secret_whatever_its_name() -> None:
    inherited = {"PATH": "/bin", "CUDA_HOME": f"x{SECRET}", "HF_HOME": "/cache", "OPENAI_API_KEY": "another"}
    environment = reference_environment(inherited=inherited)
    assert environment.keys() == {"PATH", "HF_HOME", "PYTHONDONTWRITEBYTECODE"}
