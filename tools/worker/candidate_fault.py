"""What a candidate did wrong, as the judge saw it: one category, one sentence, the evidence."""

from typing import Any

CATEGORIES = {
    *("build_error", "link_error", "no_kernel_image", "launch_error", "illegal_access", "out_of_bounds"),
    *("misaligned", "race", "barrier", "uninitialised", "hang", "host_timeout", "out_of_memory_gpu"),
    *("out_of_memory_host", "unsupported", "shape", "dtype", "nonfinite", "numerics", "hack_suspected"),
    "environment",
}
"""The values of `verdict.Category`, without ``correct``."""
CUDA_CATEGORIES = {
    2: "out_of_memory_gpu",
    200: "no_kernel_image",
    209: "no_kernel_image",
    218: "no_kernel_image",
    222: "no_kernel_image",
    700: "illegal_access",
    702: "hang",
    714: "illegal_access",
    716: "misaligned",
    717: "illegal_access",
    718: "illegal_access",
}
"""CUDA error number -> category; every other number is a ``launch_error``."""


class CandidateFault(Exception):
    """The candidate failed.

    Args:
        category: a value of `verdict.Category`.
        where: trial and output, or the call in which it happened.
        raw: the emulator's own findings that ended the call; the engine locates them.
    """

    def __init__(
        self,
        category: str,
        message: str,
        *,
        where: str = "",
        detail: dict[str, Any] | None = None,
        raw: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(message)
        self.category, self.message, self.where = category, message, where
        self.detail, self.raw = detail or {}, raw or []

    def as_finding(self) -> dict[str, Any]:
        """JSON for `verdict.Finding`."""
        return {
            "category": self.category,
            "message": self.message,
            "where": self.where,
            "detail": self.detail,
        }


class Unsupported(Exception):
    """The candidate returned STITCH_UNSUPPORTED_SHAPE."""
