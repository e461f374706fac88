"""A Coder's answer: whole files and edits are read, everything else is refused with the reason."""

import pytest

from stitch_tui.agents.chat.request import Answer
from stitch_tui.agents.code_answer import Refused, contract, read_code
from stitch_tui.agents.prompting import built_in, names

KERNEL = """\
#include "stitch.h"
__global__ void copy(const float* x, float* y, long n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x];  // one block... so small inputs only
}
extern "C" int stitch_run(const stitch_call* call) {
  copy<<<1, 32, 0, (cudaStream_t)call->stream>>>((float*)call->in[0].data, (float*)call->out[0].data, 1);
  return STITCH_OK;
}
"""
WHOLE = f"```cuda\n{KERNEL}```"
EDIT = "<<<<<<< SEARCH\n  return STITCH_OK;\n=======\n  return 0;\n>>>>>>> REPLACE\n"


def read(text: str, base: str = "", finish: str = "stop") -> str:
    return read_code(Answer(text, finish), base).source


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        WHOLE.replace("\n", "\r\n"),
        f"```cpp\nint main() {{}}\n```\nRather:\n{WHOLE}",
        f"{WHOLE}\nUse it so:\n```cpp\nstitch(x);\n```",
        f'```cuda\n#include "stitch.h"\n```\n{WHOLE}\n```cuda\nunfinished',
        f"<think>```cuda\nint x;\n```</think>{WHOLE}",
        f"Sure.\n</think>\n{WHOLE}",
        f"````markdown\n{WHOLE}\n````",
        f"```cuda\n{KERNEL}",
        KERNEL,
        f"~~~\n{KERNEL}~~~",
    ],
    ids=range(11),
)
def test_the_file_is_found_however_it_is_wrapped(text: str) -> None:
    assert read(text) == KERNEL


BAD = {
    "empty": ("", "empty"),
    "prose": ("I cannot help with that.", "no complete ```cuda fence"),
    "python": ("```python\nimport torch\n```", "Python"),
    "python called cuda": ("```cuda\nimport torch\n__global__\nstitch_run\n```", "Python"),
    "another file": ("```c\nint helper;\n```\n", "has `stitch_run` and `__global__` in it"),
    "the form itself": ("```cuda\nthe whole file\n```\n", "no fence in it holds a file"),
    "elided": (WHOLE.replace("  return STITCH_OK;", "  // ... rest unchanged"), "left out"),
    "elided in a block": (WHOLE.replace("  return", "  /* ... existing code ... */ return"), "left out"),
    "elided by dots": (WHOLE.replace("  return", "  // ...\n  return"), "left out"),
    "unclosed": (f"```cuda\n{KERNEL[:-4]}", "no complete"),
    "no kernel": (WHOLE.replace("__global__", "static"), "no `__global__`"),
    "no header": (WHOLE.replace("stitch.h", "other.h"), "stitch.h"),
    "not exported": (WHOLE.replace('extern "C" ', ""), "stitch_run"),
    "edits of nothing": (EDIT, "no file yet"),
    "half an edit": ("<<<<<<< SEARCH\na\n=======\nb\n", "not complete blocks"),
    "only thoughts": (f"<think>{WHOLE}</think>", "empty"),
    "huge": ("y" * 1_000_000, "no complete"),
    "huge file": (f"```cuda\n{KERNEL}{'// y' * 90_000}\n```", "characters"),
}


@pytest.mark.parametrize(("text", "why"), BAD.values(), ids=BAD)
def test_everything_else_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        read(text)


def test_a_cut_answer_counts_only_where_its_file_is_whole() -> None:
    assert read(f"{WHOLE}\nThis", finish="length") == KERNEL
    with pytest.raises(Refused, match="cut at the limit"):
        read(f"```cuda\n{KERNEL}", finish="length")
    with pytest.raises(Refused, match="cut in the middle"):
        read(EDIT, KERNEL, finish="length")


def test_edits_change_the_base_and_bad_ones_change_nothing() -> None:
    assert read(f"STRATEGY: x\n{EDIT}", KERNEL) == KERNEL.replace("STITCH_OK", "0")
    assert read(f"```diff\n{EDIT}```", KERNEL) == KERNEL.replace("STITCH_OK", "0")
    with pytest.raises(Refused, match="no edit was applied: edit 2 fits no place"):
        read(EDIT + EDIT, KERNEL)


def test_the_lines_about_it_are_read_outside_the_code() -> None:
    text = f"**STRATEGY:** vector loads \x1b[31m\nNOTE: reads four\n- FOLLOWED: No, it would spill\n{WHOLE}"
    answer = read_code(Answer(text, "stop"), "")
    assert (answer.strategy, answer.note, answer.followed) == ("vector loads [31m", "reads four", False)
    bare = read_code(Answer(WHOLE, "stop"), "")
    assert (bare.strategy, bare.note, bare.followed) == ("", "", None)


@pytest.mark.parametrize(
    "comment",
    [
        "// a tile of 1x4x...x4 elements",
        "// the rest of the row",
        "// same as torch",
        "// see above",
        "/* 1, 2, ..., n */",
    ],
)
def test_an_honest_comment_is_no_elision(comment: str) -> None:
    assert contract(f"{comment}\n{KERNEL}") == []


@pytest.mark.parametrize("name", [name for name in names() if name.startswith("coder")])
def test_the_lines_of_the_form_say_nothing_when_a_model_repeats_them(name: str) -> None:
    form = [line for line in built_in(name).splitlines() if line.startswith(("STRATEGY", "NOTE", "FOLLOWED"))]
    assert len(form) >= 2
    answer = read_code(Answer("\n".join([*form, WHOLE]), "stop"), "")
    assert (answer.strategy, answer.note, answer.followed) == ("", "", None)
