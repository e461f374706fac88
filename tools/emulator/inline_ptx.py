"""Inline PTX of the source front end, through the translator of the ptx front end."""




class UnknownPtx(Exception):
    pass


def translate_asm(toks):
    from stitch_tui.tools.emulator.ptx_asm import translate_asm as t
    r = t(toks)
    if r is None:
        raise UnknownPtx("?")
    return r
