"""Inline PTX in the source front end: the same instruction translator as the PTX front end, operand by operand."""
from __future__ import annotations

import ast
import re

from stitch_tui.tools.emulator.ptx2cpp import Emit, Func, Module, PtxError

CONSTRAINT = {"r": "b32", "l": "b64", "f": "f32", "h": "b16", "d": "f64", "n": "b32", "q": "b128"}


def translate_asm(toks):
    """tokens between asm( and ) -> C++ statement text, or None when an instruction is unknown"""
    parts, cur, depth = [], [], 0
    for t in toks:
        if t.kind in ("ws", "com"):
            continue
        depth += (t.text in "([{" and t.kind == "op") - (t.text in ")]}" and t.kind == "op")
        if depth == 0 and t.kind == "op" and t.text in (":", "::"):
            parts.append(cur)
            cur = []
            if t.text == "::":
                parts.append([])
            continue
        cur.append(t)
    parts.append(cur)
    if any(t.kind not in ("str", "raw") for t in parts[0]):
        return None
    text = "".join(t.text.split("(", 1)[1].rsplit(")", 1)[0] if t.kind == "raw" else ast.literal_eval(t.text) for t in parts[0])
    ops = []                                            # (constraint, expr, name)
    for section in parts[1:3]:
        i = 0
        while i < len(section):
            name = None
            if section[i].text == ",":
                i += 1
                continue
            if section[i].text == "[":
                name = section[i + 1].text
                i += 3
            c = ast.literal_eval(section[i].text)
            j, d = i + 1, 0
            while True:
                d += (section[j].text == "(") - (section[j].text == ")")
                if d == 0:
                    break
                j += 1
            ops.append((c, " ".join(t.text for t in section[i + 2:j]), name))
            i = j + 1
    for k, (_, _, name) in enumerate(ops):
        if name:
            text = text.replace(f"%[{name}]", f"%{k}")
    text = re.sub(r"%%", "\0", text)
    text = re.sub(r"%(\d+)", r"%stitch_\1", text).replace("\0", "%")
    if not text.strip():
        return "do { } while (0)"
    e = Emit(Module(), Func("asm", False, [], [], text if text.rstrip().endswith((";", "}")) else text + ";"))
    pre, post = [], []
    for k, (c, expr, _) in enumerate(ops):
        ty = CONSTRAINT.get(c[-1])
        if ty is None:
            return None
        e.regs[f"%stitch_{k}"] = ty
        rt = {"b32": "uint32_t", "f32": "uint32_t", "b64": "uint64_t", "f64": "uint64_t", "b16": "uint16_t", "b128": "u128_t"}[ty]
        out = c[0] in "=+"
        pre.append(f"{rt} stitch_{k}" + (f" = in_<{rt}>({expr})" if not c.startswith("=") else "") + ";")
        if out:
            post.append(f"out_({expr}, stitch_{k});")
    try:
        body = e.run()
    except (PtxError, KeyError, IndexError, AttributeError):
        return None
    if e.m.missing:
        return None
    body = [re.sub(r", 0\)", ", __LINE__)", b) if "FILE_" not in b else b for b in body]
    return "do { unsigned cc_ = 0; (void)cc_; " + " ".join(pre + body + post) + " } while (0)"
