"""The keys of the session screen: what each does, its id for the keymap, and when it works."""

from textual.binding import Binding, BindingType

ON_SUBTASK = {"approve", "reject", "edit", "edit_code", "redirect", "skip", "move", "restore_best", "undo"}
STEERING = ON_SUBTASK | {"approve_all", "add", "pause", "stop", "autonomy", "edit_plan"}
_PLAN = "Edit the whole plan as Markdown in $EDITOR."
_CODE = "Edit its .cu in $EDITOR; yours is judged next."
_REDIRECT = "Tell the Coder something, before its next compile."
_NOW = "Tell the Coder something now: cancels the current step."
_TABLE = "Show or hide chart and table of iterations."
_HISTORY = "Iterations in git: compare, restore, apply, export."
_AUTONOMY = "Next autonomy: ask-each, ask-plan, auto."
_EVERYWHERE = "The same, in the composer too."
_BACK = "Back out; twice: cancel the current step."

BINDINGS: list[BindingType] = [
    Binding("a", "approve", "Approve", id="decide.approve", tooltip="Approve this subtask."),
    Binding("A", "approve_all", "Approve all", id="decide.approve-all", tooltip="Approve all proposals."),
    Binding("n", "reject", "Reject", id="decide.reject", tooltip="Reject this proposal."),
    Binding("e", "edit", "Edit", id="plan.edit", tooltip="Edit this subtask in place."),
    Binding("E,ctrl+g", "edit_plan", "Plan", id="plan.editor", tooltip=_PLAN, show=False),
    Binding("c", "edit_code", "Code", id="code.edit", tooltip=_CODE, show=False),
    Binding("r", "redirect", "Redirect", id="steer.redirect", tooltip=_REDIRECT),
    Binding("R", "redirect(True)", "Now", id="steer.redirect-now", tooltip=_NOW, show=False),
    Binding("s", "skip", "Skip", id="plan.skip", tooltip="Leave it to PyTorch, or take it back."),
    Binding("J,shift+down", "move(1)", "Down", id="plan.down", tooltip="Later in the plan.", show=False),
    Binding("K,shift+up", "move(-1)", "Up", id="plan.up", tooltip="Earlier in the plan.", show=False),
    Binding("o", "add", "Add", id="plan.add", tooltip="Add a subtask below.", show=False),
    Binding("p", "pause", "Pause", id="run.pause", tooltip="Pause or resume; a pause frees the GPU."),
    Binding("f6", "pause", id="run.pause-everywhere", tooltip=_EVERYWHERE, priority=True, show=False),
    Binding("x", "stop", "Stop", id="run.stop", tooltip="Stop the run; asks what to keep."),
    Binding("u", "undo", "Undo", id="run.undo", tooltip="Back to what was kept before.", show=False),
    Binding("b", "restore_best", "Best", id="run.best", tooltip="Go on from the best.", show=False),
    Binding("f", "full", "Full", id="view.full", tooltip="This pane alone, or all.", show=False),
    Binding("i", "iterations", "Table", id="view.iterations", tooltip=_TABLE, show=False),
    Binding("h", "app.history", "History", id="view.history", tooltip=_HISTORY),
    Binding("d", "app.docs", "Docs", id="view.docs", tooltip="Search the CUDA documentation.", show=False),
    Binding("y", "app.copy", "Copy", id="view.copy", tooltip="Copy what this pane shows.", show=False),
    Binding("1", "pane('planner')", "Planner", id="view.planner", show=False),
    Binding("2", "pane('coder')", "Coder", id="view.coder", show=False),
    Binding("3", "pane('verifier')", "Verifier", id="view.verifier", show=False),
    Binding("tab", "compose", "Write", id="view.composer", tooltip="To the composer and back."),
    Binding("slash", "command", key_display="/", id="view.command", tooltip="Write a command.", show=False),
    Binding("shift+tab", "autonomy", "Autonomy", id="run.autonomy", tooltip=_AUTONOMY, show=False),
    Binding("escape", "back", "Back", id="view.back", tooltip=_BACK, show=False),
]
