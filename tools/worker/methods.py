"""The judge's methods that understand the reference: open, graph, variants, measure, power."""

import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from .doctor import examine
from .encoding import encode_spec
from .measure import bounds, measure_nodes
from .power import power_of
from .reference import Options, Reference
from .session import Emit, Json, Session
from .task import Task
from .template import tensor_leaves


def open_(session: Session, params: Json, emit: Emit) -> Json:
    """Load, construct and run the reference once; the summary that a person sees first.

    Params are the fields of `Options`.  A ``stage`` event starts a new time limit, ``limit_s``.
    """
    options = Options(**{**params, "project": Path(params["project"])})
    emit("stage", {"stage": "importing and constructing the reference", "limit_s": options.load_seconds})
    reference = Reference.open(options)
    emit("stage", {"stage": "one forward pass of the reference", "limit_s": options.forward_seconds})
    task = Task(reference)
    session.task = task
    emit("stage", {"stage": "running the reference again", "limit_s": 4 * options.forward_seconds})
    notes = examine(task)
    names = reference.argument_names(task.first_args)
    loaded = reference.loaded
    return {
        "path": loaded.name,
        "class_name": loaded.class_name,
        "source": loaded.source,
        "sha256": loaded.sha256,
        "inputs": [
            {"name": name, "spec": encode_spec(leaf)}
            for name, leaf in zip(names, tensor_leaves(task.first_args), strict=True)
        ],
        "outputs": [encode_spec(output) for output in task.first.outputs],
        "parameters": sum(value.numel() for value in reference.parameters.values()),
        "parameter_bytes": sum(v.nbytes for v in reference.parameters.values()),
        "mutated_buffers": task.first.mutated,
        "flags": reference.set_flags(),
        "environment": _environment(reference.device),
        "init_seed": reference.options.init_seed,
        "seed": reference.options.seed,
        "forward_seconds": task.first_seconds,
        "notes": notes,
    }


def graph(session: Session, params: Json, emit: Emit) -> Json:
    """The graph of the full-size variant, and why it is opaque if it is."""
    task: Task = session.task
    exported, reason = task.full.exported, task.unexportable
    return {
        "graph": exported.graph,
        "opaque": None if reason is None else {"why": reason.why, "where": reason.where},
    }


def variants(session: Session, params: Json, emit: Emit) -> Json:
    """All shape variants with their input specs, ``full`` first, and notes on what could not vary."""
    task: Task = session.task
    found = task.variants
    return {
        "variants": [
            {"name": variant.name, "inputs": variant.inputs, "graph": variant.exported.graph}
            for variant in found.values()
        ],
        "notes": task.variant_notes,
    }


def measure(session: Session, params: Json, emit: Emit) -> Json:
    """Time of each node alone, and its roofline bound where the device's peaks are given.

    Params: ``budget_s``; optional ``bandwidth`` in bytes/s and ``peak_flops`` by dtype name.
    """
    task: Task = session.task
    return {
        "time_us": measure_nodes(task, float(params.get("budget_s", 30.0)), emit),
        "bound_us": bounds(task.full.exported, params.get("bandwidth"), params.get("peak_flops") or {}),
    }


def power(session: Session, params: Json, emit: Emit) -> Json:
    """Wrong candidates that the task's own data accept, and repaired data: `power.Power` as JSON."""
    found = power_of(session.task.reference, int(params.get("seed", 0)))
    return {**asdict(found), "unexplained": found.unexplained}


def _environment(device: torch.device) -> dict[str, Any]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "torch": torch.__version__,
        "device": str(device),
        "device_name": name,
        "threads": torch.get_num_threads(),
    }
