"""What a candidate's Python did wrong, as a category and a sentence, and as the line that tells the judge."""

import json
import traceback
from _json import encode_basestring_ascii
from collections.abc import Callable
from pathlib import Path

import torch

from .abi import IN_REFERENCE


class Wrong(Exception):
    """What the candidate's Python did wrong: a category and a sentence."""

    def __init__(self, category: str, message: str) -> None:
        super().__init__(message)
        self.category = category


def raised(error: BaseException, what: str, path: Path | None) -> Wrong:
    """What an exception out of the candidate's code means.

    Args:
        path: the candidate's file; None: whatever file raised it.
    """
    frames = traceback.extract_tb(error.__traceback__)
    mine = [f for f in frames if path is None or f.filename == str(path)]
    line = f" (line {mine[-1].lineno} of {Path(mine[-1].filename).name})" if mine else ""
    message = " ".join(str(error).split())[:600]
    beside = str(path.with_name("reference.py")) if path else ""
    if theirs := [f.lineno for f in frames if f.filename == beside]:
        return Wrong(IN_REFERENCE, f"{type(error).__name__}: {message} (line {theirs[-1]} of reference.py)")
    if isinstance(error, SystemExit):
        return Wrong("hack_suspected", f"{what} ended the process with sys.exit{line}")
    if isinstance(error, torch.cuda.OutOfMemoryError):
        return Wrong("out_of_memory_gpu", f"{what}: {message}")
    if "illegal memory access" in message:
        return Wrong("illegal_access", f"{what}: {message}{line}")
    return Wrong("launch_error", f"{what} raised {type(error).__name__}: {message}{line}")


def finding(category: str, message: str) -> str:
    """The protocol's line for what a candidate did wrong."""
    told = {"severity": "error", "category": category, "kind": "python", "msg": message}
    return f"finding {json.dumps(told)}\n"


def told_at_once(send: Callable[[bytes], object]) -> tuple[Callable[[str], None], Callable[[], None]]:
    """What tells the judge of a candidate that reaches for what is not its own, whatever it does next.

    Returns:
        What is given the sentence, and what is called once the candidate is loaded: until then the protocol
        has another line for it.  Neither looks up a name when it is called.
    """
    quoted, loaded = encode_basestring_ascii, False

    def tell(message: str) -> None:
        if loaded:
            line = '{"severity": "error", "category": "hack_suspected", "kind": "python", "msg": %s}'
            send(("finding " + line % quoted(message) + "\n").encode())
        else:
            send(f"error hack_suspected {' '.join(message.split())}\n".encode())

    def is_loaded() -> None:
        nonlocal loaded
        loaded = True

    return tell, is_loaded
