"""What a Coder may answer as a host program: it orders and copies; what it computes itself is refused."""

import re

import pytest
from host_programs import graphed
from sessions import two_layers

from stitch_tui.agents.chat.request import Answer
from stitch_tui.agents.code_answer import Refused, read_code
from stitch_tui.agents.host.contract import contract, form_of
from stitch_tui.tools.bundle import Kernel, Program, ReferenceSource, host_text
from stitch_tui.tools.graph import region_of

GRAPH = two_layers()
PROGRAM = Program(
    graph=GRAPH,
    kernels=tuple(
        Kernel(id=id, title="layer", region=region_of(GRAPH, nodes), source="// a kernel")
        for id, nodes in (("s01", ["a", "b"]), ("s02", ["c", "d"]))
    ),
    reference=ReferenceSource(text="class Model: ..."),
)
OWN = host_text(PROGRAM)
"""Two kernels, and a sum that PyTorch computes."""
FIRST = '(b,) = kernel("s01", x, w["w1"])'


def changed(old: str, new: str) -> str:
    assert OWN.count(old) == 1, OWN
    return OWN.replace(old, new)


def test_the_program_that_stitch_writes_keeps_the_contract() -> None:
    assert contract(OWN, OWN) == []


@pytest.mark.parametrize(
    "text",
    [
        re.sub(r"offset=\d+", "offset=4096", OWN).replace("arena_bytes=", "arena_bytes=8192 + "),
        changed(
            FIRST, f"side = torch.cuda.Stream()\n        with torch.cuda.stream(side):\n            {FIRST}"
        ),
        changed(FIRST, f"{FIRST}\n        b = b.view(b.shape)"),
        OWN.replace("kernel(", "launch(").replace("w, kernel,", "w, launch,"),
        changed(FIRST, f"self.calls = 0\n        self.calls += 1\n        {FIRST}"),
        changed(FIRST, f"n = b = x.shape[0] // 2\n        half = x[: n + 1, -1]\n        {FIRST}"),
        changed(FIRST, f"for name in ('w1', 'w2'):\n            known = w[name]\n        {FIRST}"),
        changed(FIRST, f"sizes = [4 * t.numel() for t in w.values()]\n        {FIRST}"),
    ],
    ids=["another buffer plan", "streams", "views", "other names", "counts", "halves", "loops", "sizes"],
)
def test_orders_buffers_streams_and_graphs_are_a_coders_to_choose(text: str) -> None:
    assert contract(text, OWN) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def broken(", "it is no Python"),
        (changed("aten = torch.ops.aten", "import os\naten = torch.ops.aten"), r"it imports \(import os\)"),
        (changed(FIRST, "b = aten.relu.default(aten.linear.default(x, w['w1']))"), "s01 is never called"),
        (changed(FIRST, f"{FIRST}\n        b = aten.linear.default(x, w['w1'])"), "aten.linear.default"),
        (changed(FIRST, f"{FIRST}\n        b = torch.matmul(x, w['w1'])"), "torch.matmul"),
        (changed(FIRST, f"{FIRST}\n        b = x @ w['w1']"), "multiplies matrices"),
        (changed(FIRST, f"{FIRST}\n        b = b.relu()"), "the attribute `relu`"),
        (changed(FIRST, f"{FIRST}\n        go = torch.matmul\n        b = go(x, x)"), "torch.matmul"),
        (changed(FIRST, f"{FIRST}\n        go = b.relu\n        b = go()"), "the attribute `relu`"),
        (changed("@torch.no_grad()", "@torch.compile"), "torch.compile"),
        (changed(FIRST, f"{FIRST}\n        self.relu = 1\n        b = b.relu()"), "the attribute `relu`"),
        (changed(FIRST, f"{FIRST}\n        b = getattr(torch, 'matmul')(x, x)"), "`getattr`"),
        (changed(FIRST, f"{FIRST}\n        os.system('true')"), "`os`"),
        (changed(FIRST, f"{FIRST}\n        subprocess.run(['true'])"), "`subprocess`"),
        (changed(FIRST, f"{FIRST}\n        b.__class__ = None"), "`__class__`"),
        (
            changed(FIRST, f"try:\n            {FIRST}\n        except RuntimeError:\n            b = x"),
            "catches errors",
        ),
        (changed('mode="train"', 'mode="eval"'), "`stitch_program` differs"),
        (changed("class ModelNew(StitchModule)", "class ModelNew(nn.Module)"), r"no `class ModelNew\(Stitch"),
        (changed("super().__init__(", "print("), "`__init__` does not begin"),
        (
            changed("    def __init__(", "    stitch_program: object = None\n\n    def __init__("),
            "`stitch_program` differs",
        ),
        (changed(FIRST, f"self.stitch_program = None\n        {FIRST}"), "`stitch_program` differs"),
        (
            changed("super().__init__(", "self.known = 1\n        super().__init__("),
            "`__init__` does not begin",
        ),
        (f"SIDE = 3\n{OWN}", "line 1 belongs into `ModelNew`"),
        (f"{OWN}\ndef later(x):\n    return x\n", "belongs into `ModelNew`"),
        (changed(FIRST, f"{FIRST}\n        # ... rest unchanged"), "left out"),
        (changed(FIRST, "..."), "left out"),
        (OWN + " " * 200_001, "characters"),
        *(
            (changed(FIRST, f"{FIRST}\n        {line}"), why)
            for line, why in (
                ("self.t, self.mm = torch, 1\n        b = self.t.mm(x, x)", "`torch` goes by another name"),
                ("match x:\n            case T(relu=go):\n                b = go()", "with `match`"),
                ("self.r = stitch_reference(Path(__file__)).Model()", "leads to the reference"),
                ("b = b * (b > 0)", r"computes \(`b \* \(b > 0\)`\)"),
                ("b *= 2", "computes"),
                ("b = -b", "computes"),
                ("b[b == 0] = 1", "computes"),
                ("n = len(w)\n        n = b\n        b = b / n", "computes"),
                ("b = w['w1'][x]", "computes"),
                ("b = max(b, x)", "computes"),
                ("torch.empty = self.steps", "not its own to set"),
                ("self._stitch.enter = self.steps", "not its own to set"),
                ("self._stitch = self", "not its own to set"),
                ("self._compiled_call_impl = self.steps", "not its own to set"),
                ("self.forward = self.steps", "not its own to set"),
                ("del self.training", "not its own to set or delete"),
                ("stitch_stream = id", "not its own to bind"),
                ("global stitch_stream", "`global`"),
                ("aten = w", "not its own to bind"),
                ("stitch_build((), x, w)", "`stitch_build` is not for a host program"),
                ("b = " + "-" * 5000 + "1", "nested too deeply"),
            )
        ),
        (
            changed("class ModelNew(StitchModule)", "class ModelNew(StitchModule, metaclass=type)"),
            "no `class",
        ),
        (f"{OWN}\n\nclass ModelNew(StitchModule):\n    pass\n", "another class beside it"),
        (
            changed(
                "    def __init__(", "    def named_buffers(self):\n        return []\n\n    def __init__("
            ),
            "bind",
        ),
        (changed("    def __init__(", "    _call_impl = 3\n\n    def __init__("), "not its own to bind"),
        (changed("@torch.no_grad()", "@id"), "`@id` is not for a host program"),
        (OWN.replace("offset=0", "offset=id(x)"), "`stitch_program` differs"),
    ],
)
def test_what_computes_or_reaches_further_is_refused_with_the_reason(text: str, why: str) -> None:
    assert re.search(why, "; ".join(contract(text, OWN)))


def test_whole_texts_and_edits_are_read_from_an_answer() -> None:
    form = form_of(OWN)
    whole = read_code(Answer(f"STRATEGY: as it is\nNOTE: the same\n```python\n{OWN}\n```", "stop"), OWN, form)
    assert (whole.source.strip(), whole.strategy) == (OWN.strip(), "as it is")
    edit = f"<<<<<<< SEARCH\n        {FIRST}\n=======\n        {FIRST}  # first\n>>>>>>> REPLACE\n"
    assert f"{FIRST}  # first" in read_code(Answer(edit, "stop"), OWN, form).source
    with pytest.raises(Refused, match="no complete ```python fence"):
        read_code(Answer("```cuda\n__global__ void f() {}\n```", "stop"), OWN, form)


def test_a_program_that_replays_a_graph_keeps_the_contract() -> None:
    """As the prompt tells a Coder to write it; `tests/tools/bundle/test_on_a_gpu.py` runs it."""
    assert contract(graphed(OWN), OWN) == []
