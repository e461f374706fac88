"""The translators as functions on text: tokens, rewriting, PTX operands."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stitch_tui.tools.emulator.diagnostics import compiler_errors, linker_errors
from stitch_tui.tools.emulator.inline_ptx import translate_asm
from stitch_tui.tools.emulator.ptx.module import parse
from stitch_tui.tools.emulator.ptx.vocabulary import UnknownPtx, split_operands
from stitch_tui.tools.emulator.rewrite import rewrite
from stitch_tui.tools.emulator.sources import read_sources
from stitch_tui.tools.emulator.tokens import text_of, tokenize
from stitch_tui.tools.emulator.toolchain import HEADERS

FRAGMENTS = st.sampled_from(
    [
        "k<<<1, 2>>>(x);",
        "/* a\nb */",
        "// c\n",
        '"s\\"t"',
        'R"(x\n)"',
        "#define A \\\n 1\n",
        "{",
        "}",
        "0x1'0p-3",
        " ",
    ]
)


@given(st.lists(FRAGMENTS | st.text(max_size=6), max_size=12))
def test_tokens_joined_are_the_source_again(parts: list[str]) -> None:
    source = "".join(parts)
    assert text_of(tokenize(source)) == source


@given(st.lists(st.text("abc%r123 ", min_size=1, max_size=5).map(str.strip).filter(bool), max_size=6))
def test_operands_split_as_they_were_joined(parts: list[str]) -> None:
    assert split_operands(", ".join(parts)) == parts


def rewritten(folder: Path, text: str) -> str:
    path, out = folder / "k.cu", folder / "out"
    path.write_text(text)
    out.mkdir()
    result = rewrite(read_sources(path), out)
    assert not result.refused
    return result.main.read_text()


def test_rewriting_keeps_every_line_where_it_was(tmp_path: Path) -> None:
    text = """
template <class T,
          int N> __global__ void k(T* x) {
  __shared__ float tile[16]
                       [17], other[4];
  extern __shared__ float dynamic[];
  MARK_6
}
void f(cudaStream_t s) {
  ns::k<float,
        (3 > 2)><<<dim3(1,
    2), 32, 0, s>>>(  // comment
      NULL);
  MARK_13
}
"""
    lines = rewritten(tmp_path, text).splitlines()[1:]  # behind the #line
    assert "MARK_6" in lines[6]
    assert "MARK_13" in lines[13]
    assert "<<<" not in "\n".join(lines)
    assert "nullptr" in "\n".join(lines)


def test_inline_ptx_with_named_operands_becomes_statements() -> None:
    tokens = tokenize('"add.s32 %[sum], %1, %2;" : [sum] "=r"(y) : "r"(a), "r"(b)')
    text = translate_asm(tokens)
    assert "out_(y, stitch_0);" in text
    assert "in_<uint32_t>(a)" in text


@pytest.mark.parametrize(
    "ptx", ["max.NaN.f32 %0, %1, %2;", "cvt.rn.relu.f16.f32 %0, %1;", "match.all.sync.b32 %0, %1, 1;"]
)
def test_a_form_whose_meaning_is_not_known_is_refused(ptx: str) -> None:
    with pytest.raises(UnknownPtx):
        translate_asm(tokenize(f'"{ptx}" : "=f"(y) : "f"(a), "f"(b)'))


def test_shared_variables_of_ptx_do_not_touch() -> None:
    module = parse(
        '\t.file\t1 "/somewhere/k.cu"\n'
        ".shared .align 4 .b8 a[100];\n.shared .align 16 .b8 b[8];\n.extern .shared .b8 c[];\n"
    )
    a, b, c = (module.variables[name] for name in "abc")
    assert b.offset >= a.offset + a.size + 64
    assert b.offset % 16 == 0
    assert c.offset == 64
    assert module.files == {1: "/somewhere/k.cu"}


def test_an_error_inside_our_headers_is_told_at_the_candidate_s_line() -> None:
    lines = (
        f"{HEADERS}/cuda_runtime.h: In instantiation of 'f':",
        "gemm.cu:7:3:   required from here",
        f"{HEADERS}/cuda_runtime.h:9:1: error: no match",
    )
    (finding,) = compiler_errors("\n".join(lines))
    assert (finding.file, finding.line, finding.message) == ("gemm.cu", 7, "no match")


def test_the_same_error_from_two_instantiations_is_told_once() -> None:
    assert len(compiler_errors("./a.cu:3:1: error: bad\n./a.cu:3:1: error: bad\n")) == 1


def test_an_undefined_function_names_its_line_once() -> None:
    (finding,) = linker_errors(
        "\n".join(f"ld: ./a.cu:{n}: undefined reference to `helper(int)'" for n in (5, 9))
    )
    assert (finding.file, finding.line) == ("a.cu", 5)
