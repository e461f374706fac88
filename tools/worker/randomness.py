"""Which operators draw from the random generator."""

from collections.abc import Mapping
from typing import Any

import torch

from .export import OPAQUE
from .interpreter import operator_of


def is_random(node: Mapping[str, Any]) -> bool:
    """Does the node draw from the generator?  Dropout with probability 0 does not."""
    if node["op"] in ("getitem", OPAQUE):
        return False
    function = operator_of(node["op"])
    if torch.Tag.nondeterministic_seeded not in function.tags:
        return False
    parameters = [argument.name for argument in function._schema.arguments]
    given = {**dict(zip(parameters, node["args"], strict=False)), **node["kwargs"]}
    for name in ("p", "dropout", "dropout_p"):
        if name in parameters:
            return bool(given.get(name)) and given.get("train", True) is not False
    return True
