from hypothesis import given
from hypothesis import strategies as st

from stitch_tui.tools import ptxas
from stitch_tui.tools.diagnostics import MOST_FINDINGS, findings
from stitch_tui.tools.verdict import Category, KernelFacts


def local(file: str) -> str:
    return file if file == "k.cu" else ""


def test_an_nvcc_error_has_line_and_column_and_no_echo_of_the_source() -> None:
    log = (
        'k.cu(7): error: identifier "zork" is undefined\n'
        "    y[i] = zork;\n"
        "           ^\n\n"
        'k.cu(2): warning #177-D: variable "x" was declared but never referenced\n'
        "  int x;\n"
        "      ^\n\n"
        "1 error detected in the compilation of k.cu.\n"
    )
    error, warning = findings(log, local)
    assert (error.file, error.line, error.column) == ("k.cu", 7, 10)
    assert error.message == 'identifier "zork" is undefined'
    assert error.category is Category.BUILD_ERROR
    assert warning.detail == {"severity": "warning", "tool": "nvcc", "code": "177-D"}


def test_an_error_inside_a_library_header_points_to_the_line_of_the_candidate_that_led_there() -> None:
    log = (
        '/usr/include/c++/12/bits/predefined_ops.h(45): error: no operator "<" matches these operands\n'
        "            operand types are: A < A\n"
        "        { return *__it1 < *__it2; }\n"
        "                        ^\n"
        "/usr/include/c++/12/bits/stl_iterator.h(1254): note #3327-D: candidate function template\n"
        "      operator<(const Iterator& __lhs,\n"
        "      ^\n"
        "          detected during:\n"
        '            instantiation of "bool less(A)" at line 140 of /usr/include/c++/12/bits/stl_heap.h\n'
        '            instantiation of "void std::sort(A*, A*)" at line 6 of k.cu\n'
        '            instantiation of "void outer(A*)" at line 90 of k.cu\n\n'
    )
    (finding,) = findings(log, local)
    assert (finding.file, finding.line) == ("k.cu", 6)
    assert finding.message == 'no operator "<" matches these operands\noperand types are: A < A'
    assert finding.detail["header"] == "/usr/include/c++/12/bits/predefined_ops.h:45"


def test_the_same_error_seen_by_the_host_and_the_device_pass_counts_once() -> None:
    log = "k.cu(7): error: bad\n\nk.cu(7): error: bad\n\nk.cu(8): error: bad\n\n"
    assert [finding.line for finding in findings(log, local)] == [7, 8]


def test_a_gcc_error_keeps_its_column() -> None:
    log = (
        "k.cu:2:10: fatal error: no.h: No such file or directory\n"
        '    2 | #include "no.h"\n'
        "      |          ^~~\n"
    )
    (finding,) = findings(log, local)
    assert (finding.line, finding.column) == (2, 10)
    assert finding.message == "no.h: No such file or directory"


def test_a_symbol_that_nobody_defines_is_a_link_error_that_names_who_asked() -> None:
    log = (
        "/usr/bin/ld: /tmp/a.o: in function `stitch_run':\n"
        "a.cudafe1.cpp:(.text+0x16): undefined reference to `helper(int)'\n"
        "collect2: error: ld returned 1 exit status\n"
    )
    (finding,) = findings(log, local)
    assert finding.category is Category.LINK_ERROR
    assert finding.message == "undefined reference to 'helper(int)'"
    assert finding.where == "stitch_run"


def test_an_error_in_inline_assembly_is_traced_to_its_source_line() -> None:
    ptx = '.loc\t1 9 0\nld;\n.loc\t1 12 30\nbogus.b32 %r1;\n.loc 1 14 1\n.file\t1 "k.cu"\n'
    log = (
        "ptxas k.ptx, line 4; error   : Not a name of any known instruction: 'bogus'\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n"
    )
    (finding,) = findings(log, local, ptx)
    assert (finding.file, finding.line, finding.column) == ("k.cu", 12, 30)
    assert finding.category is Category.BUILD_ERROR


def test_too_much_shared_memory_is_a_build_error() -> None:
    log = "ptxas error   : Entry function '_Z1kPi' uses too much shared data (0x27100 bytes, 0xc000 max)\n"
    (finding,) = findings(log, local)
    assert finding.category is Category.BUILD_ERROR
    assert "too much shared data" in finding.message


def test_a_thousand_errors_become_a_readable_number() -> None:
    log = "".join(f"k.cu({n}): error: bad\n\n" for n in range(1, 1001))
    assert len(findings(log, local)) == MOST_FINDINGS


@given(st.text(alphabet="k.cu(1): error/ld^\n|\t 'noteptxas", max_size=200))
def test_no_output_of_a_compiler_breaks_the_parser(log: str) -> None:
    for finding in findings(log, local, log):
        assert finding.detail["severity"] in ("error", "warning")


def test_ptxas_facts_are_those_of_kernels_and_not_of_the_functions_they_call() -> None:
    log = (
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90a'\n"
        "ptxas info    : Function properties for _Z1kPf\n"
        "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 1 barriers, 4096+16 bytes smem, 360 bytes cmem[0]\n"
        "ptxas info    : Function properties for _Z4calli\n"
        "    99 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    )
    assert list(ptxas.kernel_facts(log)) == [
        KernelFacts(kernel="_Z1kPf", registers=40, spill_bytes=20, shared_bytes=4112, stack_bytes=16)
    ]
    assert ptxas.built_for(log) == {"sm_90a"}
