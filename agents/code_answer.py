"""A Coder's answer as a source that keeps the contract, or the reason why it is refused.  Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from stitch_tui.agents.chat.edits import EditFault, applied, edits
from stitch_tui.agents.chat.fences import Fence, fences, normal, prose, without_thinking
from stitch_tui.agents.chat.request import Answer
from stitch_tui.agents.structured import Rejected
from stitch_tui.tools.cuda_source import CudaSource

CUDA_KINDS = {"cuda", "cu", "c++", "cpp", "cxx", "c", "cc", "cuh", ""}
OUTER_KINDS = {"markdown", "md", "text", "txt"}
LONGEST_SOURCE = 200_000
"""Characters."""
LINE = 80
"""Characters of a strategy's name."""
FORM = ("a name of a few words", "one sentence on ", "yes, or no")
"""How the prompts' example lines go on; weak models repeat them."""

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ELISION = re.compile(
    r"(\.\.\.|…).*\b(rest|unchanged|same|existing|omitted|remaining|before|previous|above|code|here)\b"
    r"|\b(rest|remainder) of (the|this|your)\b.*\b(unchanged|same|here|omitted|\.\.\.|…)"
    r"|\b(code|body|kernel|implementation) (is )?(unchanged|omitted)\b"
    r"|\b(omitted|elided) for brevity\b|^\W*(\.\.\.|…)\W*$",
    re.IGNORECASE | re.DOTALL,
)
_PYTHON = re.compile(r"^\s*(import torch|from torch\b|def \w+\(.*\):|class \w+\(nn\.Module\))", re.MULTILINE)


@dataclass(frozen=True)
class CodeAnswer:
    """What a Coder's answer says: a whole source, and three lines about it."""

    source: str
    strategy: str
    note: str
    followed: bool | None
    """Of the Verifier's recommendation; None: it does not say."""


@dataclass(frozen=True)
class Form:
    """What kind of file a Coder answers with."""

    fence: str
    """What stands behind the ticks of its fence."""
    kinds: frozenset[str]
    """All that models write there."""
    entry: str
    """In the text of every whole file."""
    mark: str
    """In the text of most whole files."""
    openings: tuple[str, ...]
    """How a file begins that stands without a fence."""
    contract: Callable[[str], list[str]]
    """What keeps a text from being a candidate at all; empty when it may be judged."""


class Refused(Rejected):
    """An answer without a usable candidate; `source` is what there is of one, for the record."""

    def __init__(self, reason: str, source: str = "") -> None:
        super().__init__(reason)
        self.source = source


def read_code(answer: Answer, base: str, form: Form | None = None) -> CodeAnswer:
    """The candidate in an answer: a whole file, or `base` with its edits.

    Args:
        form: what file it shall be; None: a ``.cu``.

    Raises:
        Refused: there is none that keeps the contract; says why.
    """
    form = form or CUDA
    text = without_thinking(normal(answer.text))
    blocks = edits(text)
    whole = _whole_file(text, form, is_cut=answer.is_cut)
    if whole is None and blocks:
        source = _edited(base, text, answer)
    elif whole is None:
        raise Refused(_nothing(text, form, is_cut=answer.is_cut))
    else:
        source = whole
    if reasons := form.contract(source):
        raise Refused("; ".join(reasons), source[:LONGEST_SOURCE])
    said = prose(text)
    return CodeAnswer(
        source=source if source.endswith("\n") else f"{source}\n",
        strategy=_said(said, "STRATEGY")[:LINE],
        note=_said(said, "NOTE"),
        followed=_followed(_said(said, "FOLLOWED")),
    )


def contract(source: str) -> list[str]:
    """What keeps a source from being a candidate at all; empty when it may be judged."""
    if len(source) > LONGEST_SOURCE:
        return [f"the file has {len(source):,} characters"]
    if _PYTHON.search(source):
        return ["it is Python: a candidate is one CUDA C++ file"]
    reasons = []
    if elided := next((c[0] for c in _COMMENT.finditer(source) if is_elision(c[0])), None):
        reasons.append(f"something is left out ({elided[:60]!r}): give the whole file, or edits")
    view = CudaSource(source)
    if not any(include.path == "stitch.h" for include in view.includes):
        reasons.append('`#include "stitch.h"` is missing')
    if "stitch_run" not in {function.name for function in view.exports}:
        reasons.append('there is no `extern "C" int stitch_run(const stitch_call* call)`')
    if not view.kernels:
        reasons.append("there is no `__global__` kernel")
    return reasons


CUDA = Form(
    fence="cuda",
    kinds=frozenset(CUDA_KINDS),
    entry="stitch_run",
    mark="__global__",
    openings=("#include", "//", "/*"),
    contract=contract,
)


def is_elision(comment: str) -> bool:
    """Does a comment stand for code that was left out?"""
    return bool(_ELISION.search(comment))


def _whole_file(text: str, form: Form, *, is_cut: bool) -> str | None:
    """The last complete fence with the entry point, else the last complete one, else an open one."""
    found = [fence for fence in _all_fences(text) if fence.kind in form.kinds and not edits(fence.text)]
    closed = [fence.text for fence in found if fence.is_closed]
    with_entry = [source for source in closed if form.entry in source]
    if chosen := (with_entry or [source for source in closed if form.mark in source]):
        return chosen[-1]
    if found and not found[-1].is_closed and not is_cut and _is_balanced(found[-1].text, form):
        return found[-1].text
    if form.entry in text and text.lstrip().startswith(form.openings) and not is_cut:
        return text  # a file and nothing else
    return None


def _all_fences(text: str) -> list[Fence]:
    """Fences, those inside a fenced document too."""
    found: list[Fence] = []
    for fence in fences(text):
        inner = fences(fence.text) if fence.kind in OUTER_KINDS else []
        found += inner or [fence]
    return found


def _is_balanced(source: str, form: Form) -> bool:
    return form.entry in source and source.count("{") == source.count("}") > 0


def _edited(base: str, text: str, answer: Answer) -> str:
    if answer.is_cut:
        raise Refused("the answer was cut in the middle of its edits")
    if not base:
        raise Refused("there is no file yet to edit: give the whole file")
    try:
        return applied(base, edits(text))
    except EditFault as fault:
        raise Refused(f"no edit was applied: {fault}") from fault


def _nothing(text: str, form: Form, *, is_cut: bool) -> str:
    if is_cut:
        return "the answer was cut at the limit of its length: give a shorter file, or edits"
    kinds = {fence.kind for fence in fences(text)}
    if {"python", "py", "python3"} & kinds - form.kinds:
        return "the answer holds Python: a candidate is one CUDA C++ file in a ```cuda fence"
    if "<<<<<<<" in text or "SEARCH" in text:
        return "the edits are not complete blocks of SEARCH, =======, REPLACE"
    if any(fence.is_closed and fence.kind in form.kinds for fence in _all_fences(text)):
        return f"no fence in it holds a file: the whole one has `{form.entry}` and `{form.mark}` in it"
    return f"the answer holds no complete ```{form.fence} fence" if text.strip() else "the answer is empty"


def _said(text: str, name: str) -> str:
    match = re.search(rf"^[\s*#>_-]*{name}[*_\s]*:[*_]*(.*)$", text, re.MULTILINE | re.IGNORECASE)
    line = " ".join(match[1].split()) if match else ""
    line = "".join(c for c in line.strip("*_` ") if c.isprintable())
    return "" if line.startswith(FORM) else line


def _followed(said: str) -> bool | None:
    word = said[:4].lower().strip(" ,.;:")
    return True if word.startswith("yes") else False if word.startswith("no") else None
