"""How a ``ModelNew`` is constructed and called, as lines that its runner can read."""

import json
import pickle
from typing import Any

from .faults import Fault
from .reference import seed_everything
from .task import Task


class ModuleLines:
    """What the judge tells a module's runner beside the tensors: init arguments, flags, nesting."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def preface(self) -> list[str]:
        """The line ``module HEX``: constructor's arguments, module mode, dtype, flags, the reference's file,
        and whether its results may lie in what it is given.

        Raises:
            Fault: the constructor's arguments cannot be pickled.
        """
        reference = self.task.reference
        init: Any = []
        if reference.loaded.get_init_inputs is not None:
            seed_everything(reference.options.init_seed)
            init = reference.loaded.get_init_inputs()
        options = reference.options
        described = {
            "init": init,
            "dtype": options.dtype,
            "flags": reference.set_flags(),
            "reference": str(reference.loaded.path),
            "aliases": self.task.first.aliases,
        }
        try:
            return [f"module {pickle.dumps(described).hex()}"]
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise Fault(
                "reference",
                "the constructor's arguments cannot be handed to another process",
                why=str(error),
                advice="get_init_inputs() should return numbers, strings, tensors and lists of them",
            ) from error

    def arguments(self, variant: str) -> str:
        """The line ``arguments JSON``: forward's arguments with ``{"tensor": i}`` for the i-th tensor."""
        template = self.task.variant(variant).template
        markers: Any = [{"tensor": index} for index in range(sum(template.is_tensor))]
        return f"arguments {json.dumps(template.fill(markers))}"
