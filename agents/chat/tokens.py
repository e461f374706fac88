"""How many tokens a text may be, before any endpoint has counted them."""

BYTES_A_TOKEN = 3
"""Of source code, on the safe side: tokenizers take 3 to 4 bytes of it for one."""


def estimated(text: str) -> int:
    """Tokens of `text`, rather too many than too few."""
    return -(-len(text.encode()) // BYTES_A_TOKEN)


def cut_to(text: str, tokens: int) -> str:
    """The beginning of `text`, whole lines, that `tokens` hold; says when something is left out."""
    if estimated(text) <= tokens:
        return text
    note = "[cut]"
    room = tokens * BYTES_A_TOKEN - len(note) - 1
    head = text.encode()[: max(room, 0)].decode(errors="ignore")
    lines = head.rpartition("\n")[0] or head
    return f"{lines}\n{note}" if lines else note
