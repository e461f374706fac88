import pytest

from stitch_tui.tools.screen import screen_source
from stitch_tui.tools.verdict import Category


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("int r = system(command);", "starts a process"),
        ("int r = ::fork();", "starts a process"),
        ('auto f = std::fopen("expected.bin", "rb");', "reads or writes files"),
        ('void* h = dlopen("libtorch.so", 1);', "loads code"),
        ("int s = socket(2, 1, 0);", "uses the network"),
        ('const char* where = "/proc/self/maps";', "names memory or files"),
        ("#include <torch/extension.h>", "PyTorch"),
        ("#include <Python.h>", "PyTorch"),
    ],
)
def test_plain_evidence_is_named_with_its_line(line: str, words: str) -> None:
    outside = line.startswith("#")
    head, body = (line, "") if outside else ("", line)
    text = f"{head}\n\nint stitch_run(const stitch_call* c) {{\n  {body}\n}}"
    (finding,) = screen_source(text, "k.cu").evidence
    assert finding.category is Category.HACK_SUSPECTED
    assert words in finding.message
    assert finding.line == (1 if outside else 4)


@pytest.mark.parametrize(
    "text",
    [
        "// system(1) and fork()\n/* dlopen */ int x;",
        'void f() { printf("call system(x) or open(y)"); }',
        "__device__ float open(float x) { return x; }\n__global__ void k(float* y) { *y = open(*y); }",
        "struct Queue { void connect(); };\nvoid f(Queue q) { q.connect(); }",
    ],
)
def test_words_in_comments_strings_and_names_of_its_own_accuse_nobody(text: str) -> None:
    assert screen_source(text, "k.cu").evidence == ()


def test_what_may_be_honest_is_asked_and_not_held_against_the_candidate() -> None:
    screen = screen_source(
        "int f() { if (cudaDeviceSynchronize()) exit(1);\n return getenv(0) != 0; }", "k.cu"
    )
    assert screen.evidence == ()
    assert [question.split(":")[0] for question in screen.questions] == ["line 1", "line 1", "line 2"]
