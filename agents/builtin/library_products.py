"""What kernels share that leave a matrix product to a library: the problem, and what follows the product."""

from dataclasses import replace

from stitch_tui.agents.builtin import emit, emit_gemm, emit_pointwise
from stitch_tui.agents.builtin.ir import Access, Align, GemmRoot, Kind, Subtask, Tune

PRODUCT = "the product"
"""Value id of the product between the library and the epilogue; no graph has it."""
SCRATCH_MIB = 32
"""What NVIDIA recommends as cuBLAS's workspace on Hopper."""
LARGE = 1 << 24
"""Multiplications from which a library's tuned kernels are the first to try."""
_TYPE = {"f32": "CUDA_R_32F", "f16": "CUDA_R_16F", "bf16": "CUDA_R_16BF"}


def is_large(subtask: Subtask) -> bool:
    return subtask.points * root_of(subtask).extents[2] >= LARGE


def root_of(subtask: Subtask) -> GemmRoot:
    assert isinstance(subtask.root, GemmRoot)
    return subtask.root


def is_plain(subtask: Subtask) -> bool:
    """Whether the product itself is the one result."""
    instrs, stores = subtask.dag.instrs, subtask.dag.stores
    plain = len(stores) == 1 and instrs[stores[0].instr].op == "root" and len(instrs) == 1
    return plain and subtask.accesses[0].dtype is root_of(subtask).a.dtype


def epilogue(subtask: Subtask) -> Subtask:
    """What follows the product, as a pointwise subtask that reads it."""
    product = Access(PRODUCT, root_of(subtask).a.dtype, subtask.rank, Align.BROADCAST)
    number = len(subtask.accesses)
    instrs = tuple(replace(i, op="load", literal=number) if i.op == "root" else i for i in subtask.dag.instrs)
    return replace(
        subtask,
        kind=Kind.POINTWISE,
        accesses=(*subtask.accesses, product),
        dag=replace(subtask.dag, instrs=instrs),
        root=None,
    )


def epilogue_constants(subtask: Subtask) -> dict[str, int]:
    """Of the kernel that does what follows."""
    return emit_pointwise.strategies(epilogue(subtask))[0].constants


def between(subtask: Subtask, tensors: emit.Border) -> emit.Border:
    """The border of what follows: the product is one of its inputs."""
    product = emit.Tensor("product", root_of(subtask).a.dtype, subtask.rank, "product")
    return emit.Border({**tensors.inputs, PRODUCT: product}, tensors.outputs)


def opening(subtask: Subtask, tensors: emit.Border, head: str, header: str, *, direct: bool) -> list[str]:
    """The parts of the file up to the library's own template.

    Args:
        head: comment and includes; `header` of the library is added to them.
        direct: the library's result is the subtask's, so that no kernel follows.
    """
    follows = epilogue(subtask)
    includes = f"#include <cuda_runtime.h>\n#include <{header}>"
    return [
        head.replace("#include <cuda_runtime.h>", includes),
        emit.constants(subtask.rank, len(follows.accesses)),
        emit.template("scalar"),
        emit.template("space"),
        emit.template("pack"),
        *([] if direct else [emit_pointwise.kernel(follows, between(subtask, tensors))]),
        emit_gemm.VIEW,
        emit.template("product"),
    ]


_PROBLEM = """\
// The product that a call asks for, or false where the library has no form for it.
static bool problem_of(const stitch_call* call, Product& p) {
@VIEWS@
  p.type = @TYPE@;
  p.size = @SIZE@;
  return shape_product(p, a_view, rows_of_a, b_view, columns_of_b, @BATCH_DIMS@);
}"""


def problem(subtask: Subtask, tensors: emit.Border) -> str:
    """A host function that finds the product of a call."""
    root = root_of(subtask)
    text = _PROBLEM.replace("@VIEWS@", "\n".join(emit_gemm.views(root, tensors, refusal="false")))
    text = text.replace("@BATCH_DIMS@", str(subtask.rank - 2 if root.batched else 0))
    return text.replace("@TYPE@", _TYPE[root.a.dtype.value]).replace("@SIZE@", str(root.a.dtype.size))


def product_bytes(*, direct: bool) -> str:
    """A host function: what the product takes of the workspace."""
    product = "0" if direct else "(p.count * p.size + 255) / 256 * 256"
    return f"static int64_t product_bytes(const Product& {'' if direct else 'p'}) {{ return {product}; }}"


SIZES = """\
extern "C" int stitch_sizes(const stitch_call* call, int64_t* workspace_bytes, int64_t* bound_bytes) {
  Product p;
  if (!expected(call)) return STITCH_BAD_CALL;
  if (!problem_of(call, p)) return STITCH_UNSUPPORTED_SHAPE;
  *workspace_bytes = needed_bytes(p);
  *bound_bytes = @BOUND@;
  return STITCH_OK;
}"""


def run(subtask: Subtask, tensors: emit.Border, tune: Tune, multiply: str, *, direct: bool) -> str:
    """``stitch_run``.

    Args:
        multiply: the call that computes the product, with ``{result}`` for where it goes.
        direct: as for `opening`.
    """
    first = next(iter(tensors.outputs.values())).where
    body = [
        "  Product p;",
        "  if (!problem_of(call, p)) return STITCH_UNSUPPORTED_SHAPE;",
        f"  if ({first}.numel != p.count) return STITCH_UNSUPPORTED_SHAPE;",
        "  if (p.count == 0) return STITCH_OK;",
        "  if (call->workspace_bytes < needed_bytes(p)) return STITCH_BAD_CALL;",
        "  if (!*call->host_state) return STITCH_BAD_CALL;  // stitch_bind makes it",
    ]
    if direct:
        body += [
            f"  if (!is_contiguous({first})) return STITCH_UNSUPPORTED_SHAPE;",
            f"  return {multiply.format(result=f'{first}.data')};",
        ]
        return emit.main_function(body)
    follows, inner = epilogue(subtask), between(subtask, tensors)
    body += [
        "  const stitch_tensor product = tensor_of(p, call->workspace);",
        f"  const int code = {multiply.format(result='product.data')};",
        "  if (code != STITCH_OK) return code;",
        *emit_pointwise.launch(follows, inner, tune),
    ]
    return emit.main_function(body)
