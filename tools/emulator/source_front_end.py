"""Front end *source*: rewrite CUDA C++ into C++17 and compile it against our headers."""

from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools.emulator.front_end import Deadline, Objects, Refused, compile_step
from stitch_tui.tools.emulator.rewrite import Rewritten, rewrite
from stitch_tui.tools.emulator.sources import Sources
from stitch_tui.tools.emulator.toolchain import FrontEnd, Mode, Toolchain


@dataclass(frozen=True)
class SourceFrontEnd:
    """Needs the C++ compiler alone."""

    tools: Toolchain
    kind: FrontEnd = FrontEnd.SOURCE

    def identity(self, mode: Mode) -> str:
        return "\n".join((self.tools.version, *self.tools.candidate_flags(mode)))

    async def compile(self, sources: Sources, mode: Mode, folder: Path, deadline: Deadline) -> Objects:
        """Rewrite into `folder` and compile there; raises `Refused`."""
        rewritten = rewrite(sources, folder)
        if rewritten.refused:
            raise Refused(rewritten.refused)
        made = folder / "candidate.o"
        argv = [
            self.tools.path,
            *self.tools.candidate_flags(mode),
            f"-ffile-prefix-map={folder}=.",
            *_preamble(rewritten),
            *("-x", "c++", "-c", rewritten.main.name, "-o", made.name),
        ]
        done = await compile_step(argv, folder, deadline)
        return Objects((made,), done.argv)


def _preamble(rewritten: Rewritten) -> list[str]:
    """Headers that nvcc includes by itself, and the translated PTX's when the candidate has inline PTX."""
    headers = ["cuda_runtime.h", "stitch.h"]
    inline_ptx = ["-DSTITCH_INLINE_ASM"] if rewritten.inline_ptx else []
    if rewritten.inline_ptx:
        headers.append("ptx_rt.h")
    return [*inline_ptx, *(part for header in headers for part in ("-include", header))]
