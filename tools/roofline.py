"""Speed of light: how fast a device can move bytes and compute, and the time no program can beat."""

from dataclasses import dataclass

from stitch_tui.tools.gpu import CudaDevice
from stitch_tui.tools.graph import DType

TERA = 1e12


@dataclass(frozen=True)
class Peaks:
    """What a device can do at best, dense, without sparsity."""

    bandwidth: float
    """Bytes a second, to and from its memory."""
    f64: float
    """FLOP/s, as the three below; tensor cores included where they take the type."""
    f32: float
    """Of the ordinary cores."""
    tf32: float
    """Of fp32 products on tensor cores; equal to `f32` where there are none."""
    f16: float
    """Of fp16 and bf16 products summed in fp32."""
    source: str
    """Where the figures come from."""

    def flops(self, dtype: DType, *, tensor_cores: bool = True) -> float:
        """Highest FLOP/s for products of that type.

        With `tensor_cores`, fp32 counts as TF32: the bound for a program that is free to use them.
        """
        if dtype is DType.F64:
            return self.f64
        if dtype in (DType.F16, DType.BF16):
            return self.f16 if tensor_cores else self.f32
        return self.tf32 if tensor_cores and dtype is DType.F32 else self.f32


def fastest(first: Peaks | None, second: Peaks | None) -> Peaks | None:
    """The higher of both in everything: what no program exceeds, whoever of them erred downward."""
    if first is None or second is None:
        return first or second
    return Peaks(
        bandwidth=max(first.bandwidth, second.bandwidth),
        f64=max(first.f64, second.f64),
        f32=max(first.f32, second.f32),
        tf32=max(first.tf32, second.tf32),
        f16=max(first.f16, second.f16),
        source=f"the higher of: {first.source}; {second.source}",
    )


def bound_us(
    flops: float, bytes_moved: float, dtype: DType, peaks: Peaks, *, tensor_cores: bool = True
) -> float:
    """Microseconds below which no program can do that work: ``max(bytes / bandwidth, FLOPs / peak)``.

    Args:
        flops: of the products, a multiply-add counted as two.
        bytes_moved: bytes that have to be read and written at least once.
    """
    return 1e6 * max(bytes_moved / peaks.bandwidth, flops / peaks.flops(dtype, tensor_cores=tensor_cores))


def _sheet(name: str, bandwidth: float, f64: float, f32: float, tf32: float, f16: float) -> Peaks:
    """A row in TB/s and TFLOP/s."""
    return Peaks(
        bandwidth * TERA, f64 * TERA, f32 * TERA, tf32 * TERA, f16 * TERA, f"NVIDIA data sheet, {name}"
    )


_KNOWN = {
    "B200": _sheet("B200", 8.0, 40, 80, 1100, 2250),
    "H200": Peaks(4.3e12, 67e12, 67e12, 495e12, 989e12, "copy measured on an H200; NVIDIA data sheet"),
    "H100 PCIe": _sheet("H100 PCIe", 2.0, 51, 51, 378, 756),
    "H100 NVL": _sheet("H100 NVL", 3.9, 60, 60, 418, 835),
    "H100": _sheet("H100 SXM", 3.35, 67, 67, 495, 989),
    "A100-SXM4-80GB": _sheet("A100 80GB SXM", 2.039, 19.5, 19.5, 156, 312),
    "A100 80GB": _sheet("A100 80GB PCIe", 1.935, 19.5, 19.5, 156, 312),
    "A100": _sheet("A100 40GB", 1.555, 19.5, 19.5, 156, 312),
    "L40S": _sheet("L40S", 0.864, 1.4, 91.6, 183, 362),
    "A10": _sheet("A10", 0.6, 0.98, 31.2, 62.5, 125),
    "L4": _sheet("L4", 0.3, 0.47, 30.3, 60, 121),
    "T4": _sheet("T4", 0.32, 0.25, 8.1, 8.1, 65),
    "V100": _sheet("V100 SXM2", 0.9, 7.8, 15.7, 15.7, 125),
    "RTX 4090": _sheet("GeForce RTX 4090", 1.008, 1.29, 82.6, 82.6, 165),
    "RTX 3090": _sheet("GeForce RTX 3090", 0.936, 0.56, 35.6, 35.6, 71),
}
"""By a part of the device's name; the first that fits counts, so the more special name stands first."""


def peaks_of(device: CudaDevice) -> Peaks | None:
    """The device's peaks: measured, from the data sheet, or estimated from clocks and widths that NVML gives.

    None where nothing is known; then there is no bound.
    """
    words = device.name.split()
    for name, peaks in _KNOWN.items():
        parts = name.split()
        if any(words[at : at + len(parts)] == parts for at in range(len(words))) or _joined(name, words):
            return peaks
    return _estimate(device)


def _joined(name: str, words: list[str]) -> bool:
    """NVML also joins with dashes: ``A100-SXM4-80GB``, ``Tesla V100-SXM2-16GB``."""
    return any(word == name or word.startswith(f"{name}-") for word in words)


def _estimate(device: CudaDevice) -> Peaks | None:
    """Upper limits: two transfers a memory clock, one multiply-add a core and clock, and the widest ratio of
    tensor cores to ordinary ones that any GPU has had (8 for TF32, 16 for fp16)."""
    bandwidth = 2 * device.memory_clock_mhz * 1e6 * device.bus_bits / 8
    f32 = 2 * device.sm_clock_mhz * 1e6 * device.cores
    if not bandwidth or not f32:
        return None
    return Peaks(bandwidth, f32, f32, 8 * f32, 16 * f32, "estimated from NVML's clocks, bus width and cores")
