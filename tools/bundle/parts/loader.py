"""Building and calling kernels: the first part of every ``model_new.py``.

stitch never imports this module: `module_text` copies its text below the line of dashes into each
bundle, which must run with torch, a GPU and nvcc alone.  All names carry the prefix ``stitch``, because
the KernelBench form shares its namespace with the reference's own source.
"""

import ctypes
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import torch

# ------------------------------------------------------------------------------------------------
# Building and calling kernels: the same text in every bundle that stitch writes.

STITCH_DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool),
)
STITCH_MEANING = {
    -1: "that it has no stitch_run",
    1: "a CUDA error",
    2: "shapes it does not support",
    3: "a call it does not understand",
}
STITCH_ALIGNMENT = 256
STITCH_NO_RNG = (0, 0)


class StitchError(RuntimeError):
    """The one error of this file: what failed and what to do next."""


class StitchTensor(NamedTuple):
    """One argument of a kernel; kernels are verified with contiguous, aligned tensors."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    flags: int = 0  # STITCH_PARAM 1, STITCH_BUFFER 2
    fixed: bool = False  # a weight: changes seldom, and then bind is called again
    offset: int | None = None  # result: place in the arena of intermediates; None: a new tensor each call


class StitchKernel(NamedTuple):
    """One kernel file and the call that the program makes to it."""

    id: str
    file: str
    inputs: tuple[StitchTensor, ...]
    outputs: tuple[StitchTensor, ...]
    ints: tuple[int, ...] = ()
    floats: tuple[float, ...] = ()
    options: tuple[str, ...] = ()  # for nvcc
    random: bool = False  # advances the generator


class stitch_tensor(ctypes.Structure):
    """``stitch_tensor`` of stitch.h, ABI 1."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        *((name, ctypes.c_int32) for name in ("ndim", "dtype", "flags", "reserved")),
        ("numel", ctypes.c_int64),
    )


class stitch_call(ctypes.Structure):
    """``stitch_call`` of stitch.h, ABI 1."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("struct_size", "abi")),
        *((name, ctypes.c_int32) for name in ("n_in", "n_out", "n_int", "n_float")),
        *((name, ctypes.POINTER(stitch_tensor)) for name in ("inputs", "outputs")),
        ("ints", ctypes.POINTER(ctypes.c_int64)),
        ("floats", ctypes.POINTER(ctypes.c_double)),
        *((name, ctypes.c_uint64) for name in ("rng_seed", "rng_offset")),
        *((name, ctypes.c_void_p) for name in ("stream", "workspace")),
        ("workspace_bytes", ctypes.c_int64),
        ("bound", ctypes.c_void_p),
        ("bound_bytes", ctypes.c_int64),
        ("host_state", ctypes.POINTER(ctypes.c_void_p)),
    )


def stitch_laid_out(tensor: torch.Tensor, spec: StitchTensor, device: torch.device) -> torch.Tensor:
    """`tensor` as kernels are promised it, contiguous and aligned: a copy if it must be."""
    if tensor.shape != spec.shape or tensor.dtype != spec.dtype or tensor.device != device:
        got = f"{tensor.dtype} {tuple(tensor.shape)} on {tensor.device}"
        raise StitchError(f"{spec.name}: expected {spec.dtype} {spec.shape} on {device}, got {got}")
    whole = tensor.contiguous()
    aligned = device.type == "cpu" or whole.data_ptr() % STITCH_ALIGNMENT == 0
    return whole if aligned else whole.clone()


def stitch_nvcc() -> str:
    """Path of nvcc: $CUDACXX, $CUDA_HOME or $CUDA_PATH, PATH, /usr/local/cuda."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    places = [f"{home}/bin/nvcc", "nvcc"] if home else ["nvcc", "/usr/local/cuda/bin/nvcc"]
    for name in (os.environ.get("CUDACXX"), *places):
        if name and (found := shutil.which(name)):
            return found
    raise StitchError("nvcc not found: install the CUDA toolkit or set CUDA_HOME")


def stitch_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stitch"


def stitch_unpack(texts: dict[str, str]) -> Path:
    """A folder with the sources that a single-file program carries inside."""
    digest = hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()[:32]
    folder = stitch_cache() / "sources" / digest
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        if not (folder / name).exists():
            handle, draft = tempfile.mkstemp(dir=folder)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(draft, folder / name)
    return folder


