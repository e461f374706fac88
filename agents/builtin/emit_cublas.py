"""Matrix products by cuBLAS, and what follows them as one pointwise kernel over the product."""

from dataclasses import replace

from stitch_tui.agents.builtin import emit, emit_gemm, emit_pointwise
from stitch_tui.agents.builtin.ir import Access, Align, GemmRoot, Kind, Subtask, Tune
from stitch_tui.tools.graph import Graph

NAME = "cublas"
PRODUCT = "the product"
"""Value id of the product between cuBLAS and the epilogue; no graph has it."""
SCRATCH_MIB = 32
"""What NVIDIA recommends as cuBLAS's workspace on Hopper."""
LARGE = 1 << 24
"""Multiplications from which a library's tuned kernels are the first to try."""


def tune(subtask: Subtask, *, tf32: bool) -> Tune | None:
    """The strategy, or None where cuBLAS has no form for the operands."""
    root = subtask.root
    if not isinstance(root, GemmRoot) or root.a.dtype != root.b.dtype:
        return None
    if root.batched and not (root.a.rank == root.b.rank == subtask.rank):
        return None
    follows = "" if _is_plain(subtask) else "; one pointwise kernel does what follows"
    precision = "TF32 products, as the reference allows" if tf32 else "no TF32"
    sizes = {"SCRATCH_MIB": SCRATCH_MIB, "TF32": int(tf32)}
    if not _is_plain(subtask):
        sizes |= emit_pointwise.strategies(_epilogue(subtask))[0].constants
    return Tune(NAME, f"cuBLAS computes the product ({precision}){follows}.", sizes)


def is_large(subtask: Subtask) -> bool:
    assert isinstance(subtask.root, GemmRoot)
    return subtask.points * subtask.root.extents[2] >= LARGE


def source(graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str:
    """The `.cu` text."""
    root = subtask.root
    assert isinstance(root, GemmRoot)
    plain, follows = _is_plain(subtask), _epilogue(subtask)
    tensors = emit.border(graph, subtask)
    between = emit.Tensor("product", root.a.dtype, subtask.rank, "product")
    inner = emit.Border({**tensors.inputs, PRODUCT: between}, tensors.outputs)
    parts = [
        emit.opening(subtask, tensors, tune, bound).replace(
            "#include <cuda_runtime.h>", "#include <cuda_runtime.h>\n#include <cublas_v2.h>"
        ),
        emit.constants(subtask.rank, len(follows.accesses)),
        emit.template("scalar"),
        emit.template("space"),
        *([] if plain else [emit.template("pack"), emit_pointwise.kernel(follows, inner)]),
        emit_gemm.VIEW,
        emit.template("cublas"),
        emit.call_check(tensors),
        _PROBLEM.replace("@VIEWS@", "\n".join(emit_gemm.views(root, tensors, refusal="false")))
        .replace("@BATCH_DIMS@", str(subtask.rank - 2 if root.batched else 0))
        .replace("@TYPE@", _TYPE[root.a.dtype.value])
        .replace("@SIZE@", str(root.a.dtype.size)),
        _sizes(plain),
        _run(subtask, follows, tensors, inner, tune, plain),
    ]
    return "\n\n".join(parts)


_TYPE = {"f32": "CUDA_R_32F", "f16": "CUDA_R_16F", "bf16": "CUDA_R_16BF"}


def _is_plain(subtask: Subtask) -> bool:
    """Whether the product itself is the one result."""
    assert isinstance(subtask.root, GemmRoot)
    instrs, stores = subtask.dag.instrs, subtask.dag.stores
    plain = len(stores) == 1 and instrs[stores[0].instr].op == "root" and len(instrs) == 1
    return plain and subtask.accesses[0].dtype is subtask.root.a.dtype


def _epilogue(subtask: Subtask) -> Subtask:
    """What follows the product, as a pointwise subtask that reads it."""
    assert isinstance(subtask.root, GemmRoot)
    product = Access(PRODUCT, subtask.root.a.dtype, subtask.rank, Align.BROADCAST)
    number = len(subtask.accesses)
    instrs = tuple(replace(i, op="load", literal=number) if i.op == "root" else i for i in subtask.dag.instrs)
    return replace(
        subtask,
        kind=Kind.POINTWISE,
        accesses=(*subtask.accesses, product),
        dag=replace(subtask.dag, instrs=instrs),
        root=None,
    )


_PROBLEM = """\
// The product that a call asks for, or false where cuBLAS has no form for it.
static bool problem_of(const stitch_call* call, Product& p) {
@VIEWS@
  p.type = @TYPE@;
  p.size = @SIZE@;
  return shape_product(p, a_view, rows_of_a, b_view, columns_of_b, @BATCH_DIMS@);
}"""


def _sizes(plain: bool) -> str:
    product = "0" if plain else "(p.count * p.size + 255) / 256 * 256"
    return f"""\
static int64_t product_bytes(const Product& {"" if plain else "p"}) {{ return {product}; }}
static int64_t needed_bytes(const Product& p) {{ return product_bytes(p) + ((int64_t)SCRATCH_MIB << 20); }}

extern "C" int stitch_sizes(const stitch_call* call, int64_t* workspace_bytes, int64_t* bound_bytes) {{
  Product p;
  if (!expected(call)) return STITCH_BAD_CALL;
  if (!problem_of(call, p)) return STITCH_UNSUPPORTED_SHAPE;
  *workspace_bytes = needed_bytes(p);
  *bound_bytes = 0;
  return STITCH_OK;
}}"""


def _run(
    subtask: Subtask, follows: Subtask, tensors: emit.Border, inner: emit.Border, tune: Tune, plain: bool
) -> str:
    first = next(iter(tensors.outputs.values())).where
    body = [
        "  Product p;",
        "  if (!problem_of(call, p)) return STITCH_UNSUPPORTED_SHAPE;",
        f"  if ({first}.numel != p.count) return STITCH_UNSUPPORTED_SHAPE;",
        "  if (p.count == 0) return STITCH_OK;",
        "  if (call->workspace_bytes < needed_bytes(p)) return STITCH_BAD_CALL;",
        "  const cublasHandle_t handle = (cublasHandle_t)*call->host_state;",
        "  if (!handle) return STITCH_BAD_CALL;  // stitch_bind makes it",
    ]
    if plain:
        body += [
            f"  if (!is_contiguous({first})) return STITCH_UNSUPPORTED_SHAPE;",
            f"  return multiply(p, handle, call, {first}.data, product_bytes(p));",
        ]
        return emit.main_function(body)
    body += [
        "  const stitch_tensor product = tensor_of(p, call->workspace);",
        "  const int code = multiply(p, handle, call, product.data, product_bytes(p));",
        "  if (code != STITCH_OK) return code;",
        *emit_pointwise.launch(follows, inner, tune),
    ]
    return emit.main_function(body)
