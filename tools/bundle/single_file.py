"""A bundle as one Python file, the form that KernelBench takes: reference and kernels inside."""

from pathlib import Path

from stitch_tui import tools
from stitch_tui.tools.bundle.contents import ReferenceSource
from stitch_tui.tools.bundle.forward import literal
from stitch_tui.tools.bundle.module_text import FILES, LOADER, RULE, made_by
from stitch_tui.tools.bundle.reading import Bundle, Files, read_bundle
from stitch_tui.tools.bundle.source_text import futures_first, raw, refuse_clashes, rename
from stitch_tui.tools.errors import UsageError

HEADER = Path(tools.__file__).parent / "include" / "stitch.h"


def single_file(source: Path | Files) -> bytes:
    """The file that stands for a whole bundle; see `read_bundle` for `source`.

    Raises:
        UsageError: as `read_bundle`; the reference defines a name that the file needs for itself;
            ``model_new.py`` is not as stitch writes it.
    """
    bundle = read_bundle(source)
    refuse_clashes(bundle.reference.text, LOADER)
    renamed = f"{bundle.reference.class_name}Reference"
    text = bundle.model_new
    text = _instead(text, _told(text), _told_here(_told(text), renamed))
    text = _instead(text, made_by(bundle.reference.class_name), renamed)
    text = _instead(text, FILES, _embedded_files(bundle))
    before, rule, after = text.partition(RULE)
    return futures_first(f"{before}{_embedded(bundle.reference, renamed)}{rule}{after}").encode()


def _instead(text: str, old: str, new: str) -> str:
    if not old or text.count(old) != 1:
        raise UsageError(
            "model_new.py is not as stitch writes it: it has no single-file form",
            advice="export the folder form: --format bundle",
        )
    return text.replace(old, new)


def _told(text: str) -> str:
    """The module's docstring up to its end."""
    head, quotes, _ = text.removeprefix('"""').partition('"""')
    return head if quotes and text.startswith('"""') else ""


def _told_here(told: str, renamed: str) -> str:
    first = told.partition("\n")[0].replace(" (reference.py)", "")
    return (
        f"{first}\n\nWritten by stitch. Needs torch, an NVIDIA GPU and nvcc. The reference's own source"
        f" comes first:\n{renamed} only makes the initial weights, its forward is never called. Inference"
        " only.\n"
    )


def _embedded_files(bundle: Bundle) -> str:
    kernels = {kernel.file: kernel.source for kernel in bundle.kernels if kernel.source}
    texts = {"stitch.h": HEADER.read_text(encoding="utf-8"), **kernels}
    return "{\n" + "".join(f"    {literal(name)}: {raw(text)},\n" for name, text in texts.items()) + "}"


def _embedded(reference: ReferenceSource, renamed: str) -> str:
    source = rename(reference.text, reference.class_name, renamed).strip()
    return f"{RULE}\n# The reference, as it was verified; its class renamed.\n\n{source}\n\n"
