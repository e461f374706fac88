"""Names that a person sets and git has to take: checked where they are read, before anything is written."""

import re


def branch_prefix(text: str) -> str:
    """`text`, when git takes branches ``text/SESSION``.

    Raises:
        ValueError: it does not, with what it should be.
    """
    sound = re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*", text)
    if not sound or text.endswith(".lock") or len(text) > 100:
        raise ValueError(
            "it should be letters, digits, '_', '-' and single dots, at most 100,"
            " not begin with '-' and not end in .lock"
        )
    return text


def author(text: str) -> tuple[str, str]:
    """Name and mail of ``Name <mail>``.

    Raises:
        ValueError: it is not of that form.
    """
    match = re.fullmatch(r"\s*([^<>\n]*[^<>\s])\s*<([^<>\s]+)>\s*", text)
    if match is None:
        raise ValueError("it should be 'Name <mail>'")
    return match[1], match[2]
