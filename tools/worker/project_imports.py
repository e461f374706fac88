"""A bundle holds the reference's own text: what that may import, and whose fault it is when it raises."""

import hashlib
import sys
from dataclasses import replace
from pathlib import Path

from .abi import IN_REFERENCE
from .candidate_fault import CandidateFault
from .faults import Fault
from .launch import Launch
from .reference import Reference


def with_imports(launch: Launch, reference: Reference) -> Launch:
    """A bundle's launch with the folders that its reference imports modules from; any other unchanged.

    A bundle holds the reference's own text, which may import more of the project (the adapter of ``stitch
    init`` does).  Candidates that are no bundle, and references in one file, get nothing of the project.
    """
    if not (launch.module and _is_bundle_of(reference, Path(launch.load)) and _imports_more(reference)):
        return launch
    folders = (reference.options.project.resolve(), reference.loaded.path.parent)
    return replace(launch, imports=tuple(dict.fromkeys(map(str, folders))))


def blamed(fault: CandidateFault, launch: Launch, reference: Reference) -> CandidateFault:
    """`fault`, or the same as the candidate's own where it is not the reference that raised.

    Raises:
        Fault: the reference's own text did, constructed where a bundle has to construct it.
    """
    if fault.category != IN_REFERENCE:
        return fault
    if launch.module and _is_bundle_of(reference, Path(launch.load)):
        raise Fault(
            "reference",
            "the reference cannot be constructed a second time, beside the stitched program",
            where=reference.loaded.name,
            why=fault.message,
            advice="its constructor should need nothing but its own file, torch and get_init_inputs()",
        ) from fault
    return CandidateFault("launch_error", f"constructing ModelNew raised {fault.message}", where=fault.where)


def _is_bundle_of(reference: Reference, module: Path) -> bool:
    """Does the very text of the reference lie beside this ``model_new.py``?"""
    beside = module.parent / "reference.py"
    if module.name != "model_new.py" or not beside.is_file():
        return False
    return hashlib.sha256(beside.read_bytes()).hexdigest() == reference.loaded.sha256


def _imports_more(reference: Reference) -> bool:
    """Has the reference imported a module of the project?"""
    loaded = reference.loaded
    files = {str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())}
    return any(file and file != str(loaded.path) and loaded.located.relative(file) for file in files)
