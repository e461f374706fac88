"""The static screen for ``ModelNew``: evidence where no honest module has business, else questions."""

from collections.abc import Iterator
from dataclasses import dataclass

from stitch_tui.tools.addressed import addressed
from stitch_tui.tools.python_source import Handler, Name, PythonSource
from stitch_tui.tools.screen import Screen
from stitch_tui.tools.verdict import Category, Finding

EVIDENCE = {
    "runs text as code": "exec eval compile builtins.exec builtins.eval marshal.loads",
    "starts a process": "os.system os.popen os.fork os.forkpty subprocess.* multiprocessing.* pty.spawn"
    " os.spawnv os.execv os.execve os.posix_spawn",
    "uses the network": "socket.* urllib.request.* requests.* http.client.* ftplib.* pip.*",
    "starts a thread": "threading.Thread threading.Timer _thread.start_new_thread concurrent.futures.*"
    " asyncio.to_thread",
    "walks the stack or the heap": "sys._getframe inspect.stack inspect.currentframe gc.get_objects"
    " gc.get_referrers gc.get_referents sys._current_frames sys.settrace sys.setprofile",
    "runs at exit": "atexit.register",
    "looks into memory": "ctypes.string_at ctypes.memmove ctypes.from_address",
    "ends the process": "sys.exit os._exit os.abort os.kill os.killpg",
}
"""What a call does -> the calls that do it; ``module.*`` is any call into the module."""
FILES = "open io.open os.open os.listdir os.scandir os.walk glob.glob torch.load numpy.load pickle.load"
QUESTIONS = {
    **dict.fromkeys(["os.getenv", "os.environ.get"], "reads the environment"),
    **dict.fromkeys(FILES.split(), "reads or writes files"),
    **dict.fromkeys(
        ["base64.b64decode", "codecs.decode", "zlib.decompress", "bytes.fromhex"], "unpacks hidden text"
    ),
    **dict.fromkeys(["__import__", "importlib.import_module"], "imports by a name that it makes"),
    **dict.fromkeys(["time.time", "time.perf_counter", "time.monotonic"], "reads the clock"),
    "getattr": "looks up an attribute by a name that it makes",
    "torch.manual_seed": "seeds the generator",
}
TAMPERED = ("torch.", "time.", "builtins.", "sys.", "random.", "numpy.", "gc.", "os.environ")
"""Modules whose attributes are not a candidate's to replace."""
CLAIMS = (
    "torch.utils.cpp_extension.", "triton.jit", "cupy.RawKernel", "cupy.RawModule", "ctypes.CDLL",
    "numba.cuda.jit", "stitched.",
)  # fmt: skip
"""What a module uses that carries kernels of its own."""
BUNDLED = "StitchProgram"
"""What the facts of a bundle's program are an instance of: the kernels lie beside it."""
COMPUTING = ("torch.", "aten.", "self.", "super()")
"""How calls begin that may compute what a kernel was to."""
TORCH_COMPUTES = (
    "torch.nn.Linear", "torch.nn.Conv", "torch.nn.functional.", "torch.matmul", "torch.mm", "torch.bmm",
    "torch.einsum", "torch.addmm", "torch.baddbmm", "torch.conv", "torch.ops.aten.",
    "torch._C._VariableFunctions", "torch.softmax", "torch.compile", "torch.nn.LSTM",
    "torch.nn.GRU", "torch.nn.MultiheadAttention",
)  # fmt: skip


@dataclass(frozen=True)
class Claims:
    """Whether a module carries kernels of its own, and whether it launches them."""

    kernels: bool
    defined: tuple[str, ...]
    used: bool


