"""Sessions whose models write one kernel and then host programs; the judge is a recording."""

from typing import Any

from engine_projects import Project
from scripted_model import ScriptedModel, answer, plan, pointwise, settings

from stitch_tui.agents import events
from stitch_tui.tools.bundle import read_bundle
from stitch_tui.tools.iteration import Outcome

LEFT = [(["logcumsumexp", "sigmoid"], "a scan is as fast in PyTorch")]
PLAN = plan(("front", ["relu", "mul", "layer_norm"]), left=LEFT) | {"host": "replay the pass as a graph"}
KERNEL = answer(pointwise("v"))
AUTO = {"autonomy": {"mode": "auto"}, "goal": {"stagnation": 1}, "limits": {"iterations": 9}}


def host(word: str) -> str:
    """An answer that changes the host program by a comment."""
    head = "    def forward(self, x):"
    edit = f"<<<<<<< SEARCH\n{head}\n=======\n{head}\n        # {word}\n>>>>>>> REPLACE"
    return f"STRATEGY: {word}\nNOTE: fewer launches\n{edit}\n"


def model(*words: str | Any) -> ScriptedModel:
    """One that plans, writes the kernel, and then these host programs: words, or whole replies."""
    return ScriptedModel([PLAN], [KERNEL], host=[host(w) if isinstance(w, str) else w for w in words])


def models(url: str) -> dict[str, Any]:
    """Settings of a run with that model as its Planner and Coder."""
    return settings(url, "planner", "coder") | AUTO


def attempts(project: Project) -> list[Outcome | None]:
    """What became of each host program."""
    return [i.outcome for i in project.session.attempts_of("host")]


def last_program(project: Project) -> str:
    """The ``model_new.py`` that the branch ends with."""
    return read_bundle(project.history.files(project.commits[-1].sha)).model_new


def host_is_asked(event: events.Event) -> bool:
    """Does the model's answer with a host program come in?"""
    return event.type == "coder.delta" and event.subtask == "host"
