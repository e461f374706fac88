"""Running sums and products along one dimension, with pointwise work before and after."""

from stitch_tui.agents.builtin import c_scalar, emit, row_text
from stitch_tui.agents.builtin.ir import SCANS, RowsRoot, ScanRoot, Subtask, Tune
from stitch_tui.tools.graph import Graph

PACK_BYTES = 16
_OPERATION = {"scan_sum": "Sum", "scan_prod": "Product"}


def strategies(subtask: Subtask) -> list[Tune]:
    """Threads side by side in a row that lies along memory, else on neighbouring rows."""
    root = subtask.root
    assert isinstance(root, ScanRoot)
    pack = max(PACK_BYTES // max((a.dtype.size for a in subtask.accesses), default=4), 2)
    pack = pack if root.along and root.extents[1] % pack == 0 else 1
    along = [
        Tune(name, f"{who} for each row, a tile at a time, with shuffles inside one.", sizes | {"PACK": pack})
        for name, who, sizes in (
            ("block-per-row", "One block of 256 threads", {"LANES": 256, "ROWS": 1}),
            ("warp-per-row", "One warp", {"LANES": 32, "ROWS": 4}),
            ("large-block-per-row", "One block of 1024 threads", {"LANES": 1024, "ROWS": 1}),
        )
    ]
    across = [
        Tune(name, f"Neighbouring threads on neighbouring rows, {who} on each.", sizes | {"PACK": 1})
        for name, who, sizes in (
            ("parts-of-columns", "16 threads", {"LANES": 16, "ROWS": 32}),
            ("column-per-thread", "one thread", {"LANES": 1, "ROWS": 64}),
        )
    ]
    if not root.along:
        return across if root.extents[0] < 100_000 else across[::-1]
    return along if root.extents[1] > 512 else [along[1], along[0], along[2]]


def source(graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str:
    """The `.cu` text."""
    root = subtask.root
    assert isinstance(root, ScanRoot)
    rows = RowsRoot((root.axis,) if subtask.rank else (), root.extents, along=root.along)
    tensors = emit.border(graph, subtask)
    kernel = _Scan(subtask, tensors)
    parts = [
        *row_text.opening(subtask, tensors, tune, bound, rows, columns=not root.along),
        f"constexpr bool REVERSE = {str(root.reverse).lower()};  // from the last element to the first",
        *([emit.template("scan"), kernel.along()] if root.along else [kernel.across()]),
        emit.call_check(tensors),
        row_text.arranging(subtask, tensors, rows),
        _run(subtask, tensors, tune),
    ]
    return "\n\n".join(parts)


class _Scan:
    """The text of the kernels: values before the scans are computed once more after them."""

    def __init__(self, subtask: Subtask, tensors: emit.Border) -> None:
        self.subtask, self.tensors, self.accesses = subtask, tensors, subtask.accesses
        self.instrs, self.stores = subtask.dag.instrs, subtask.dag.stores
        self.scans = [i for i, instr in enumerate(self.instrs) if instr.op in SCANS]
        self.before = self._before()

    def _before(self) -> list[int]:
        """What the scanned values are made of."""
        needed: set[int] = set()
        waiting = [self.instrs[s].args[0] for s in self.scans]
        while waiting:
            index = waiting.pop()
            if index not in needed:
                needed.add(index)
                waiting += self.instrs[index].args
        return sorted(needed)

    def _operation(self, scan: int) -> str:
        instr = self.instrs[scan]
        return f"{_OPERATION[instr.op]}<{instr.register.value}>"

    def _signature(self, template: list[str]) -> list[str]:
        common = ["Space space", "int outer", "int64_t rows", "int64_t length"]
        parameters = ",\n    ".join([*common, *emit.parameters(self.tensors, self.accesses)])
        name = emit.kernel_name(self.subtask)
        return [
            *template,
            f"__global__ void __launch_bounds__(LANES * ROWS) {name}(\n    {parameters}) {{",
            "  const int lane = lane_of_thread();",
            "  for (int64_t tile = blockIdx.x; tile * ROWS < rows; tile += gridDim.x) {",
            "    const int64_t mine = tile * ROWS + row_of_thread();",
            "    const bool live = mine < rows;  // a thread without a row stores nothing",
            "    int64_t at[OPERANDS] = {};",
            "    locate(space, 0, outer, live ? mine : rows - 1, at);",
        ]

    def _place(self, access: int) -> str:
        name = emit.operand_name(self.tensors, self.accesses[access], access)
        return f"{name} + at[{access}] + d * space.inner[{access}]"

    def _value(self, index: int, element: str) -> str:
        instr = self.instrs[index]
        if instr.op == "load":
            access = int(instr.literal)
            value = c_scalar.widened(self.accesses[access].dtype, element.format(access))
            return f"const {instr.register.value} v{index} = {value};"
        return emit.assignments(self.instrs, [index], "")[0]

    def _loads(self) -> list[int]:
        return sorted({int(i.literal) for i in self.instrs if i.op == "load"})

    def along(self) -> str:
        """LANES threads walk along a row, a pack each, tile after tile."""
        lines = self._signature(["template <int VEC>"])
        for s in self.scans:
            lines.append(f"    {self._operation(s)}::State carry{s} = {self._operation(s)}::start();")
        lines += [
            "    for (int64_t base = 0; base < length; base += LANES * VEC) {",
            "      const int64_t walked = base + lane * VEC, d = REVERSE ? length - VEC - walked : walked;",
            "      const bool here = walked < length;",
        ]
        for access in self._loads():
            c_type = c_scalar.C_TYPE[self.accesses[access].dtype]
            lines.append(f"      Pack<{c_type}, VEC> raw{access} = {{}};")
        lines.append("      if (here) {")
        for access in self._loads():
            lines.append(
                f"        raw{access} = load_pack<VEC>({self._place(access)}, space.inner[{access}], VEC);"
            )
        lines.append("      }")
        lines += [f"      {self.instrs[s].register.value} run{s}[VEC];" for s in self.scans]
        element = "raw{}.at[REVERSE ? VEC - 1 - e : e]"
        lines += ["#pragma unroll", "      for (int e = 0; e < VEC; ++e) {"]
        lines += ["        " + self._value(i, element) for i in self.before if i not in self.scans]
        for s in self.scans:
            operation, argument = self._operation(s), f"v{self.instrs[s].args[0]}"
            joined = f"{operation}::merge(run{s}[e > 0 ? e - 1 : 0], {argument})"
            lines.append(f"        run{s}[e] = e > 0 ? {joined} : {argument};")
        lines.append("      }")
        for s in self.scans:
            operation = self._operation(s)
            lines += [
                f"      const Prefix<{operation}> scan{s} = prefix<{operation}>(run{s}[VEC - 1]);",
                f"      const auto first{s} = {operation}::merge(carry{s}, scan{s}.before);",
                f"      carry{s} = {operation}::merge(carry{s}, scan{s}.all);",
            ]
        for store in self.stores:
            c_type = c_scalar.C_TYPE[self.accesses[store.access].dtype]
            lines.append(f"      Pack<{c_type}, VEC> out{store.access};")
        lines += ["#pragma unroll", "      for (int e = 0; e < VEC; ++e) {"]
        for index, instr in enumerate(self.instrs):
            if index in self.scans:
                value = f"{self._operation(index)}::merge(first{index}, run{index}[e])"
                lines.append(f"        const {instr.register.value} v{index} = {value};")
            else:
                lines.append("        " + self._value(index, element))
        for store in self.stores:
            value = c_scalar.narrowed(self.accesses[store.access].dtype, f"v{store.instr}")
            lines.append(f"        out{store.access}.at[REVERSE ? VEC - 1 - e : e] = {value};")
        lines += ["      }", "      if (live && here) {"]
        for store in self.stores:
            place = f"{self._place(store.access)}, space.inner[{store.access}], VEC"
            lines.append(f"        store_pack<VEC>({place}, out{store.access});")
        return "\n".join([*lines, "      }", "    }", "  }", "}"])

    def across(self) -> str:
        """ROWS neighbouring rows, each walked by LANES threads, which first sum their parts up."""
        lines = self._signature([])
        lines += [
            "    const int64_t size = (length + LANES - 1) / LANES, begin = lane * size;",
            "    const int64_t end = begin + size < length ? begin + size : length;",
        ]
        for s in self.scans:
            lines.append(f"    {self._operation(s)}::State s{s} = {self._operation(s)}::start();")
        step = "    for (int64_t walked = begin; walked < end; ++walked) {"
        place = "      const int64_t d = REVERSE ? length - 1 - walked : walked;"
        loads = {
            a: f"{emit.operand_name(self.tensors, self.accesses[a], a)}[at[{a}] + d * space.inner[{a}]]"
            for a in self._loads()
        }

        def value(index: int) -> str:
            element = loads[int(self.instrs[index].literal)] if self.instrs[index].op == "load" else ""
            return "      " + self._value(index, element)

        def merged(scan: int) -> str:
            return f"      s{scan} = {self._operation(scan)}::merge(s{scan}, v{self.instrs[scan].args[0]});"

        lines += ["    if constexpr (LANES > 1) {", step, place]
        lines += [value(i) for i in self.before if i not in self.scans] + [merged(s) for s in self.scans]
        lines.append("    }")
        lines += [f"    s{s} = before_lane<{self._operation(s)}>(s{s});" for s in self.scans]
        lines += ["    }", "#pragma unroll 4", step, place]
        for index, instr in enumerate(self.instrs):
            if index in self.scans:
                lines += [merged(index), f"      const {instr.register.value} v{index} = s{index};"]
            else:
                lines.append(value(index))
        lines.append("      if (live) {")
        for store in self.stores:
            access = self.accesses[store.access]
            name = emit.operand_name(self.tensors, access, store.access)
            narrow = c_scalar.narrowed(access.dtype, f"v{store.instr}")
            lines.append(f"        {name}[at[{store.access}] + d * space.inner[{store.access}]] = {narrow};")
        return "\n".join([*lines, "      }", "    }", "  }", "}"])


def _run(subtask: Subtask, tensors: emit.Border, tune: Tune) -> str:
    root = subtask.root
    assert isinstance(root, ScanRoot)
    name = emit.kernel_name(subtask)
    arguments = ["r.space", "r.outer", "r.rows", "r.length", *emit.arguments(tensors, subtask.accesses)]
    launch = f"<<<grid, block_shape(), 0, stream>>>({', '.join(arguments)});"
    body = [
        "  Rows r;",
        "  if (const int rc = arranged(call, r)) return rc;",
        "  if (r.rows == 0 || r.length == 0) return STITCH_OK;",
        "  const unsigned grid = grid_for((r.rows + ROWS - 1) / ROWS);",
    ]
    if not root.along:
        return emit.main_function([*body, f"  {name}{launch}"])
    if tune.constants["PACK"] == 1:
        return emit.main_function([*body, f"  {name}<1>{launch}"])
    body += [
        f"  const bool packed = {row_text.packing(subtask, tensors)};",
        "  if (packed) {",
        f"    {name}<PACK>{launch}",
        "  } else {",
        f"    {name}<1>{launch}",
        "  }",
    ]
    return emit.main_function(body)