def stitch_library(kernel: StitchKernel, folder: Path, nvcc: str, arch: str) -> tuple[Path, list[str]]:
    """Where the kernel's compiled library belongs (named by all that goes into it), and its command."""
    options = ["-shared", "-Xcompiler", "-fPIC", f"-arch={arch}", *kernel.options]
    parts = [(folder / name).read_bytes() for name in (kernel.file, "stitch.h")]
    version = subprocess.run([nvcc, "--version"], capture_output=True, check=False).stdout
    digest = hashlib.sha256(repr((parts, options, version)).encode()).hexdigest()[:32]
    command = [nvcc, str(folder / kernel.file), "-I", str(folder), *options]
    return stitch_cache() / "kernels" / f"{digest}.so", command


def stitch_build(kernels: tuple[StitchKernel, ...], folder: Path, arch: str) -> list[ctypes.CDLL]:
    """Compile what the cache lacks, as many at once as there are processors, and load all."""
    nvcc = stitch_nvcc()
    places = [stitch_library(kernel, folder, nvcc, arch) for kernel in kernels]
    missing = [(path, command) for path, command in dict(places).items() if not path.exists()]
    width = os.cpu_count() or 1
    for first in range(0, len(missing), width):
        jobs = []
        for path, command in missing[first : first + width]:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(suffix=".so", dir=path.parent)
            os.close(handle)
            whole = [*command, "-o", draft]
            job = subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            jobs.append((job, draft, path, command[1]))
        failures = []
        for job, draft, path, source in jobs:
            output = job.communicate()[0].strip()
            if job.returncode == 0:
                os.replace(draft, path)  # atomic: another process that builds the same is not disturbed
            else:
                os.unlink(draft)
                failures.append(f"nvcc could not compile {source}:\n{output}")
        if failures:
            raise StitchError("\n".join(failures))
    return [ctypes.CDLL(str(path)) for path, _ in places]


class StitchLibrary:
    """A compiled kernel: calls its C functions with one call structure that is filled anew each time."""

    def __init__(self, kernel: StitchKernel, library: ctypes.CDLL, device: torch.device) -> None:
        self.library, specs = library, (*kernel.inputs, *kernel.outputs)
        self.index = device.index if device.type == "cuda" else -1
        self.tensors = (stitch_tensor * max(len(specs), 1))()
        self.slots = list(self.tensors)[: len(specs)]  # views: indexing the array makes new ones each time
        for slot, spec in zip(self.slots, specs, strict=True):
            extents = ctypes.c_int64 * max(len(spec.shape), 1)
            strides = torch.empty(spec.shape, device="meta").stride()
            slot.shape, slot.strides = extents(*spec.shape), extents(*strides)
            slot.ndim, slot.dtype, slot.flags = len(spec.shape), STITCH_DTYPES.index(spec.dtype), spec.flags
            slot.numel = torch.Size(spec.shape).numel()
        call = self.call = stitch_call(struct_size=ctypes.sizeof(stitch_call), abi=1)
        call.n_in, call.n_out = len(kernel.inputs), len(kernel.outputs)
        call.n_int, call.n_float = len(kernel.ints), len(kernel.floats)
        call.inputs = self.tensors
        first_output = ctypes.byref(self.tensors, len(kernel.inputs) * ctypes.sizeof(stitch_tensor))
        call.outputs = ctypes.cast(first_output, ctypes.POINTER(stitch_tensor))
        call.ints = (ctypes.c_int64 * max(len(kernel.ints), 1))(*kernel.ints)
        call.floats = (ctypes.c_double * max(len(kernel.floats), 1))(*kernel.floats)
        call.host_state = ctypes.pointer(ctypes.c_void_p())
        self.address = ctypes.byref(call)
        self.run = getattr(library, "stitch_run", None)
        self.more: Any = None  # what `call` was filled with last
        self.memory: tuple[Any, ...] = ()

    def __call__(
        self,
        verb: str,
        values: list[torch.Tensor],
        stream: int,
        rng: tuple[int, int],
        workspace: torch.Tensor | None,
        bound: torch.Tensor | None,
    ) -> tuple[int, int, int]:
        """Return code (-1: the library has no such function), workspace bytes, bound bytes."""
        function = self.run if verb == "run" else getattr(self.library, f"stitch_{verb}", None)
        if function is None:
            return -1, 0, 0
        for slot, value in zip(self.slots, values, strict=True):
            slot.data = value.data_ptr()
        call, more = self.call, (stream, rng, id(workspace), id(bound))
        if more != self.more:
            call.stream, (call.rng_seed, call.rng_offset) = stream, rng
            call.workspace, call.workspace_bytes = stitch_memory(workspace)
            call.bound, call.bound_bytes = stitch_memory(bound)
            self.more, self.memory = more, (workspace, bound)  # held, so that their ids stay theirs
        if verb == "run" and (self.index < 0 or torch.cuda.current_device() == self.index):
            return function(self.address), 0, 0
        sizes = (ctypes.c_int64 * 2)()
        places = (ctypes.byref(sizes), ctypes.byref(sizes, 8)) if verb == "sizes" else ()
        with torch.cuda.device(self.index):
            code: int = function(self.address, *places)
        if verb == "unbind":
            call.host_state[0] = None
        return code, sizes[0], sizes[1]


