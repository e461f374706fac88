"""f32 products on tensor cores by cuBLASLt, as exact as f32: each factor is the sum of two TF32 numbers.

Three TF32 products for one of f32 (3xTF32) still take half the time that a GPU with fast tensor cores
takes for f32; what is left out is 2^-22 of each product.  The parts of weights are made when the weights
are bound.
"""

from dataclasses import dataclass, replace

from stitch_tui.agents.builtin import emit, library_products
from stitch_tui.agents.builtin.ir import Access, Align, Numerics, Subtask, Tune
from stitch_tui.tools.graph import DType, Graph, ValueKind

NAME = "tensor-cores"
LEAST = 128
"""Rows, columns and depth from which it can pay: each factor is read once more, and three times its size
is written."""
PARTS_MIB = 512
"""Of the workspace, at most, for the parts of the left factor."""
NUMERICS = Numerics(multiply="f32 (as three of TF32 each)")


def tune(subtask: Subtask) -> Tune | None:
    """The strategy, or None where it cannot pay."""
    root = library_products.root_of(subtask)
    if root.batched or root.a.dtype is not DType.F32 or root.b.dtype is not DType.F32:
        return None
    if min(root.extents) < LEAST:
        return None
    direct = _added(subtask) is not None
    follows = "" if direct else "; one pointwise kernel does what follows"
    sentence = f"cuBLASLt computes the product on tensor cores, each f32 as two TF32 numbers{follows}."
    sizes = {
        "SCRATCH_MIB": library_products.SCRATCH_MIB,
        "PARTS_MIB": PARTS_MIB,
        "SPLIT_THREADS": 256,
        "ALGORITHMS": 8,
    }
    if not direct:
        sizes |= library_products.epilogue_constants(subtask)
    return Tune(NAME, sentence, sizes)


@dataclass(frozen=True)
class _Added:
    """What the library adds to the product itself: one number for each column, one for each element."""

    bias: Access | None = None
    residual: Access | None = None


def _added(subtask: Subtask) -> _Added | None:
    """What follows the product, if it is nothing but such additions; None: a kernel does what follows."""
    instrs, stores = subtask.dag.instrs, subtask.dag.stores
    if len(stores) != 1 or subtask.accesses[stores[0].access].dtype is not DType.F32:
        return None
    found: dict[str, Access] = {}
    value = stores[0].instr
    for _ in range(len(instrs) // 2):
        sides = [instrs[i] for i in instrs[value].args]
        loads = [side for side in sides if side.op == "load"]
        if instrs[value].op != "add" or len(loads) != 1:
            return None
        access = subtask.accesses[int(loads[0].literal)]
        name = "bias" if access.rank == 1 else "residual"
        if name in found or access.dtype is not DType.F32 or access.align is not Align.BROADCAST:
            return None
        found[name] = access
        value = next(i for i in instrs[value].args if instrs[i].op != "load")
    return _Added(**found) if instrs[value].op == "root" and len(instrs) == 1 + 2 * len(found) else None


def source(graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str:
    """The `.cu` text."""
    root, added = library_products.root_of(subtask), _added(subtask)
    tensors, direct = emit.border(graph, subtask), added is not None
    head = emit.opening(replace(subtask, numerics=NUMERICS), tensors, tune, bound)
    weight = graph.kind(root.b.value) in (ValueKind.PARAMETER, ValueKind.CONSTANT)
    parts = [
        *library_products.opening(subtask, tensors, head, "cublasLt.h", direct=direct),
        f"constexpr bool RIGHT_IS_BOUND = {str(weight).lower()};  // a weight: split once, by stitch_bind",
        emit.template("tensor_cores"),
        emit.call_check(tensors),
        library_products.problem(subtask, tensors),
        library_products.product_bytes(direct=False) + "\n" + _NEEDED,
        library_products.SIZES.replace("@BOUND@", "bound_bytes_of(p)"),
        _BIND.replace("@ADDED@", _pointers(added or _Added(), tensors)),
        library_products.run(subtask, tensors, tune, _call(added or _Added(), tensors), direct=direct),
    ]
    return "\n\n".join(parts)


def _pointers(added: _Added, tensors: emit.Border) -> str:
    """An ``Added`` in C."""
    places = (f"(const float*){tensors.tensor(a).where}.data" if a else "nullptr" for a in _each(added))
    return f"{{{', '.join(places)}}}"


def _each(added: _Added) -> tuple[Access | None, Access | None]:
    return added.bias, added.residual


def _call(added: _Added, tensors: emit.Border) -> str:
    """The call of ``multiply``, or a refusal of tensors to add that repeat."""
    test = []
    for access, count in zip(_each(added), ("p.n", "p.count"), strict=True):
        where = tensors.tensor(access).where if access else ""
        test += [f"{where}.numel != {count} || !is_contiguous({where})"] if access else []
    pointers = _pointers(added, tensors).replace("{", "{{").replace("}", "}}")
    chosen = "*(const Chosen*)*call->host_state"
    call = f"multiply(p, {chosen}, call, {pointers}, (float*){{result}}, product_bytes(p))"
    return f"{' || '.join(test)} ? STITCH_UNSUPPORTED_SHAPE : {call}" if test else call


_NEEDED = """\
static int64_t bound_bytes_of(const Product& p) { return RIGHT_IS_BOUND ? right_bytes(p) : 0; }
static int64_t needed_bytes(const Product& p) {
  const int64_t parts = left_bytes(p) + (RIGHT_IS_BOUND ? 0 : right_bytes(p));
  return product_bytes(p) + parts + ((int64_t)SCRATCH_MIB << 20);
}"""

_BIND = """\
extern "C" int stitch_bind(const stitch_call* call) {
  Product p;
  if (!expected(call)) return STITCH_BAD_CALL;
  if (!problem_of(call, p)) return STITCH_UNSUPPORTED_SHAPE;
  if (call->bound_bytes < bound_bytes_of(p)) return STITCH_BAD_CALL;
  if (call->workspace_bytes < needed_bytes(p)) return STITCH_BAD_CALL;
  const cudaStream_t stream = (cudaStream_t)call->stream;
  const Places places(p, call, product_bytes(p));
  if (RIGHT_IS_BOUND) split(right_factor(p), places.right, stream);
  Chosen* chosen = (Chosen*)*call->host_state;
  if (!chosen) {
    chosen = new Chosen;
    *call->host_state = chosen;
    if (cublasLtCreate(&chosen->handle) != CUBLAS_STATUS_SUCCESS) return STITCH_CUDA_ERROR;
  }
  const int64_t rows = rows_at_once(p), depth = 3 * 4 * packs_of(p.k);
  float* const tried = (float*)call->workspace;
  if (p.count > 0)
    choose(*chosen, rows, p.n, depth, @ADDED@, places.left, places.right, tried, places.scratch, stream);
  return cudaGetLastError() == cudaSuccess ? STITCH_OK : STITCH_CUDA_ERROR;
}

extern "C" int stitch_unbind(const stitch_call* call) {
  Chosen* const chosen = (Chosen*)*call->host_state;
  if (chosen && chosen->handle) cublasLtDestroy(chosen->handle);
  delete chosen;
  *call->host_state = nullptr;
  return STITCH_OK;
}"""
