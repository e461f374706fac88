"""Identifiers in parts, misspelt ones, and what plain words mean in CUDA's."""

import pytest

from stitch_tui.tools.docs.words import Names, forms, meant_words, misspellable, query_words, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cudaMallocHost", ["cudamallochost", "cuda", "malloc", "host"]),
        ("__hfma2", ["hfma2", "hfma", "2"]),
        ("CUBLASLT_MATMUL_DESC_BIAS_POINTER", ["cublaslt_matmul_desc_bias_pointer", "cublaslt", "matmul", "desc", "bias", "pointer"]),  # noqa: E501
        ("cublasSgemm_v2", ["cublassgemm_v2", "cublassgemm", "cublas", "sgemm", "v", "2"]),
        ("blocks", ["block"]),
        ("access", ["access"]),
    ],
)  # fmt: skip
def test_an_identifier_is_found_whole_and_in_parts(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_a_query_has_each_word_once_and_none_that_says_nothing() -> None:
    assert query_words("How do I get the block of a block?") == ["block"]


def test_a_misspelt_identifier_leads_to_the_one_that_is_meant() -> None:
    names = Names(
        ["cublasLtMatmulDescSetAttribute", "cublasLtMatmulDescGetAttribute", "cudaMallocHost", "fill"]
    )
    assert names.near("cublasltmatmuldescsetatribute") == "cublasltmatmuldescsetattribute"
    assert names.near("cudamallochst") == "cudamallochost"
    assert names.near("cudamallochost") == "", "it is spelt well"
    assert names.near("completely_different") == ""


def test_plain_words_add_cudas_own() -> None:
    assert {"page", "locked", "host"} <= set(meant_words("pinned buffers"))
    assert {"shared", "memory"} <= set(meant_words("the scratchpads of a core"))
    assert meant_words("cudaMalloc") == []
    assert {"capture", "synchronize"} <= set(forms("capturing to synchronise"))
    assert misspellable("encode cudaMalocHost descriptors") == ["cudamalochost"], "plain words are no names"
    assert misspellable("a cudamallochst call") == ["cudamallochst"]
    assert "memory" not in meant_words("scratchpad memory"), "the query has it itself"


def test_a_phrase_is_known_however_it_is_inflected() -> None:
    assert set(meant_words("pin a buffer")) >= set(meant_words("pinned buffer"))
    assert "multiprocessor" in meant_words("all SMs")
    assert "shared" in meant_words("in LDS")
    assert "shared" not in meant_words("ld of the matrix")
    assert meant_words("filled with a value")
