"""A toolkit of a few headers, and an index of it in a cache of its own."""

from pathlib import Path

import pytest

HEADERS = {
    "cuda.h": "#define CUDA_VERSION 13000\n",
    "cublas_api.h": (
        "#define CUBLAS_VER_MAJOR 13\n#define CUBLAS_VER_MINOR 1\n#define CUBLAS_VER_PATCH 2\n"
        "cublasStatus_t cublasGemmEx(cublasHandle_t handle, int m);\n"
    ),
    "cublasLt.h": (
        "/** Set matmul operation descriptor attribute.\n *\n"
        " * \\param[in] sizeInBytes size of buf buffer\n */\n"
        "cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc,\n"
        "    cublasLtMatmulDescAttributes_t attr, const void* buf, size_t sizeInBytes);\n"
        "/** Destroy a matmul descriptor. */\n"
        "cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmulDesc);\n"
    ),
    "cuda_runtime_api.h": (
        "/** \\brief Allocates page-locked memory on the host */\n"
        "extern cudaError_t cudaMallocHost(void **ptr, size_t size);\n"
        "/** \\brief Frees page-locked memory */\nextern cudaError_t cudaFreeHost(void *ptr);\n"
    ),
}


@pytest.fixture
def toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its include folder; cache and state are the test's own."""
    root = tmp_path / "cuda"
    (root / "include").mkdir(parents=True)
    for name, text in HEADERS.items():
        (root / "include" / name).write_text(text)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return root / "include"
