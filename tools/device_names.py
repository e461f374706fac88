"""Names of what nvcc builds for."""

import re


def target(text: str) -> str:
    """`text`, when it is empty or names a real architecture: ``sm_90``, ``sm_90a``, ``sm_120f``.

    Raises:
        ValueError: it does not, with what it should be.
    """
    if text and not re.fullmatch(r"sm_[1-9]\d{1,2}[af]?", text):
        raise ValueError(
            "it should be sm_ and the compute capability without its dot, such as sm_90 or sm_90a"
        )
    return text
