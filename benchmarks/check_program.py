"""Recompute a stitched program's result with torch alone: ``python check_program.py BUNDLE`` prints JSON.

Neither the judge nor its tolerances are used: the reference runs in its own precision and in float64 on fresh
inputs, and the program's error must stay within a few times that of the reference.  On a CPU the environment
names the kernels' emulator processes.
"""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

SEEDS = (11, 12, 13)
FACTOR, FLOOR = 10.0, 1e-4
"""Error relative to the result's rms: at most FACTOR times that of the reference, or FLOOR."""


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def moved(value: Any, device: str, wide: bool = False) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach().clone().to(device)
    return value.double() if wide and value.is_floating_point() else value


def results(value: Any) -> list[torch.Tensor]:
    found = value if isinstance(value, (tuple, list)) else [value]
    return [t.detach().double().cpu() for t in found if isinstance(t, torch.Tensor)]


def main() -> None:
    bundle, device = Path(sys.argv[1]), "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    reference, program = loaded(bundle / "reference.py"), loaded(bundle / "model_new.py")
    worst = {"error": 0.0, "reference_error": 0.0}
    correct = True
    for seed in SEEDS:
        torch.manual_seed(seed)
        init = reference.get_init_inputs()
        inputs = [moved(x, "cpu") for x in reference.get_inputs()]
        outputs = []
        for make, wide in ((program.ModelNew, False), (reference.Model, False), (reference.Model, True)):
            torch.manual_seed(seed)
            model = make(*init).to(device)
            model = model.double() if wide else model
            with torch.no_grad():
                outputs.append(results(model(*(moved(x, device, wide) for x in inputs))))
        mine, own, exact = outputs
        assert [t.shape for t in mine] == [t.shape for t in own]
        for a, b, truth in zip(mine, own, exact, strict=True):
            rms = max(float(truth.square().mean().sqrt()), 1e-30)
            errors = [float((x - truth).abs().max()) / rms for x in (a, b)]
            correct &= errors[0] <= max(FACTOR * errors[1], FLOOR)
            worst["error"] = max(worst["error"], errors[0])
            worst["reference_error"] = max(worst["reference_error"], errors[1])
    print(json.dumps({"correct": correct, **worst}))


if __name__ == "__main__":
    main()
