"""The stitched program as a bundle: the folder ``stitched/`` and the single-file KernelBench form."""

from stitch_tui.tools.bundle.contents import Constant, Kernel, Program, ReferenceSource, Structure
from stitch_tui.tools.bundle.coverage import Basis, Coverage, coverage
from stitch_tui.tools.bundle.layout import Layout, read_layout
from stitch_tui.tools.bundle.module_text import host_part, host_text
from stitch_tui.tools.bundle.reading import Bundle, BundledKernel, read_bundle
from stitch_tui.tools.bundle.rendering import render
from stitch_tui.tools.bundle.single_file import single_file

__all__ = [
    "Basis",
    "Bundle",
    "BundledKernel",
    "Constant",
    "Coverage",
    "Kernel",
    "Layout",
    "Program",
    "ReferenceSource",
    "Structure",
    "coverage",
    "host_part",
    "host_text",
    "read_bundle",
    "read_layout",
    "render",
    "single_file",
]