def stitch_memory(block: torch.Tensor | None) -> tuple[int, int]:
    return (0, 0) if block is None else (block.data_ptr(), block.numel())


class StitchBinding:
    """One kernel on one device: what `stitch_bind` made of the weights, and of which weights."""

    def __init__(self, kernel: StitchKernel, backend: Any, device: torch.device) -> None:
        self.kernel, self.backend, self.device = kernel, backend, device
        self.key: Any = None
        self.workspace_bytes = -1
        self.bound: torch.Tensor | None = None
        self.moving = [i for i, spec in enumerate(kernel.inputs) if not spec.fixed]
        self.fresh = [i for i, spec in enumerate(kernel.outputs, len(kernel.inputs)) if spec.offset is None]
        self.specs = (*kernel.inputs, *kernel.outputs)
        self.prepared: Any = None  # for which `StitchScratch.state` the next two are right
        self.values: list[Any] = []  # weights and results in the arena; None: another tensor each call
        self.workspace: torch.Tensor | None = None

    def __call__(self, scratch: "StitchScratch", *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Run the kernel on the current stream."""
        if self.prepared is not scratch.state:
            self.prepare(scratch, tensors)
        values = self.values.copy()
        for i in self.moving:
            tensor = tensors[i]
            if not tensor.is_contiguous() or tensor.data_ptr() % STITCH_ALIGNMENT:
                tensor = stitch_laid_out(tensor, self.specs[i], self.device)
            values[i] = tensor
        for i in self.fresh:
            spec = self.specs[i]
            values[i] = torch.empty(spec.shape, dtype=spec.dtype, device=self.device)
        rng = stitch_random(self.device, self.kernel) if self.kernel.random else STITCH_NO_RNG
        answer = self.backend("run", values, scratch.stream, rng, self.workspace, self.bound)
        if answer[0]:
            self.require(answer)
        return values[len(self.kernel.inputs) :]

    def prepare(self, scratch: "StitchScratch", tensors: tuple[torch.Tensor, ...]) -> None:
        """What stays the same from call to call, as long as the weights and the stream's memory do."""
        specs, fixed = self.kernel.inputs, [i for i, spec in enumerate(self.kernel.inputs) if spec.fixed]
        key = [(tensors[i].data_ptr(), stitch_version(tensors[i])) for i in fixed]
        stale = key != self.key
        inputs: list[Any] = [
            stitch_laid_out(tensor, spec, self.device) for tensor, spec in zip(tensors, specs, strict=True)
        ]
        results = [scratch.result(self.kernel.id, spec) for spec in self.kernel.outputs]
        if stale:
            self.bind(scratch, inputs + results)
            self.key = key
        self.workspace = scratch.workspace(self.workspace_bytes)
        self.values = inputs + results
        for i in (*self.moving, *self.fresh):
            self.values[i] = None
        self.prepared = scratch.state

    def bind(self, scratch: "StitchScratch", values: list[torch.Tensor]) -> None:
        """Weights are new: repeat the weight-only work.  Waits for the device, before and after."""
        if self.device.type == "cuda":
            if torch.cuda.is_current_stream_capturing():
                raise StitchError("call the model once before capturing it in a CUDA graph")
            torch.cuda.synchronize(self.device)
        if self.workspace_bytes < 0:
            answer = self.backend("sizes", values, scratch.stream, STITCH_NO_RNG, None, None)
            self.require(answer, optional=True)
            self.workspace_bytes, self.bound = answer[1], stitch_bytes(answer[2], self.device)
        workspace = scratch.workspace(self.workspace_bytes)
        if self.key is not None:
            self.backend("unbind", values, scratch.stream, STITCH_NO_RNG, workspace, self.bound)
        answer = self.backend("bind", values, scratch.stream, STITCH_NO_RNG, workspace, self.bound)
        self.require(answer, optional=True)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def require(self, answer: tuple[int, int, int], *, optional: bool = False) -> None:
        """Raise unless the return code is 0 (or -1 of an optional function); asks torch what CUDA says."""
        if answer[0] == 0 or (optional and answer[0] == -1):
            return
        cause = ""
        if answer[0] == 1 and self.device.type == "cuda":
            try:
                torch.cuda.synchronize(self.device)
            except RuntimeError as error:
                cause = f": {error}"
        meaning = STITCH_MEANING.get(answer[0], "an unknown error")
        raise StitchError(f"kernel {self.kernel.file} reported {meaning} (code {answer[0]}){cause}")


def stitch_version(tensor: torch.Tensor) -> int:
    """Counts in-place changes; tensors made in inference mode do not count them."""
    return 0 if tensor.is_inference() else tensor._version


def stitch_stream(device: torch.device) -> int:
    """The handle of the current stream, without the object around it; 0 on a CPU."""
    return torch._C._cuda_getCurrentRawStream(device.index) if device.type == "cuda" else 0


def stitch_bytes(count: int, device: torch.device) -> torch.Tensor | None:
    return torch.empty(count, dtype=torch.uint8, device=device) if count > 0 else None


def stitch_random(device: torch.device, kernel: StitchKernel) -> tuple[int, int]:
    """Philox seed and offset of torch's generator, which a random kernel moves on."""
    if device.type == "cpu":  # torch's CPU generator has no offset: a new seed for each call
        return int(torch.randint(2**62, ())), 0
    generator = torch.cuda.default_generators[device.index or 0]
    offset = generator.get_offset()
    numbers = max(torch.Size(spec.shape).numel() for spec in (*kernel.inputs, *kernel.outputs))
    generator.set_offset(offset + (numbers + 3) // 4 * 4)
    return generator.initial_seed(), offset


class StitchScratch:
    """Memory of one stream: intermediates at places planned once, and one workspace for all kernels."""

    def __init__(self, device: torch.device, stream: int, arena_bytes: int) -> None:
        self.device, self.stream = device, stream
        self.arena = torch.empty(arena_bytes, dtype=torch.uint8, device=device)
        self.results: dict[tuple[str, str], torch.Tensor] = {}
        self.space: torch.Tensor | None = None
        self.weights: Any = None  # addresses and versions that `state` stands for
        self.state = object()  # another one when the weights or the workspace moved: see `StitchBinding`

    def see(self, weights: list[tuple[int, int]] | None) -> None:
        """Take note of the weights' addresses and versions; None: whatever was bound is out of date."""
        if weights is None or weights != self.weights:
            self.weights, self.state = weights, object()

    def result(self, kernel: str, spec: StitchTensor) -> torch.Tensor:
        """Where a kernel writes one of its results."""
        if spec.offset is None:
            return torch.empty(spec.shape, dtype=spec.dtype, device=self.device)
        if (place := self.results.get((kernel, spec.name))) is None:
            end = spec.offset + torch.Size(spec.shape).numel() * spec.dtype.itemsize
            place = self.arena[spec.offset : end].view(spec.dtype).view(spec.shape)
            self.results[kernel, spec.name] = place
        return place

    def workspace(self, count: int) -> torch.Tensor | None:
        if count > 0 and (self.space is None or self.space.numel() < count):
            self.space, self.state = stitch_bytes(count, self.device), object()
        return None if count <= 0 or self.space is None else self.space[:count]


def stitch_processes(kernels: tuple[StitchKernel, ...]) -> list[Any]:
    """Kernels as processes that speak stitch's protocol: how stitch verifies without a GPU."""
    table = json.loads(Path(os.environ["STITCH_KERNELS"]).read_text())
    spec = importlib.util.spec_from_file_location("stitch_kernel_host", os.environ.get("STITCH_HOST", ""))
    if spec is None or spec.loader is None:
        raise StitchError("STITCH_KERNELS needs STITCH_HOST, the path of stitch's kernel_host.py")
    host = importlib.util.module_from_spec(spec)
    sys.modules["stitch_kernel_host"] = host
    spec.loader.exec_module(host)
    if missing := [kernel.file for kernel in kernels if kernel.file not in table]:
        raise StitchError(f"STITCH_KERNELS does not name {', '.join(missing)}")
    return [host.backend(kernel, **table[kernel.file]) for kernel in kernels]
