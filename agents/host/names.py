"""What a host program may name: of torch, of tensors and containers, of Python, and of what stitch ships."""

TORCH = {
    *("empty", "empty_like", "empty_strided", "_foreach_copy_", "no_grad", "inference_mode"),
    *("device", "Size", "cuda.device", "cuda.current_device", "cuda.is_current_stream_capturing"),
    *("cuda.Stream", "cuda.Event", "cuda.CUDAGraph", "cuda.graph", "cuda.stream", "cuda.synchronize"),
    *("cuda.current_stream", "cuda.default_stream", "cuda.graph_pool_handle"),
}
METHODS = {
    *("copy_", "view", "view_as", "reshape", "contiguous", "clone", "detach", "record_stream", "data_ptr"),
    *("numel", "size", "stride", "dim", "element_size", "is_contiguous", "is_inference", "new_empty"),
    *("wait_stream", "wait_event", "record_event", "record", "synchronize", "query", "replay", "reset"),
    *("pool", "capture_begin", "capture_end", "enter", "invalidate", "__init__"),
    *("append", "clear", "copy", "extend", "get", "items", "keys", "pop", "setdefault", "update", "values"),
}
"""Methods that order, place or copy, and those of containers."""
ATTRIBUTES = {
    *("shape", "dtype", "device", "type", "index", "ndim", "itemsize", "nbytes", "is_cuda", "T", "mT"),
    *("cuda_stream", "_stitch", "stitch_program", "training"),
}
NAMES = {
    *("torch", "aten", "nn", "Path", "__file__", "super", "property", "staticmethod"),
    *("isinstance", "type", "id", "float", "int", "bool", "str", "tuple", "list", "dict", "set"),
    *("len", "range", "zip", "enumerate", "sorted", "reversed", "any", "all", "min", "max", "next", "iter"),
}
STITCH = {
    *("stitch_version", "stitch_stream", "stitch_same", "stitch_laid_out", "stitch_bytes", "stitch_copied"),
    *("StitchReplay", "StitchScratch", "StitchError"),
}
"""Of the parts that stitch ships, what a host program may use beside what the own one does."""
ONCE = {"stitch_reference", "Path", "__file__"}
"""Lead to the reference and to files: they stand where the own program has them, and nowhere else."""
MODULES = {"torch", "aten", "nn"}
MODULE = {
    *(
        "_stitch",
        "stitch_program",
        "training",
        "invalidate",
        "train",
        "eval",
        "to",
        "_apply",
        "apply",
        "cuda",
    ),
    *("parameters", "buffers", "modules", "children", "state_dict", "load_state_dict", "requires_grad_"),
    *("named_parameters", "named_buffers", "named_modules", "named_children", "register_buffer"),
}
"""What a module is judged by: no host program sets or defines it."""
INNER = (
    "__",
    "_call",
    "_compiled",
    "_forward",
    "_backward",
    "_parameters",
    "_buffers",
    "_modules",
    "_state_dict",
)
"""How names begin that are torch's in a module."""
LEFT = {"no_grad", "inference_mode", "property", "staticmethod"}
"""What may decorate a method."""
