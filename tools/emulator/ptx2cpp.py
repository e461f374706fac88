"""PTX -> C++ for the emulator runtime (route d): nvcc compiles the kernels, we run its output.

Every PTX register is an unsigned integer local; typed operations bit-cast.  Memory operations go through
LD/ST/ATOM helpers that know the state space and the .cu line (from .loc), so checking needs no compiler help.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, field


class PtxError(Exception):
    pass


CT = {"s8": "int8_t", "u8": "uint8_t", "b8": "uint8_t", "s16": "int16_t", "u16": "uint16_t", "b16": "uint16_t", "s32": "int32_t", "u32": "uint32_t", "b32": "uint32_t",
      "s64": "int64_t", "u64": "uint64_t", "b64": "uint64_t", "f32": "float", "f64": "double", "f16": "half_t", "bf16": "bf16_t", "f16x2": "half2_t", "bf16x2": "bf162_t", "pred": "bool",
      "b128": "u128_t", "tf32": "float"}
RT = {"pred": "bool", "b8": "uint8_t", "b16": "uint16_t", "b32": "uint32_t", "b64": "uint64_t", "b128": "u128_t", "s8": "uint8_t", "u8": "uint8_t", "s16": "uint16_t", "u16": "uint16_t", "f16": "uint16_t",
      "s32": "uint32_t", "u32": "uint32_t", "f32": "uint32_t", "f16x2": "uint32_t", "s64": "uint64_t", "u64": "uint64_t", "f64": "uint64_t"}
SIZE = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
SPEC = {"%tid": "threadIdx", "%ntid": "blockDim", "%ctaid": "blockIdx", "%nctaid": "gridDim"}
SPEC1 = {"%laneid": "stitch_emu::lane_id()", "%warpid": "stitch_emu::warp_id()", "%lanemask_lt": "stitch_emu::lanemask_lt()", "%lanemask_le": "(stitch_emu::lanemask_lt()*2+1)",
         "%lanemask_eq": "(1u<<stitch_emu::lane_id())", "%lanemask_gt": "~(stitch_emu::lanemask_lt()*2+1)", "%lanemask_ge": "~stitch_emu::lanemask_lt()", "%clock64": "(uint64_t)clock64()", "%clock": "(uint32_t)clock64()",
         "%globaltimer": "(uint64_t)clock64()", "%smid": "0u", "%nsmid": "4u", "%dynamic_smem_size": "ptx_dyn_size()", "WARP_SZ": "32u", "%envreg1": "(uint32_t)((uint64_t)ptx_grid_ws()>>32)", "%envreg2": "(uint32_t)(uint64_t)ptx_grid_ws()", "%nwarpid": "32u", "%gridid": "0u"}


def tsize(t):
    m = re.search(r"(\d+)(x2)?$", t)
    return SIZE[m[1]] * (2 if m[2] else 1)


def cname(s):
    return re.sub(r"\W", "_", s.lstrip("%"))


def split_ops(s):
    out, d, cur = [], 0, ""
    for c in s:
        d += (c in "{[(") - (c in "}])")
        if c == "," and d == 0:
            out.append(cur.strip())
            cur = ""
        else:
            cur += c
    if cur.strip():
        out.append(cur.strip())
    return out


@dataclass
class Var:
    name: str
    space: str
    size: int
    align: int
    offset: int = 0
    init: bytes = b""


@dataclass
class Func:
    name: str
    entry: bool
    params: list            # (name, size, align)
    ret: list
    body: str
    line0: int = 0


@dataclass
class Module:
    funcs: list = field(default_factory=list)
    vars: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    missing: set = field(default_factory=set)


def parse(text: str) -> Module:
    text = re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
    m = Module()
    for f in re.finditer(r'^\.file\s+(\d+)\s+"([^"]+)"', text, re.M):
        m.files[int(f[1])] = f[2]
    off = 256 * 1024
    i = 0
    pat = re.compile(r"(?:\.visible|\.weak|\.extern|\.common|\s)*\.(entry|func|global|const|shared)\b")
    while (k := pat.search(text, i)):
        kind, j = k[1], k.end()
        if kind in ("global", "const", "shared"):
            e = text.index(";", j)
            d = text[j:e]
            v = re.match(r"\s*(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+(\d+)\s*)?(?:\.attribute\([^)]*\)\s*)?\.(\w+)\s+([\w$.]+)(?:\[(\d*)\])?(?:\s*=\s*(.*))?$", d.strip(), re.S)
            if not v:
                raise PtxError("cannot parse variable: " + d[:120])
            ext = ".extern" in k[0]
            n = int(v[4]) if v[4] else (0 if v[4] == "" else 1)
            size = n * tsize(v[2])
            al = int(v[1] or tsize(v[2]))
            x = Var(v[3], kind, size, al)
            if kind == "shared":
                if ext or size == 0:
                    x.offset = 64
                else:
                    off = (off + max(al, 16) - 1) // max(al, 16) * max(al, 16)
                    x.offset = off
                    off += size + 64
            elif v[5]:
                vals = [int(t, 0) for t in re.findall(r"0[xX][0-9a-fA-F]+|-?\d+", v[5])] if "0f" not in v[5] and "0d" not in v[5] else [int(t[2:], 16) for t in re.findall(r"0[fd][0-9a-fA-F]+", v[5])]
                x.init = b"".join((t % (1 << 8 * tsize(v[2]))).to_bytes(tsize(v[2]), "little") for t in vals)
            m.vars[x.name] = x
            i = e + 1
            continue
        h = re.compile(r"[^({;]*").match(text, j)
        sig_end = min(x for x in (text.find("{", j), text.find(";", j)) if x >= 0)
        sig = text[j:sig_end]
        decl = text[sig_end] == ";"
        groups = re.findall(r"\(([^()]*)\)", sig)
        name = re.search(r"([\w$.]+)\s*(?:\(|$)", re.sub(r"^\s*\([^()]*\)", "", sig).strip())[1]

        def plist(g):
            r = []
            for p in split_ops(g):
                q = re.match(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)(?:\s+\.ptr.*?\s)?\s*(?:\.align\s+\d+\s+)?([\w$.]+)(?:\[(\d+)\])?$", p.strip())
                if q:
                    r.append((q[3], tsize(q[2]) * int(q[4] or 1), int(q[1] or tsize(q[2]))))
                elif (q := re.match(r"\.reg\s+\.(\w+)\s+([%\w$.]+)", p.strip())):
                    r.append((q[2], tsize(q[1]), tsize(q[1])))
            return r
        has_ret = bool(re.match(r"\s*\(", sig))
        ret = plist(groups[0]) if has_ret else []
        params = plist(groups[1] if has_ret and len(groups) > 1 else groups[0]) if (groups and not (has_ret and len(groups) == 1)) else []
        if decl:
            i = sig_end + 1
            continue
        d, e = 0, sig_end
        while True:
            c = text[e]
            d += (c == "{") - (c == "}")
            if c == '"':
                e = text.index('"', e + 1)
            if d == 0:
                break
            e += 1
        m.funcs.append(Func(name, kind == "entry", params, ret, text[sig_end + 1:e]))
        i = e + 1
    # shared variables declared inside functions
    for f in m.funcs:
        for s in re.finditer(r"\.shared\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$.]+)(?:\[(\d+)\])?\s*;", f.body):
            size, al = tsize(s[2]) * int(s[4] or 1), max(16, int(s[1] or 1))
            off = (off + al - 1) // al * al
            m.vars.setdefault(s[3], Var(s[3], "shared", size, al, off))
            off += size + 64
    return m


class Emit:
    def __init__(self, mod: Module, fn: Func):
        self.m, self.f, self.out, self.line, self.file = mod, fn, [], 0, 0
        self.regs: dict[str, str] = {}
        self.local: dict[str, int] = {}
        self.names = {p[0] for p in fn.params} | {p[0] for p in fn.ret}
        self.scope_params: set[str] = set()

    # ---- operands
    def imm(self, s, t):
        if m := re.match(r"^(-?)0[fF]([0-9a-fA-F]{8})$", s):
            v = int(m[2], 16)
            return f"as<float>(0x{v:08x}u)" if t in ("f32",) else f"0x{v:08x}u"
        if m := re.match(r"^(-?)0[dD]([0-9a-fA-F]{16})$", s):
            return f"as<double>(0x{m[2]}ull)" if t == "f64" else f"0x{m[2]}ull"
        if re.match(r"^-?(0[xX][0-9a-fA-F]+|\d+)U?$", s):
            v = int(s.rstrip("U"), 0)
            return f"({CT[t]}){v}{'ll' if -2**63 <= v < 2**63 else 'ull'}" if t in CT and t[0] in "sub" and t != "bool" else f"({v})"
        return None

    def rd(self, s, t):
        s = s.strip()
        if s.startswith("-") and s[1:].startswith("%"):
            return f"(-{self.rd(s[1:], t)})"
        if s.startswith("!"):
            return f"(!{self.rd(s[1:], t)})"
        if s in self.regs:
            v = cname(s)
            return v if t == "pred" or CT[t] == RT.get(self.regs[s]) else f"as<{CT[t]}>({v})"
        if s in SPEC1:
            return f"(({CT[t]})({SPEC1[s]}))"
        if "." in s and s.split(".")[0] in SPEC:
            a, b = s.split(".")
            return f"(({CT[t]}){SPEC[a]}.{b})"
        if (x := self.imm(s, t)) is not None:
            return x
        if (m := re.match(r"^([\w$.]+)(?:\+(-?\d+))?$", s)) and (m[1] in self.m.vars or m[1] in self.local):
            return f"(({CT[t]})({self.addr_of(m[1])}{'+' + m[2] if m[2] else ''}))"
        fn = [f for f in self.m.funcs if f.name == s]
        if fn:
            return f"(({CT[t]})(uintptr_t)&{cname(s)})"
        raise PtxError(f"operand {s}")

    def addr_of(self, n):
        if n in self.local:
            return f"(uintptr_t){cname(n)}"
        v = self.m.vars[n]
        return str(v.offset) if v.space == "shared" else f"(uintptr_t){cname(n)}"

    def wr(self, s, expr, t):
        s = s.strip()
        if s == "_":
            return f"(void)({expr});"
        k = self.regs.get(s)
        if k is None:
            raise PtxError(f"destination {s}")
        if k == "pred":
            return f"{cname(s)} = {expr};"
        return f"{cname(s)} = ({RT[k]})bits<{CT[t]}>({expr});" if t in CT else f"{cname(s)} = {expr};"

    def addr(self, s, space):
        """[..] -> a real pointer expression"""
        s = s.strip()[1:-1].strip()
        m = re.match(r"^(%?[\w$.]+|-?\d+)\s*(?:\+\s*(-?\w+))?$", s)
        if not m:
            raise PtxError(f"address {s}")
        b, o = m[1], f"{int(m[2], 0):+d}" if m[2] else ""
        if b in self.regs:
            base = cname(b)
        elif b in self.m.vars or b in self.local:
            base = self.addr_of(b)
        elif b in self.names or b in self.scope_params:
            return f"((char*){cname(b)}{o})"
        elif re.match(r"^-?\d+$", b):
            base = b
        else:
            raise PtxError(f"address {s}")
        if space == "shared":
            return f"(stitch_emu::t_smem+(uint32_t)({base}{o}))"
        return f"((char*)(uintptr_t)({base}{o}))"

    # ---- statements
    def run(self):
        body = self.f.body
        toks = re.split(r'(;|\{|\}|\n)', body)
        buf, depth = "", 0
        vec = 0
        for tk in toks:
            if tk == "\n":
                st = buf.strip()
                if st.startswith(".loc"):
                    p = st.split()
                    self.file, self.line = int(p[1]), int(p[2])
                    # prefer the outermost user line of an inlined instruction when the inner file is a header
                    mm = re.search(r"inlined_at\s+(\d+)\s+(\d+)", st)
                    if mm and not self.m.files.get(self.file, "").endswith((".cu", ".cuh")):
                        self.file, self.line = int(mm[1]), int(mm[2])
                    buf = ""
                elif re.match(r"^[$\w.%]+:$", st):
                    self.out.append(f"{cname(st[:-1])}:;")
                    buf = ""
                elif st.startswith((".pragma",)) or st.startswith("@@"):
                    buf = ""
                elif st:
                    buf += " "
                continue
            if tk == "{":
                if buf.strip() and not buf.strip().endswith(":"):
                    vec += 1
                    buf += tk
                else:
                    self.out.append("{")
                continue
            if tk == "}":
                if vec:
                    vec -= 1
                    buf += tk
                else:
                    self.out.append("}")
                continue
            if tk == ";":
                st = buf.strip()
                buf = ""
                while (m := re.match(r"^([$\w.%]+):\s*(?!:)", st)):
                    self.out.append(f"{cname(m[1])}:;")
                    st = st[m.end():]
                if st:
                    self.stmt(st)
                continue
            buf += tk
        return self.out

    def stmt(self, st):
        if st.startswith(".reg"):
            m = re.match(r"\.reg\s*\.(\w+)\s+(.*)", st, re.S)
            for n in split_ops(m[2]):
                if q := re.match(r"(%?[\w$]+)<(\d+)>", n):
                    for i in range(int(q[2])):
                        self.regs[f"{q[1]}{i}"] = m[1]
                    names = [f"{q[1]}{i}" for i in range(int(q[2]))]
                else:
                    self.regs[n] = m[1]
                    names = [n]
                self.out.append(f"{RT[m[1]]} {', '.join(cname(x) for x in names)};")
            return
        if st.startswith(".local"):
            m = re.match(r"\.local\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$.]+)(?:\[(\d+)\])?", st)
            self.local[m[3]] = 1
            self.out.append(f"alignas({max(16, int(m[1] or 1))}) char {cname(m[3])}[{tsize(m[2]) * int(m[4] or 1)}];")
            return
        if st.startswith(".param"):
            m = re.match(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$.]+)(?:\[(\d+)\])?", st)
            self.scope_params.add(m[3])
            self.out.append(f"alignas(16) char {cname(m[3])}[{max(16, tsize(m[2]) * int(m[4] or 1))}];")
            return
        if st.startswith("."):
            return
        guard = ""
        if m := re.match(r"@(!?)(%?\w+)\s+(.*)", st, re.S):
            guard, st = f"if ({m[1]}{cname(m[2])}) ", m[3]
        m = re.match(r"([\w.:]+)\s*(.*)", st, re.S)
        op, ops = m[1], split_ops(m[2])
        try:
            code = self.ins(op, ops)
        except (PtxError, KeyError, IndexError) as e:
            self.m.missing.add(f"{op} ({e})")
            code = f'ptx_unimplemented("{op}", {self.line});'
        self.out.append(f"{guard}{{ {code} }}")

    def ins(self, op, o):
        p = op.split(".")
        b, t = p[0], p[-1]
        L = f"{self.line}"
        if b == "mov" and o[0].startswith("{"):
            n = [x.strip() for x in o[0][1:-1].split(",")]
            each = tsize(t) // len(n)
            src = self.rd(o[1], t)
            return f"auto v_ = {src}; " + " ".join(f"{cname(x)} = ({RT[self.regs[x]]})(v_ >> {8 * each * i});" for i, x in enumerate(n) if x != "_")
        if b == "mov" and o[1].startswith("{"):
            n = [x.strip() for x in o[1][1:-1].split(",")]
            each = tsize(t) // len(n)
            return self.wr(o[0], " | ".join(f"(({CT[t]})({self.rd(x, 'b%d' % (8 * each))}) << {8 * each * i})" for i, x in enumerate(n)), t)
        if b == "mov":
            return self.wr(o[0], self.rd(o[1], t), t)
        if b in ("add", "sub", "mul", "and", "or", "xor", "shl", "shr", "div", "rem", "min", "max") and "cc" not in p:
            if b == "mul" and "wide" in p:
                w = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}[t]
                return self.wr(o[0], f"({CT[w]}){self.rd(o[1], t)} * ({CT[w]}){self.rd(o[2], t)}", w)
            if b == "mul" and "hi" in p:
                return self.wr(o[0], f"mulhi({self.rd(o[1], t)}, {self.rd(o[2], t)})", t)
            if b in ("shl", "shr"):
                return self.wr(o[0], f"{b}_({self.rd(o[1], t)}, {self.rd(o[2], 'u32')})", t)
            if t == "pred":
                return self.wr(o[0], f"{self.rd(o[1], t)} {dict(zip(('and', 'or', 'xor'), '&|^'))[b]} {self.rd(o[2], t)}", t)
            x, y = self.rd(o[1], t), self.rd(o[2], t)
            if b in ("min", "max"):
                return self.wr(o[0], f"{b}_({x}, {y})", t)
            if b in ("div", "rem") and t[0] in "su":
                return self.wr(o[0], f"{b}_({x}, {y}, {L})", t)
            sym = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "div": "/"}[b]
            if t[0] == "s" and sym in "+-*":
                u = "u" + t[1:]
                x, y = f"({CT[u]}){x}", f"({CT[u]}){y}"
            e = f"{x} {sym} {y}"
            if "sat" in p and t == "f32":
                e = f"sat_({e})"
            return self.wr(o[0], f"({CT[t]})({e})", t)
        if b in ("add", "sub", "addc", "subc", "mad", "madc") and ("cc" in p or b in ("addc", "subc", "madc")):
            x, y = self.rd(o[1], "u32"), self.rd(o[2], "u32")
            if b.startswith("mad"):
                raise PtxError("mad.cc")
            cin = "cc_" if b.endswith("c") else "0"
            ex = f"(uint64_t){x} + {y} + {cin}" if b.startswith("add") else f"(uint64_t){x} - {y} - {cin}"
            return f"uint64_t v_ = {ex}; cc_ = (v_ >> 32) & 1; " + self.wr(o[0], "(uint32_t)v_", "u32")
        if b in ("mad", "fma"):
            if t[0] in "fb" and t != "b32":
                if "rm" in p or "rp" in p or "rz" in p:
                    return f"std::fesetround({'FE_DOWNWARD' if 'rm' in p else 'FE_UPWARD' if 'rp' in p else 'FE_TOWARDZERO'}); " + self.wr(o[0], f"fma_v_({self.rd(o[1], t)}, {self.rd(o[2], t)}, {self.rd(o[3], t)})", t) + " std::fesetround(FE_TONEAREST);"
                return self.wr(o[0], f"fma_({self.rd(o[1], t)}, {self.rd(o[2], t)}, {self.rd(o[3], t)})", t)
            if "wide" in p:
                w = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}[t]
                return self.wr(o[0], f"({CT[w]})((u{CT[w].lstrip('u')})({CT[w]}){self.rd(o[1], t)} * ({CT[w]}){self.rd(o[2], t)} + {self.rd(o[3], w)})", w)
            if "hi" in p:
                return self.wr(o[0], f"mulhi({self.rd(o[1], t)}, {self.rd(o[2], t)}) + {self.rd(o[3], t)}", t)
            u = "u" + t[1:]
            return self.wr(o[0], f"({CT[u]}){self.rd(o[1], u)} * {self.rd(o[2], u)} + {self.rd(o[3], u)}", u)
        if b in ("neg", "abs", "not", "ex2", "lg2", "rcp", "sqrt", "rsqrt", "sin", "cos", "tanh", "brev", "popc", "clz", "cnot"):
            return self.wr(o[0], f"{b}_({self.rd(o[1], t)})", "u32" if b in ("popc", "clz") else t)
        if b == "copysign":
            return self.wr(o[0], f"std::copysign({self.rd(o[2], t)}, {self.rd(o[1], t)})", t)
        if b in ("setp", "set"):
            cmp = p[1]
            x, y = self.rd(o[1], t), self.rd(o[2], t)
            e = f"cmp_{cmp}({x}, {y})"
            if len(p) > 3 and p[2] in ("and", "or", "xor"):
                e = f"({e} {dict(zip(('and', 'or', 'xor'), '&|^'))[p[2]]} {self.rd(o[3], 'pred')})"
            if b == "set":
                return self.wr(o[0], f"({CT[p[-2]]})(({e}) ? {'1.0f' if p[-2][0] == 'f' else '-1'} : 0)", p[-2])
            d = o[0].split("|")
            return f"bool v_ = {e}; {cname(d[0])} = v_;" + (f" {cname(d[1])} = !v_;" if len(d) > 1 and d[1] != "_" else "")
        if b == "selp":
            return self.wr(o[0], f"{self.rd(o[3], 'pred')} ? {self.rd(o[1], t)} : {self.rd(o[2], t)}", t)
        if b == "slct":
            return self.wr(o[0], f"{self.rd(o[3], t)} >= 0 ? {self.rd(o[1], p[1])} : {self.rd(o[2], p[1])}", p[1])
        if b == "cvt":
            tys = [x for x in p[1:] if x in CT]
            d, s = tys[0], tys[1]
            rnd = next((x for x in p if x in ("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna")), "")
            sat = "true" if "sat" in p else "false"
            if d in ("f16x2", "bf16x2"):
                h = d[:-2]
                return self.wr(o[0], f"{CT[d]}{{cvt_<{CT[h]}>({self.rd(o[2], s)}), cvt_<{CT[h]}>({self.rd(o[1], s)})}}", d)
            if d == "tf32":
                return self.wr(o[0], f"tf32_({self.rd(o[1], 'f32')})", "f32")
            fn = {"rzi": "std::trunc", "rni": "std::nearbyint", "rmi": "std::floor", "rpi": "std::ceil", "rz": "", "rn": "", "": "", "rm": "", "rp": "", "rna": ""}[rnd]
            x = self.rd(o[1], s)
            if fn:
                x = f"{fn}(({'double' if s == 'f64' else 'float'}){x})"
            e = f"cvt_<{CT[d]}>({x}, {sat})"
            if d[0] == "s" and tsize(d) < 4:
                return self.wr(o[0], f"(int32_t){e}", "s32") if RT[self.regs[o[0]]] == "uint32_t" else self.wr(o[0], e, d)
            return self.wr(o[0], e, d)
        if b == "cvta":
            sp = "shared" if "shared" in p else "other"
            x = self.rd(o[1], t)
            if sp == "shared":
                x = f"({x} - (uint64_t)stitch_emu::t_smem)" if "to" in p else f"({x} + (uint64_t)stitch_emu::t_smem)"
            return self.wr(o[0], x, t)
        if b == "isspacep":
            return f"{cname(o[0])} = {'(uint64_t)(' + self.rd(o[1], 'u64') + ' - (uint64_t)stitch_emu::t_smem) < (1u<<20)' if p[1].startswith('shared') else 'true'};"
        if b in ("ld", "ldu"):
            sp = next((x for x in p if x in ("param", "global", "shared", "local", "const")), "generic")
            a = self.addr(o[1], sp)
            dst = [x.strip() for x in o[0][1:-1].split(",")] if o[0].startswith("{") else [o[0]]
            if sp in ("param",):
                return " ".join(self.wr(x, f"raw<{CT[t]}>({a}+{i * tsize(t)})", t if tsize(t) >= 4 or t[0] != 's' else t) for i, x in enumerate(dst) if x != "_")
            poll = "stitch_emu::yield_now(); " if "acquire" in p or ("volatile" in p and sp == "global") else ""
            pre = f"{poll}char* a_ = {a}; LD(a_, {tsize(t) * len(dst)}, {L}); "
            return pre + " ".join(self.ldwr(x, i, t) for i, x in enumerate(dst) if x != "_")
        if b == "st":
            sp = next((x for x in p if x in ("param", "global", "shared", "local")), "generic")
            a = self.addr(o[0], sp)
            src = [x.strip() for x in o[1][1:-1].split(",")] if o[1].startswith("{") else [o[1]]
            pre = "" if sp == "param" else f"ST(a_, {tsize(t) * len(src)}, {L}); "
            return f"char* a_ = {a}; {pre}" + " ".join(f"put<{CT[t]}>(a_+{i * tsize(t)}, {self.rd(x, t)});" for i, x in enumerate(src))
        if b in ("atom", "red"):
            sp = "shared" if "shared" in p else "global"
            f = next(x for x in p if x in ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"))
            k = 1 if b == "atom" else 0
            a = self.addr(o[k], sp)
            args = ", ".join(self.rd(x, t) for x in o[k + 1:])
            e = f"atom_{f}(({CT[t]}*){a}, {args}, {L})"
            return self.wr(o[0], e, t) if b == "atom" else e + ";"
        if b in ("bar", "barrier") and ("sync" in p or "arrive" in p or "red" in p):
            if "warp" in p:
                return f"__syncwarp({self.rd(o[0], 'u32')}, FILE_, {L});"
            if "red" in p:
                if o[1] != "0":
                    raise PtxError("named barrier")
                x, f = self.rd(o[-1], "pred"), {"popc": "count", "and": "and", "or": "or"}[p[2]]
                return self.wr(o[0], f"(uint32_t)__syncthreads_{f}({x}, FILE_, {L})", "u32") if f == "count" else f"{cname(o[0])} = __syncthreads_{f}({x}, FILE_, {L}) != 0;"
            if "cluster" in p or len(o) > 1 or (o[0] != "0" and not o[0].startswith("%") and o[0] not in ("0",)):
                raise PtxError("named barrier")
            return f"__syncthreads(FILE_, {L});"
        if b == "shfl":
            kind = p[2]
            d = o[0].split("|")
            return (f"uint32_t c_ = {self.rd(o[3], 'u32')}; bool q_; uint32_t v_ = shfl_ptx(stitch_emu::W_{ {'idx': 'SHFL', 'up': 'UP', 'down': 'DOWN', 'bfly': 'XOR'}[kind]}, "
                    f"{self.rd(o[4], 'u32')}, {self.rd(o[1], 'u32')}, {self.rd(o[2], 'u32')}, c_, q_, {L}); {cname(d[0])} = v_;" + (f" {cname(d[1])} = q_;" if len(d) > 1 else ""))
        if b == "vote":
            k = p[2]
            x = self.rd(o[1], "pred")
            if k == "ballot":
                return self.wr(o[0], f"__ballot_sync({self.rd(o[2], 'u32')}, {x}, FILE_, {L})", "u32")
            return f"{cname(o[0])} = __{k}_sync({self.rd(o[2], 'u32')}, {x}, FILE_, {L});"
        if b == "activemask":
            return self.wr(o[0], f"__activemask(FILE_, {L})", "u32")
        if b == "match":
            return self.wr(o[0], f"__match_any_sync({self.rd(o[2], 'u32')}, {self.rd(o[1], t)}, FILE_, {L})", "u32")
        if b == "redux":
            return self.wr(o[0], f"__reduce_{p[2]}_sync({self.rd(o[2], 'u32')}, {self.rd(o[1], t)}, FILE_, {L})", t)
        if b == "bra":
            return f"goto {cname(o[0])};"
        if b in ("ret", "exit"):
            return "return;"
        if b == "call":
            a = [x for x in o]
            rets = [x.strip() for x in a.pop(0)[1:-1].split(",")] if a[0].startswith("(") else []
            fn = a.pop(0)
            args = [x.strip() for x in a[0][1:-1].split(",")] if a and a[0].startswith("(") else []
            if fn == "vprintf":
                return f"ptx_vprintf(*(const char**){cname(args[0])}, *(char**){cname(args[1])}); *(int*){cname(rets[0])} = 0;"
            if fn == "__assertfail":
                return f'stitch_emu::trap({{FILE_, {L}}}, "a failing device assert()");'
            if fn not in [f.name for f in self.m.funcs]:
                raise PtxError(f"call {fn}")
            return f"{cname(fn)}({', '.join(cname(x) for x in rets + [y for y in args if y])});"
        if b in ("membar", "fence"):
            return "stitch_emu::fence(1);" if "cta" not in p else ";"
        if b == "bfi":
            return self.wr(o[0], f"bfi_({self.rd(o[1], t)}, {self.rd(o[2], t)}, {self.rd(o[3], 'u32')}, {self.rd(o[4], 'u32')})", t)
        if b == "bfe":
            return self.wr(o[0], f"bfe_({self.rd(o[1], t)}, {self.rd(o[2], 'u32')}, {self.rd(o[3], 'u32')})", t)
        if b == "bfind":
            z = self.rd(o[1], "u" + t[1:])
            return self.wr(o[0], f"clz_({z})" if "shiftamt" in p else f"{tsize(t) * 8 - 1} - clz_({z})", "u32")
        if b == "prmt":
            return self.wr(o[0], f"__byte_perm({self.rd(o[1], 'u32')}, {self.rd(o[2], 'u32')}, {self.rd(o[3], 'u32')})", "u32")
        if b == "lop3":
            return self.wr(o[0], f"lop3_({self.rd(o[1], 'u32')}, {self.rd(o[2], 'u32')}, {self.rd(o[3], 'u32')}, {self.rd(o[4], 'u32')})", "u32")
        if b == "shf":
            return self.wr(o[0], f"__funnelshift_{p[1]}({self.rd(o[1], 'u32')}, {self.rd(o[2], 'u32')}, {self.rd(o[3], 'u32')})", "u32")
        if b == "dp4a":
            return self.wr(o[0], f"__dp4a({self.rd(o[1], 's32')}, {self.rd(o[2], 's32')}, {self.rd(o[3], 's32')})", "s32")
        if b == "testp":
            return f"{cname(o[0])} = { {'infinite': 'std::isinf', 'number': '!std::isnan', 'finite': 'std::isfinite', 'notanumber': 'std::isnan'}[p[1]]}({self.rd(o[1], t)});"
        if b in ("trap", "brkpt"):
            return f"stitch_emu::trap({{FILE_, {L}}}, \"trap\");"
        if b == "nanosleep":
            return "stitch_emu::yield_now();"
        if b in ("prefetch", "prefetchu", "discard", "applypriority", "griddepcontrol", "setmaxnreg"):
            return ";"
        if b == "cp" and p[1] == "async":
            if "commit_group" in op:
                return "stitch_emu::async_commit();"
            if "wait_group" in op or "wait_all" in op:
                return f"ASYNC_WAIT({self.rd(o[0], 'u32') if o else '~0u'}, {L});"
            if "bulk" in p:
                raise PtxError("bulk copy")
            n = self.rd(o[2], "u32")
            src = self.rd(o[3], "u32") if len(o) > 3 else n
            return f"cp_async({self.addr(o[0], 'shared')}, {self.addr(o[1], 'global')}, {n}, {src}, {L});"
        if b == "mbarrier":
            if p[1] == "init":
                return f"mbar_init({self.addr(o[0], 'shared')}, {self.rd(o[1], 'u32')});"
            if p[1] == "arrive":
                n = self.rd(o[2], "u32") if len(o) > 2 else "1"
                return self.wr(o[0], f"mbar_arrive({self.addr(o[1], 'shared')}, {n})", "u64")
            if p[1] in ("test_wait", "try_wait") and "parity" not in p:
                return f"{cname(o[0])} = mbar_test({self.addr(o[1], 'shared')}, {self.rd(o[2], 'u64')});"
            if p[1] == "inval":
                return ";"
            raise PtxError("mbarrier form")
        if b == "ldmatrix":
            n = [x.strip() for x in o[0][1:-1].split(",")]
            return f"uint32_t v_[4]; ldmatrix_({self.addr(o[1], 'shared')}, {len(n)}, {'true' if 'trans' in p else 'false'}, v_, {L}); " + " ".join(f"{cname(x)} = v_[{i}];" for i, x in enumerate(n))
        if b == "mma":
            v = [[x.strip() for x in q[1:-1].split(",")] for q in o[:4]]
            shape = next(x for x in p if re.match(r"m\d+n\d+k\d+", x))
            ty = [x for x in p if x in CT or x in ("tf32", "bf16", "f16")]
            arr = lambda q: "{" + ", ".join(self.rd(x, "b32") for x in q) + "}"
            return (f"uint32_t a_[4] = {arr(v[1])}, b_[4] = {arr(v[2])}, c_[4] = {arr(v[3])}, d_[4]; mma_{shape}_{'_'.join(ty)}(a_, b_, c_, d_, {L}); " +
                    " ".join(f"{cname(x)} = d_[{i}];" for i, x in enumerate(v[0])))
        if b == "wmma":
            regs = lambda q: [x.strip() for x in q[1:-1].split(",")]
            shape = next(x for x in p if re.match(r"m\d+n\d+k\d+", x))
            if p[1] == "load":
                which, sp = p[2], ("shared" if "shared" in p else "global")
                n = regs(o[0])
                ld = self.rd(o[2], "u32") if len(o) > 2 else "0"
                return (f"uint32_t v_[{len(n)}]; wmma_load('{which}', {'true' if 'col' in p else 'false'}, {self.addr(o[1], sp)}, {ld}, \"{shape}\", \"{t}\", {len(n)}, v_, {L}); " + " ".join(f"{cname(x)} = v_[{i}];" for i, x in enumerate(n)))
            if p[1] == "store":
                n = regs(o[1])
                sp = "shared" if "shared" in p else "global"
                return f"uint32_t v_[] = {{{', '.join(self.rd(x, 'b32') for x in n)}}}; wmma_store({'true' if 'col' in p else 'false'}, {self.addr(o[0], sp)}, {self.rd(o[2], 'u32') if len(o) > 2 else '0'}, \"{shape}\", \"{t}\", {len(n)}, v_, {L});"
            v = [regs(q) for q in o[:4]]
            ty = [x for x in p if x in CT or x in ("bf16", "tf32")]
            arr = lambda q: "{" + ", ".join(self.rd(x, "b32") for x in q) + "}"
            return (f"uint32_t a_[] = {arr(v[1])}, b_[] = {arr(v[2])}, c_[] = {arr(v[3])}, d_[{len(v[0])}]; wmma_mma(\"{shape}\", \"{'.'.join(ty)}\", a_, {len(v[1])}, b_, {len(v[2])}, c_, {len(v[3])}, d_, {len(v[0])}, {L}); " +
                    " ".join(f"{cname(x)} = d_[{i}];" for i, x in enumerate(v[0])))
        raise PtxError("opcode")

    def ldwr(self, x, i, t):
        e = f"raw<{CT[t]}>(a_+{i * tsize(t)})"
        if t[0] == "s" and tsize(t) < 8 and RT[self.regs[x]] != f"uint{8 * tsize(t)}_t":
            w = RT[self.regs[x]]
            return f"{cname(x)} = ({w})(int64_t){e};"
        return f"{cname(x)} = ({RT[self.regs[x]]})bits<{CT[t]}>({e});"


def translate(text, folder=None):
    return translate_(text)[0]


def translate_(text: str):
    m = parse(text)
    out = ['#include "ptx_rt.h"', "namespace {"]
    files = {k: v for k, v in m.files.items()}
    main = next((v for v in files.values() if v.endswith(".cu")), "?")
    out.append(f'static const char* const FILE_ = "{main}";')
    for v in m.vars.values():
        if v.space != "shared":
            init = "{" + ",".join(str(b) for b in v.init) + "}" if v.init else "{}"
            out.append(f"alignas({max(16, v.align)}) unsigned char {cname(v.name)}[{max(1, v.size)}] = {init};")
    for f in m.funcs:
        if not f.entry:
            out.append(f"void {cname(f.name)}({', '.join('char* ' + cname(p[0]) for p in f.ret + f.params)});")
    for f in m.funcs:
        e = Emit(m, f)
        lines = e.run()
        if f.entry:
            out.append(f"void {cname(f.name)}(void* clo_) {{ char* pp_ = (char*)clo_; unsigned cc_ = 0; (void)cc_; (void)pp_;")
            off = 0
            for n, s, a in f.params:
                off = (off + a - 1) // a * a
                out.append(f"  char* {cname(n)} = pp_ + {off}; (void){cname(n)};")
                off += s
        else:
            out.append(f"void {cname(f.name)}({', '.join('char* ' + cname(p[0]) for p in f.ret + f.params)}) {{ unsigned cc_ = 0; (void)cc_;")
        out += ["  " + x for x in lines] + ["}"]
    out.append("struct Reg_ { Reg_() {")
    for f in m.funcs:
        if f.entry:
            offs, off = [], 0
            for n, s, a in f.params:
                off = (off + a - 1) // a * a
                offs.append((off, s))
                off += s
            out.append(f'  ptx_register("{f.name}", &{cname(f.name)}, {{{", ".join("{%d,%d}" % x for x in offs)}}}, {off});')
    for v in m.vars.values():
        if v.space == "shared":
            if v.size and v.offset >= 256 * 1024:
                out.append(f'  ptx_shared({v.offset}, {v.size}, "{v.name}");')
        else:
            out.append(f'  ptx_symbol("{v.name}", {cname(v.name)}, {v.size});')
    out.append("} } reg_;\n}")
    return "\n".join(out) + "\n", m
