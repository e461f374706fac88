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
        ('std::ofstream report("verdict.json");', "reads or writes files"),
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


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('#include "/etc/passwd"', "takes in /etc/passwd"),
        ("#include </etc/passwd>", "takes in /etc/passwd"),
        ('#  include "../../other.h"', "takes in ../../other.h"),
        ('%:include "/etc/passwd"', "takes in /etc/passwd"),
        ('#inc\\\nlude "/etc/passwd"', "takes in /etc/passwd"),
        ('#inc\\ \nlude "/etc/passwd"', "takes in /etc/passwd"),
        ('/* a\n */ #/**/include/**/"/etc/passwd"', "takes in /etc/passwd"),
        ("#include_next <~/x>", "takes in ~/x"),
        ('#import "/etc/passwd"', "takes in /etc/passwd"),
        ('char x[] = {\n#embed "/etc/passwd"\n};', "takes in /etc/passwd"),
        ('#define F "/etc/passwd"\n#include F', "name is computed"),
        ('#line 1 "/etc/passwd"', "says that it is /etc/passwd"),
        ('# 1 "/etc/passwd"', "says that it is /etc/passwd"),
        ('asm(".incbin \\"/etc/passwd\\"");', "another file"),
        ('asm volatile(".inc" "lude \\"/etc/passwd\\"");', "another file"),
        ('asm(R"(.incbin "/etc/passwd")");', "another file"),
        ('__asm__("\\x2eincbin x");', "another file"),
        ('asm(".altmacro\\n.macro a x\\n.endm");', "another file"),
    ],
)
def test_files_that_lie_elsewhere_are_not_taken_in(lines: str, words: str) -> None:
    """A compiler's errors would quote them, and those go to a model."""
    (finding,) = screen_source(f"int before;\n{lines}\nint after;\n", "k.cu").evidence
    assert words in finding.message
    assert finding.line in (2, 3)


@pytest.mark.parametrize(
    "lines",
    [
        '#include "stitch.h"\n#include <cuda_runtime.h>\n#include <cub/block/block_reduce.cuh>',
        '// #include "/etc/passwd"\n/*\n#include "/etc/passwd"\n*/',
        'const char* s = R"(\n#include "/etc/passwd"\n)";',
        '#define PASTE(a, b) a##b\n#define TEXT(x) #x\n#pragma unroll 4\n#line 7 "k.cu"',
        'asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a), "l"(b));',
        'const char* s = ".incbin";\nint x = 5 % a;',
    ],
)
def test_what_kernels_take_in_honestly_passes(lines: str) -> None:
    assert screen_source(lines, "k.cu").evidence == ()
