"""Inline PTX of the source front end, through the translator of the ptx front end."""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from stitch_tui.tools.emulator.ptx2cpp import Emit, Func, Module, PtxError
from stitch_tui.tools.emulator.tokens import Token


class UnknownPtx(Exception):
    pass


def translate_asm(toks):
    from stitch_tui.tools.emulator.ptx_asm import translate_asm as t
    r = t(toks)
    if r is None:
        raise UnknownPtx("?")
    return r
