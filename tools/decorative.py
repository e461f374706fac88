"""Do a candidate's kernels matter?  With every kernel emptied the result must not be right."""

from stitch_tui.tools.cuda_source import CudaSource

OTHER_SOURCES = (
    "cudaMemcpy", "cudaMemset", "cudaMallocManaged", "cudaHostRegister", "cudaLaunchHostFunc", 
    "cudaHostAlloc", "cudaMallocHost", "cudaGraphAddMemcpy", "cublas", "cudnn", "cusparse", "cufft",
    "thrust", "cub",
)  # fmt: skip
"""Calls by which host code brings results about without a kernel of its own."""
LIBRARIES = ("cublas", "cudnn", "cusparse", "cufft", "thrust", "cub")


def emptied(text: str) -> str | None:
    """The source with ``return;`` at the start of every kernel.

    None when there is no kernel, or when nothing else in it could bring a result about, so that there is
    nothing to find out.
    """
    source = CudaSource(text)
    if not source.kernel_bodies or not _calls(source, OTHER_SOURCES):
        return None
    changed = bytearray(text.encode())
    for offset in sorted(source.kernel_bodies, reverse=True):
        changed[offset:offset] = b" return;"
    return changed.decode()


def uses_library(text: str) -> bool:
    """Does it call a library of NVIDIA's, whose kernels it cannot empty?"""
    return _calls(CudaSource(text), LIBRARIES)


def _calls(source: CudaSource, beginnings: tuple[str, ...]) -> bool:
    """Is anything called whose name begins so?  A header that is merely included calls nothing."""
    return any(call.name.removeprefix("::").startswith(beginnings) for call in source.calls)
