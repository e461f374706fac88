"""Front end *ptx*: nvcc compiles the kernels to PTX, we translate that to C++ for the same runtime."""

import re
from dataclasses import dataclass
from pathlib import Path

from stitch_tui.tools.emulator.front_end import Deadline, Objects, Refused, Runtime, compile_step
from stitch_tui.tools.emulator.ptx.translate import translate
from stitch_tui.tools.emulator.ptx.vocabulary import UnknownPtx
from stitch_tui.tools.emulator.sources import Sources
from stitch_tui.tools.emulator.toolchain import ABI, ARCH, PROBE_S, FrontEnd, Mode, Toolchain, environment
from stitch_tui.tools.errors import EnvironmentFault
from stitch_tui.tools.process import run
from stitch_tui.tools.verdict import Category, Finding

FLAGS = ("-std=c++17", "-O3", f"-arch=compute_{ARCH // 10}", "-lineinfo", "-Xcompiler", "-g")
RELEASE = re.compile(r"release ([\d.]+)")


@dataclass(frozen=True)
class PtxFrontEnd:
    """Needs nvcc and the C++ compiler; no GPU and no driver."""

    tools: Toolchain
    nvcc: str
    version: str
    kind: FrontEnd = FrontEnd.PTX

    @classmethod
    async def found(cls, tools: Toolchain, nvcc: str) -> "PtxFrontEnd":
        """Ask nvcc for its version.

        Raises:
            EnvironmentFault: it does not start.
        """
        said = await run([nvcc, "--version"], timeout=PROBE_S, env=environment())
        if not said.ok:
            raise EnvironmentFault("nvcc does not work", where=nvcc, why=said.stderr.strip()[:200])
        release = RELEASE.search(said.stdout)
        return cls(tools, nvcc, release[1] if release else said.stdout)

    def identity(self, mode: Mode) -> str:
        flags = (*FLAGS, *self.tools.translated_flags(mode))
        return "\n".join((self.version, self.tools.version, *flags))

    async def compile(
        self, sources: Sources, mode: Mode, folder: Path, runtime: Runtime, deadline: Deadline
    ) -> Objects:
        """nvcc's host object as it is, and its PTX as C++; raises `Refused`."""
        host, device = folder / "host.o", folder / "device.o"
        bare = (f'"-ffile-prefix-map={path}=."' for path in (sources.main.parent, folder))  # nvcc quotes none
        argv = [self.nvcc, *FLAGS, *(part for option in bare for part in ("-Xcompiler", option))]
        argv += ["--keep", "--keep-dir", str(folder), f"-I{ABI}", f"-I{sources.main.parent}"]
        beside = sources.main.parent  # so that nvcc says the bare name
        done = await compile_step([*argv, "-c", sources.main.name, "-o", str(host)], beside, deadline)
        text = (folder / f"{sources.main.stem}.ptx").read_text(encoding="utf-8")
        translated = folder / "device.cpp"
        compiler = [self.tools.path, *self.tools.translated_flags(mode)]
        try:
            translated.write_text(translate(text, sources.main.parent), encoding="utf-8")
            await compile_step([*compiler, "-c", translated.name, "-o", device.name], folder, deadline)
        except UnknownPtx as unknown:
            raise Refused([_untranslated(sources, str(unknown))]) from None
        except Refused as refused:  # errors in generated code are ours, not the candidate's
            raise Refused([_untranslated(sources, refused.findings[0].message)], refused.log) from None
        return Objects((host, device), done.argv)


def _untranslated(sources: Sources, what: str) -> Finding:
    message = f"nvcc compiles this, but the emulator cannot run the PTX that comes of it: {what}"
    return Finding(category=Category.UNSUPPORTED, message=message, file=sources.main.name)
