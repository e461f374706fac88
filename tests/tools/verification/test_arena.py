import ctypes

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stitch_tui.tools.worker.abi import Call, Placed
from stitch_tui.tools.worker.arena import (
    ALIGNMENT,
    DEVICE_PAGE_BYTES,
    HostArena,
    Layout,
    broken_guards,
    fill_guards,
    open_arena,
    poison,
    view,
)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=6), st.data())
def test_any_byte_written_outside_the_slots_is_found(sizes: list[int], data: st.DataObject) -> None:
    layout = Layout()
    slots = [layout.add(f"t{index}", size) for index, size in enumerate(sizes)]
    assert all(slot.offset % ALIGNMENT == 0 for slot in slots)
    arena = HostArena(layout.nbytes)
    fill_guards(arena, layout)
    for slot in slots:
        poison(arena, slot)
    assert broken_guards(arena, layout) == []
    inside = {byte for slot in slots for byte in range(slot.offset, slot.end)}
    target = data.draw(st.integers(0, layout.nbytes - 1).filter(lambda byte: byte not in inside))
    arena.memory[target] = 0
    assert len(broken_guards(arena, layout)) == 1
    arena.close()


def test_guards_and_poison_read_as_nan_in_every_float() -> None:
    layout = Layout()
    slot = layout.add("t", 64)
    arena = HostArena(layout.nbytes)
    fill_guards(arena, layout)
    poison(arena, slot)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        whole = arena.memory.view(dtype)
        assert bool(torch.isnan(whole).all())
    assert bool((view(arena, slot, torch.int32, (16,)) == -1).all())
    arena.close()


def test_a_view_shares_the_arenas_memory() -> None:
    layout = Layout()
    slot = layout.add("t", 24)
    arena = HostArena(layout.nbytes)
    view(arena, slot, torch.float32, (2, 3)).fill_(1.5)
    assert arena.memory[slot.offset : slot.end].view(torch.float32).tolist() == [1.5] * 6
    assert view(arena, slot, torch.float32, (0, 3)).shape == (0, 3)
    arena.close()


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 2**40), max_size=5).map(tuple),
    st.integers(0, 9),
    st.lists(st.floats(), max_size=3),
)
def test_a_calls_description_survives_the_trip(
    shape: tuple[int, ...], dtype: int, floats: list[float]
) -> None:
    placed = Placed("layer.weight", dtype, 1, 256, 4096, shape, shape)
    call = Call(ins=[placed], outs=[placed], ints=[-3], floats=floats, rng=(7, 9), workspace=(512, 64))
    read = Call()
    for line in call.lines():
        read.read(line.split())
    assert repr(read) == repr(call)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_device_arena_is_a_block_of_whole_pages() -> None:
    arena = open_arena(12345, torch.device("cuda:0"))
    base, nbytes = ctypes.c_uint64(), ctypes.c_size_t()
    driver, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(arena.memory.data_ptr())
    assert driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(nbytes), address) == 0
    assert nbytes.value % DEVICE_PAGE_BYTES == 0
    arena.close()
