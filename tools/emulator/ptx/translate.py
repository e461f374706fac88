"""A whole PTX module as one C++ file for the emulator."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from stitch_tui.tools.emulator.ptx.body import Body
from stitch_tui.tools.emulator.ptx.module import STATIC_SHARED_AT, Function, Module, Variable, parse
from stitch_tui.tools.emulator.ptx.vocabulary import identifier

MIN_ALIGNMENT = 16


def translate(text: str, folder: Path) -> str:
    """C++ for a module; an instruction that is not known becomes a finding when it is executed.

    Args:
        folder: the candidate's; file names are told relative to it.

    Raises:
        UnknownPtx: a declaration cannot be read.
    """
    module = parse(text)
    lines = [
        '#include "ptx_rt.h"',
        "namespace {",
        f'static const char* const FILE_ = "{_main_file(module, folder)}";',
        *map(_storage, _in_memory(module)),
        *(f"{_signature(function)};" for function in module.functions if not function.entry),
    ]
    for function in module.functions:
        lines += _definition(module, function)
    return "\n".join([*lines, *_registration(module), "}"]) + "\n"


def _main_file(module: Module, folder: Path) -> str:
    path = next((Path(name) for name in module.files.values() if name.endswith(".cu")), Path("?"))
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name


def _in_memory(module: Module) -> Iterator[Variable]:
    return (variable for variable in module.variables.values() if variable.space != "shared")


def _storage(variable: Variable) -> str:
    initial = ",".join(map(str, variable.initial))
    align, size = max(MIN_ALIGNMENT, variable.align), max(1, variable.size)
    return f"alignas({align}) unsigned char {identifier(variable.name)}[{size}] = {{{initial}}};"


def _signature(function: Function) -> str:
    names = (f"char* {identifier(one.name)}" for one in (*function.results, *function.parameters))
    return f"void {identifier(function.name)}({', '.join(names)})"


def _definition(module: Module, function: Function) -> Iterator[str]:
    if function.entry:
        yield f"void {identifier(function.name)}(void* block_) {{ char* p_ = (char*)block_; (void)p_;"
        for one, offset in zip(function.parameters, function.offsets(), strict=False):
            yield f"  char* {identifier(one.name)} = p_ + {offset}; (void){identifier(one.name)};"
    else:
        yield f"{_signature(function)} {{"
    yield "  unsigned cc_ = 0; (void)cc_;"
    yield from (f"  {line}" for line in Body(module, function).translate())
    yield "}"


def _registration(module: Module) -> Iterable[str]:
    """Tell the runtime, before main(), what the host object will ask for by name."""
    yield "struct Registered { Registered() {"
    for function in module.functions:
        if function.entry:
            *offsets, total = function.offsets()
            places = zip(offsets, function.parameters, strict=True)
            layout = ", ".join(f"{{{offset},{one.size}}}" for offset, one in places)
            yield f'  ptx_register("{function.name}", &{identifier(function.name)}, {{{layout}}}, {total});'
    for variable in module.variables.values():
        if variable.space != "shared":
            yield f'  ptx_symbol("{variable.name}", {identifier(variable.name)}, {variable.size});'
        elif variable.size and variable.offset >= STATIC_SHARED_AT:
            yield f'  ptx_shared({variable.offset}, {variable.size}, "{variable.name}");'
    yield "} } registered_;"