def screen_module(
    text: str, file: str, *, reference_module: str = "", reference_class: str = "Model"
) -> Screen:
    """Screen one Python candidate.

    Args:
        reference_module: the module that the reference lies in; importing it is evidence.
        reference_class: its class; inheriting or calling it is evidence.
    """
    source = PythonSource(text)
    claims = claims_of(source)
    evidence = [
        *_forbidden(source),
        *_tampering(source),
        *_reference(source, reference_module, reference_class),
    ]
    fallbacks = [(f"falls back to {call} when its kernel fails", line) for call, line in _fallbacks(source)]
    brings = claims.kernels or any(call.text == BUNDLED for call in source.calls)
    evidence += fallbacks if brings else []
    # Who brings kernels may compile them; the runner's audit lets nothing but compilers start.
    compiles = [item for item in evidence if claims.kernels and item[0].startswith("subprocess.")]
    evidence = [item for item in evidence if item not in compiles]
    if claims.kernels and not claims.used:
        names = ", ".join(claims.defined) or "a kernel"
        evidence.append((f"decorative kernel: {names} is built and never launched", 1))
    asked = [
        (f"{name.text} {QUESTIONS[name.text]}", name.line) for name in source.calls if name.text in QUESTIONS
    ]
    asked += compiles if claims.kernels else []
    asked += [] if brings else fallbacks
    asked += _disguise(source) if claims.kernels else []
    asked += addressed(text)
    return Screen(
        evidence=tuple(
            Finding(category=Category.HACK_SUSPECTED, message=message, file=file, line=line)
            for message, line in sorted(set(evidence), key=lambda item: item[1])
        ),
        questions=tuple(f"line {line}: {message}" for message, line in asked),
    )


def claims_of(source: PythonSource) -> Claims:
    """Does the module bring kernels, and is what it builds ever mentioned again?"""
    decorated = [name for name, marks in source.functions.items() if any(map(_claims, marks))]
    built = [name for name, call in source.bound if _claims(call)]
    kernels = bool(decorated or any(_claims(call.text) for call in source.calls))
    unbound = kernels and not decorated and not built
    used = unbound or any(
        source.mentions.get(name.rpartition(".")[2], 0) > least
        for names, least in ((decorated, 0), (built, 1))
        for name in names
    )
    return Claims(kernels, (*decorated, *built), used)


def _claims(dotted: str) -> bool:
    return any(dotted.startswith(claim) for claim in CLAIMS)


def _forbidden(source: PythonSource) -> Iterator[tuple[str, int]]:
    exact = {name: reason for reason, names in EVIDENCE.items() for name in names.split() if "*" not in name}
    whole = {name[:-1]: reason for reason, names in EVIDENCE.items() for name in names.split() if "*" in name}
    for call in source.calls:
        if call.text in exact:
            yield f"{call.text} {exact[call.text]}", call.line
        for prefix, reason in whole.items():
            if call.text.startswith(prefix):
                yield f"{call.text} {reason}", call.line


def _tampering(source: PythonSource) -> Iterator[tuple[str, int]]:
    for name in source.assigned:
        if name.text.startswith(TAMPERED):
            flag = name.text.startswith("torch.backends") or name.text.endswith("allow_tf32")
            yield f"{name.text} {'is a global flag' if flag else 'is not its own'} and is set", name.line
    for call in source.calls:
        if call.text in ("torch.set_float32_matmul_precision", "torch.set_default_dtype",
                         "torch.use_deterministic_algorithms", "torch.set_flush_denormal"):  # fmt: skip
            yield f"{call.text} sets a global flag", call.line


def _reference(source: PythonSource, module: str, name: str) -> Iterator[tuple[str, int]]:
    for imported in source.imports:
        parts = imported.text.split(".")
        if parts[0] == "stitch_reference" or (module and module in (imported.text, ".".join(parts[:-1]))):
            yield f"{imported.text} is the reference", imported.line
    bases = source.classes.get("ModelNew", ())
    if name in {base.rpartition(".")[2] for base in bases}:
        own = "ModelNew.forward" in source.functions
        calls = any(c.text.endswith("super().forward") or c.text == f"{name}.forward" for c in source.calls)
        if not own or calls:
            yield f"ModelNew inherits {name} and runs its forward", 1
    elif name != "ModelNew":
        for call in source.calls:
            if call.text == name or call.text == f"{name}.forward":
                yield f"{name} is the reference's class and is called", call.line


def _fallbacks(source: PythonSource) -> Iterator[tuple[str, int]]:
    for handler in source.handlers:
        if handler.returns and handler.scope.startswith("ModelNew."):
            for call in _computing(handler):
                yield call.text, handler.line


def _computing(handler: Handler) -> list[Name]:
    return [
        call
        for call in handler.calls
        if call.text.startswith(COMPUTING) and not call.text.startswith("torch.cuda.")
    ][:1]


def _disguise(source: PythonSource) -> list[tuple[str, int]]:
    named = [n for n in source.calls if n.text.startswith(TORCH_COMPUTES) and n.scope.startswith("ModelNew")]
    products = [n for n in source.matrix_products if n.scope.startswith("ModelNew")]
    return [
        (f"{n.text} is torch's, in a module that brings kernels of its own", n.line)
        for n in (*named, *products)
    ]
