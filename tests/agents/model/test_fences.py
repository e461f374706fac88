"""What counts as an answer: fences, thoughts and JSON, however a model writes them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from stitch_tui.agents.chat.edits import EditFault, applied, edits
from stitch_tui.agents.chat.fences import Fence, fences, prose, without_thinking
from stitch_tui.agents.chat.json_text import objects, parsed
from stitch_tui.agents.chat.request import Answer
from stitch_tui.agents.structured import Rejected, decoded, strict_schema


class Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    count: int


def read(text: str, finish: str = "stop") -> tuple[str, int]:
    data = decoded(Answer(text, finish), Wanted)
    return data.name, data.count


RIGHT = '{"name": "right", "count": 2}'
ANSWERS = {
    "plain": RIGHT,
    "fenced": f"Here it is:\n```json\n{RIGHT}\n```\nDone.",
    "CRLF": f"Here it is:\r\n```json\r\n{RIGHT}\r\n```\r\n",
    "last fence": f'```json\n{{"name": "wrong", "count": 1}}\n```\nNo:\n```json\n{RIGHT}\n```',
    "unclosed last fence": f'```json\n{RIGHT}\n```\nThat is it. Or\n```json\n{{"name": "cut", "cou',
    "unclosed only fence": f"```json\n{RIGHT}",
    "first one is an example": f'I considered {{"x": 1}}; final:\n{RIGHT}',
    "one of several validates": f'{RIGHT}\n{{"other": true}}',
    "thought first": f'<think>maybe {{"name": "thought", "count": 0}}</think>{RIGHT}',
    "thought after a cut-off tag": f'maybe {{"name": "thought", "count": 0}}\n</think>\n{RIGHT}',
    "thought at the end": f'{RIGHT}\n<think>or {{"name": "thought", "count": 0}}',
    "trailing comma": '{"name": "right", "count": 2,}',
    "comments": '{// the name\n"name": "right", /* how many */ "count": 2}',
    "tildes": f"~~~json\n{RIGHT}\n~~~",
    "nested in a longer fence": f"````markdown\n```json\n{RIGHT}\n```\n````",
    "brace in the prose": f"A block begins with {{ and that is that: {RIGHT}",
    "byte order mark": f"\ufeff{RIGHT}",
    "inline ticks": f"Use ```json``` for this:\n```json\n{RIGHT}\n```",
    "indented fence": f"1. the answer\n   ```json\n   {RIGHT}\n   ```",
    "braces in strings": 'x ```json\n{"name": "right", "count": 2}\n``` y {"a": "}{"}',
}


@pytest.mark.parametrize("text", ANSWERS.values(), ids=ANSWERS)
def test_the_answer_is_found_however_it_is_wrapped(text: str) -> None:
    assert read(text) == ("right", 2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON object"),
        ("I cannot do that.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"name": "x"}', "count: Field required"),
        ('{"name": "x", "count": "many"}', "count: Input should be a valid integer"),
        ('{"name": "x", "count": 1, "correct": true}', "correct: Extra inputs"),
        (f"<think>{RIGHT}</think>", "no JSON object"),
        (f"<think>{RIGHT}", "no JSON object"),
        ('{"name": "x", "count": ', "no JSON object"),
    ],
)
def test_what_is_no_answer_is_rejected_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(Rejected, match=why):
        read(text)


def test_an_answer_that_was_cut_is_told_so() -> None:
    with pytest.raises(Rejected, match="cut at the limit"):
        read('{"name": "x"', "length")


WORDS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
CODE = st.text(st.sampled_from("ab`~{}\"'/\\*<>\n \t;"), max_size=80)


@given(st.dictionaries(WORDS, JSON, max_size=4), st.sampled_from([None, 1]))
def test_any_object_is_read_back_from_its_text(data: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    assert parsed(text) == data
    assert list(objects(f"so: {text} .")) == [data]


@given(st.dictionaries(WORDS, JSON, min_size=1, max_size=4))
def test_comments_and_trailing_commas_change_nothing(data: dict[str, Any]) -> None:
    lines = json.dumps(data, ensure_ascii=False, indent=1).split("\n")
    sloppy = "\n".join(f'{line} // {{ " }}' for line in lines)
    body = json.dumps(data, ensure_ascii=False)
    assert parsed(sloppy) == data
    assert parsed(f"/* {{ */{body[:-1]},}}") == data


@given(CODE)
def test_a_longer_fence_holds_any_text(code: str) -> None:
    ticks = "`" * (3 + code.count("`"))
    found = [f for f in fences(f"see\n{ticks}cuda\n{code}\n{ticks}\nend") if f.kind == "cuda"]
    assert found == [Fence("cuda", code.replace("\r", "\n"), is_closed=True)]


@given(st.text(st.sampled_from('`~ \n{}<>/think"a'), max_size=200))
def test_no_text_breaks_the_parsers(text: str) -> None:
    for fence in fences(text):
        assert fence.text in text.replace("\r\n", "\n")
    list(objects(text))
    prose(text)
    without_thinking(text)
    edits(text)


def test_prose_is_what_stands_outside() -> None:
    assert prose("STRATEGY: tiles\n```cuda\nSTRATEGY: no\n```\nend") == "STRATEGY: tiles\nend"


SOURCE = "int a;\n  int b = 1;\nint a2;\n  int b = 1;\nint c;\n"


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def test_edits_apply_exactly_then_but_for_white_space() -> None:
    text = f"change\n{block('int a;', 'float a;')}and\n{block('int   c;', 'int d;')}"
    assert applied(SOURCE, edits(text)) == SOURCE.replace("int a;", "float a;").replace("int c;", "int d;")
    assert applied(SOURCE, edits(block("int a;\n  int b = 1;", ""))) == SOURCE[SOURCE.index("int a2") :]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (block("  int b = 1;", "x"), "fits 2 places .lines 2, 4"),
        (block("int z;", "x"), "fits no place"),
        (block("", "x"), "searches for nothing"),
        (block("int a;", "x") + block("int a;", "y"), "edit 2 fits no place"),
    ],
)
def test_an_edit_that_is_not_clear_is_refused(text: str, why: str) -> None:
    with pytest.raises(EditFault, match=why):
        applied(SOURCE, edits(text))


def test_the_schema_is_strict() -> None:
    class Outer(BaseModel):
        items: list[Wanted] = []
        note: str = ""

    schema = strict_schema(Outer)
    assert schema["required"] == ["items", "note"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Wanted"]["required"] == ["name", "count"]  # type: ignore[index]
    assert "default" not in json.dumps(schema)
