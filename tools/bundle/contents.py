"""What goes into a bundle: kernels with their regions, the reference's source, verdicts."""

import hashlib
import re
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from stitch_tui.tools.graph import DType, Graph, Region
from stitch_tui.tools.verdict import Verdict

Structure = Any
"""How values are nested in the reference's arguments or results, as JSON.

``"tensor"`` is the next of the flat graph inputs or outputs; ``{"tuple": [...]}``, ``{"list": [...]}``
and ``{"dict": {name: ...}}`` nest; ``{"value": x}`` is a plain value, built into the program.
"""

TENSOR: Structure = "tensor"
NVCC_OPTIONS = ("-O3", "-std=c++17", "-lineinfo")
_LIBRARIES = {"cublas_v2.h": "-lcublas", "cublasLt.h": "-lcublasLt", "cudnn.h": "-lcudnn"}


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ReferenceSource(_Data):
    """The reference as it was verified."""

    text: str
    class_name: str = "Model"
    mode: str = "train"
    """Module mode in which the graph was exported: train or eval."""
    origin: str = ""
    """Where the text came from, relative to the project; for a person."""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


class Constant(_Data):
    """A tensor that lies in the forward pass itself, such as ``torch.tensor([1, 2])``."""

    values: Any
    """Nested lists of numbers."""
    dtype: DType


class Kernel(_Data):
    """One subtask of the plan: a region, and the CUDA source that replaces it."""

    id: str
    title: str
    region: Region
    source: str = ""
    """Empty: PyTorch runs the region's nodes."""
    state: str = "done"
    strategy: str = ""
    options: tuple[str, ...] = ()
    """Options for nvcc beside the usual ones and the libraries whose headers the source includes."""
    verdict: Verdict | None = None

    @field_validator("id")
    @classmethod
    def _file_name(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", value):
            raise ValueError(f"{value!r} cannot name a file: letters, digits, - and _")
        return value

    @property
    def file(self) -> str:
        return f"{self.id}.cu"

    @property
    def nvcc_options(self) -> tuple[str, ...]:
        """Everything but the architecture."""
        headers = set(re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', self.source, re.MULTILINE))
        libraries = (option for header, option in _LIBRARIES.items() if header in headers)
        return (*NVCC_OPTIONS, *libraries, *self.options)


class Program(_Data):
    """Everything that a bundle is rendered from."""

    graph: Graph
    kernels: tuple[Kernel, ...]
    """In any order; those without source stay with PyTorch."""
    reference: ReferenceSource
    inputs: dict[str, Structure] | None = None
    """The arguments of ``forward`` by name; None: one tensor for each input of the graph."""
    outputs: Structure = None
    """None: a tensor when the graph has one output, else a tuple."""
    constants: dict[str, Constant] = {}
    """Values of the graph's constants by target; others are attributes of the reference."""
    host: str = ""
    """The host program in the place of the one that `module_text.host_text` writes; empty: that one."""
    verdict: Verdict | None = None
    """Of the whole program."""
    session: str = ""
    """Name of the session that made it."""

    @property
    def stitched(self) -> tuple[Kernel, ...]:
        """The kernels that have source."""
        return tuple(kernel for kernel in self.kernels if kernel.source)
