"""Matrix products by cuBLAS, and what follows them as one pointwise kernel over the product."""

from stitch_tui.agents.builtin import emit, library_products
from stitch_tui.agents.builtin.ir import Subtask, Tune
from stitch_tui.tools.graph import Graph

NAME = "cublas"


def tune(subtask: Subtask, *, tf32: bool) -> Tune | None:
    """The strategy, or None where cuBLAS has no form for the operands."""
    root = library_products.root_of(subtask)
    if root.a.dtype != root.b.dtype:
        return None
    if root.batched and not (root.a.rank == root.b.rank == subtask.rank):
        return None
    direct = library_products.is_plain(subtask)
    follows = "" if direct else "; one pointwise kernel does what follows"
    precision = "TF32 products, as the reference allows" if tf32 else "no TF32"
    sizes = {"SCRATCH_MIB": library_products.SCRATCH_MIB, "TF32": int(tf32)}
    if not direct:
        sizes |= library_products.epilogue_constants(subtask)
    return Tune(NAME, f"cuBLAS computes the product ({precision}){follows}.", sizes)


def source(graph: Graph, subtask: Subtask, tune: Tune, bound: str) -> str:
    """The `.cu` text."""
    direct = library_products.is_plain(subtask)
    tensors = emit.border(graph, subtask)
    head = emit.opening(subtask, tensors, tune, bound)
    call = "multiply(p, (cublasHandle_t)*call->host_state, call, {result}, product_bytes(p))"
    parts = [
        *library_products.opening(subtask, tensors, head, "cublas_v2.h", direct=direct),
        emit.template("cublas"),
        emit.call_check(tensors),
        library_products.problem(subtask, tensors),
        library_products.product_bytes(direct=direct) + "\n" + _NEEDED,
        library_products.SIZES.replace("@BOUND@", "0"),
        library_products.run(subtask, tensors, tune, call, direct=direct),
    ]
    return "\n\n".join(parts)


_NEEDED = """\
static int64_t needed_bytes(const Product& p) { return product_bytes(p) + ((int64_t)SCRATCH_MIB << 20); }"""
