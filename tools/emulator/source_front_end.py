"""Front end *source*: rewrite CUDA C++ into C++17 and compile it against our headers."""

from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools.emulator.front_end import Deadline, Objects, Refused, Runtime, compile_step
from stitch_tui.tools.emulator.rewrite import Rewritten, rewrite
from stitch_tui.tools.emulator.sources import Sources
from stitch_tui.tools.emulator.toolchain import FrontEnd, Mode, Toolchain

PRELUDE = ("cuda_runtime.h", "stitch.h")


@dataclass(frozen=True)
class SourceFrontEnd:
    """Needs the C++ compiler alone."""

    tools: Toolchain
    kind: FrontEnd = FrontEnd.SOURCE

    def identity(self, mode: Mode) -> str:
        return "\n".join((self.tools.version, *self.tools.candidate_flags(mode)))

    async def compile(
        self, sources: Sources, mode: Mode, folder: Path, runtime: Runtime, deadline: Deadline
    ) -> Objects:
        """Rewrite into `folder` and compile there; raises `Refused`."""
        rewritten = rewrite(sources, folder)
        if rewritten.refused:
            raise Refused(rewritten.refused)
        made = folder / "candidate.o"
        argv = [
            self.tools.path,
            *self.tools.candidate_flags(mode),
            f"-ffile-prefix-map={folder}=.",
            *_preamble(rewritten, runtime),
            *("-x", "c++", "-c", rewritten.main.name, "-o", made.name),
        ]
        done = await compile_step(argv, folder, deadline)
        return Objects((made,), done.argv)


def _preamble(rewritten: Rewritten, runtime: Runtime) -> list[str]:
    """Headers that nvcc includes by itself, and the translated PTX's when the candidate has inline PTX.

    The first one is taken in its parsed form where the macros are those that it was parsed with.
    """
    if not rewritten.inline_ptx:
        return ["-include", str(runtime.prelude)]
    return [
        "-DSTITCH_INLINE_ASM",
        *(part for header in (*PRELUDE, "ptx_rt.h") for part in ("-include", header)),
    ]
