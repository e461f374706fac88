"""Headers and pages as chunks: one a declaration or a section, and none longer than the limit."""

import pytest

from stitch_tui.tools.docs import headers, pages
from stitch_tui.tools.docs.chunk import Chunk, Cut, tokens, within

HEADER = """\
/* Copyright (c) somebody. */
#define WIDGET_FAST 0x01 /**< Prefer speed over memory */

/**
 * \\brief Sets an attribute of a widget.
 * \\param[in] attr  which one
 * \\return WIDGET_OK
 */
widgetStatus_t WIDGETAPI widgetSetAttribute(widget_t w, widgetAttribute_t attr,
                                            const void* value);

/** Attributes of a widget */
typedef enum {
  /** Its colour, as a number */
  WIDGET_COLOUR = 0,
  WIDGET_SIZE = 1, /**< in bytes */
} widgetAttribute_t;

//! A class.
template <typename T>
class Turner {
 public:
  //! Turns it round.
  __device__ T turn(T value) { return other(value); }
};

widgetStatus_t widgetDestroy(widget_t w);
widgetStatus_t widgetDestroy(widget_t w, int flags);
"""


def by_name(source: str, **options: bool) -> dict[str, Chunk]:
    return {chunk.name: chunk for chunk in headers.chunks(source, **options)}


def test_each_declaration_of_a_header_is_a_chunk_with_its_line() -> None:
    found = by_name(HEADER)
    assert set(found) == {
        *("WIDGET_FAST", "widgetSetAttribute", "widgetAttribute_t", "Turner", "turn", "widgetDestroy"),
    }
    described = found["widgetSetAttribute"]
    assert described.line == 4
    assert "param: attr  which one" in described.text
    assert "const void* value)" in described.text
    assert "WIDGET_COLOUR" in found["widgetAttribute_t"].aliases
    assert "Its colour" in found["widgetAttribute_t"].text
    assert found["widgetDestroy"].text.count("widgetDestroy(") == 2, "overloads lie together"
    assert "widgetDestroy" not in by_name(HEADER, bare=False)


def test_a_prototype_of_many_indented_lines_is_a_chunk() -> None:
    arguments = ",\n".join(" " * 60 + f"const void* argument{n}" for n in range(24))
    (chunk,) = headers.chunks(f"widgetStatus_t WIDGETAPI widgetTurnManyEx(\n{arguments});\n")
    assert chunk.name == "widgetTurnManyEx"
    assert "argument23" in chunk.text


def test_the_first_sentence_below_a_signature_is_what_it_says_in_brief() -> None:
    found = by_name("/** Turns it. Slowly.\n *\n * Then stops. */\nvoid turn(int x);\nvoid bare(int x);\n")
    assert found["turn"].brief == "Turns it."
    assert found["bare"].brief == ""


@pytest.mark.timeout(20)
def test_a_header_without_ends_of_statements_takes_no_time() -> None:
    bodies = "__DEVICE__ void load(fragment<a, 16>& x, const half* p) __DEF_IF_HOST\n" * 3000
    assert [chunk.name for chunk in headers.chunks(bodies)] == ["load"]
    assert list(headers.chunks("word " * 100_000)) == []


def test_sections_of_a_page_know_the_headings_above_them() -> None:
    text = "before\n\n# Grids\n\nintro\n\n```\n# no heading\n```\n\n## Blocks\n\nabout blocks\n"
    found = list(pages.markdown(text, "page"))
    assert [(c.name, c.title, c.line) for c in found] == [
        ("page", "page", 1),
        ("Grids", "Grids", 3),
        ("Blocks", "Grids > Blocks", 11),
    ]
    html = (
        "<head><title>t</title><style>p {}</style></head><body><h1 id='g'>Grids</h1><p>A &lt;b&gt; c"
        "<script>var x</script><section id='bl'><h2>Blocks</h2><p>one</p><p>two</p></section>"
    )
    assert [(c.name, c.anchor, c.title) for c in pages.html(html, "p")] == [
        ("Grids", "g", "Grids"),
        ("Blocks", "bl", "Grids > Blocks"),
    ]
    assert next(c.text for c in pages.html(html, "p")) == "Grids\n\nA <b> c"


def test_a_long_section_is_cut_at_1000_tokens_with_100_of_overlap() -> None:
    assert tokens("cudaMallocHost(&p, 4096)") == 11
    words = [f"{'vw'[n // 1000]}{n % 1000:03}" for n in range(1300)]  # two tokens each
    pieces = list(within(Chunk("s", "s", "\n".join(words), line=10), Cut()))
    assert [tokens(piece.text) for piece in pieces] == [1000, 1000, 800]
    assert [piece.text.split()[0] for piece in pieces] == ["v000", "v450", "v900"]
    assert [piece.line for piece in pieces] == [10, 460, 910]
    assert pieces[-1].text.split()[-1] == "w299"
    assert list(within(Chunk("s", "s", " ".join(words[:500]), 1), Cut())) == [
        Chunk("s", "s", " ".join(words[:500]), 1)
    ]


def test_an_enumeration_without_documentation_is_a_chunk_with_what_stands_beside_its_values() -> None:
    source = (
        "typedef enum { MODE_HOST = 0, MODE_DEVICE = 1 /* on the card */ } mode_t;\n"
        "enum mode_t other(int a);\n"
    )
    found = by_name(source)
    assert set(found) == {"mode_t", "other"}
    assert "on the card" in found["mode_t"].text
    assert found["mode_t"].aliases == "MODE_HOST MODE_DEVICE"
    assert "mode_t" not in by_name(source, bare=False)


def test_a_type_of_functions_is_named_by_itself_and_not_by_what_they_return() -> None:
    (chunk,) = headers.chunks(
        "/** Type of callbacks. */\ntypedef void (CUDART_CB *callback_t)(int status, void *data);\n"
    )
    assert chunk.name == "callback_t"
