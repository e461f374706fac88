"""The Planner that asks a model; where no answer will do, the built-in one plans, and the run says so."""

from stitch_tui.agents import events
from stitch_tui.agents.builtin.roles import BuiltinPlanner
from stitch_tui.agents.chat.message import Message
from stitch_tui.agents.chat.tokens import estimated
from stitch_tui.agents.documentation import Documentation
from stitch_tui.agents.model import ChatModel
from stitch_tui.agents.plan_answer import PlanAnswer, checked_plan
from stitch_tui.agents.prompt_text import HOT, history, hot_nodes, node_table
from stitch_tui.agents.prompting import Section, render
from stitch_tui.agents.record import Record
from stitch_tui.agents.roles import PlanBrief
from stitch_tui.agents.state import Plan, Session, Subtask
from stitch_tui.agents.structured import Rejected, Unusable, ask_for

PROMPT = "planner-plan"


class ModelPlanner:
    """Plans by a model's answer; every plan is checked, and a bad one goes back with the reasons."""

    def __init__(
        self,
        model: ChatModel,
        record: Record,
        min_coverage: float = 0.0,
        docs: Documentation | None = None,
    ) -> None:
        self._model, self._record, self._min_coverage, self._docs = model, record, min_coverage, docs
        self._fallback = BuiltinPlanner()

    async def plan(self, brief: PlanBrief) -> Plan:
        """The model's plan, or the built-in Planner's when the model gives none that holds.

        Raises:
            StitchError: as `ChatModel.ask` raises them.
        """

        def check(answer: PlanAnswer) -> Plan:
            return checked_plan(brief.graph, answer, min_coverage=self._min_coverage)

        lookup = self._docs.invitation_as_data if self._docs else ""

        def compose(budget: int) -> list[Message]:
            return _prompt(brief, "Plan the whole program.", budget, lookup)

        try:
            return await ask_for(self._model, PlanAnswer, compose, check, stage="plan", docs=self._docs)
        except Unusable as reason:
            text = f"the model gave no plan that holds ({reason}); the built-in plan is used"
            self._record.emit(events.Warned(text=text))
            return await self._fallback.plan(brief)

    async def replan(self, brief: PlanBrief, session: Session, failed: Subtask, reason: str) -> Plan | None:
        """The session's plan with other subtasks for the nodes of `failed`, which it keeps as it is.

        Raises:
            StitchError: as `ChatModel.ask` raises them.
        """
        anew = set(failed.region.nodes)
        stay = [s for s in session.kernels if anew.isdisjoint(s.region.nodes)]
        taken = [subtask.region for subtask in stay]
        claimed = {node for region in taken for node in region.nodes}
        within = [node.id for node in brief.graph.nodes if node.id not in claimed]
        first = 1 + max(int(subtask.id.removeprefix("s")) for subtask in session.kernels)

        def check(answer: PlanAnswer) -> Plan:
            new = checked_plan(
                brief.graph,
                answer,
                within=within,
                taken=taken,
                first=first,
                min_coverage=self._min_coverage,
            )
            if any(set(s.region.nodes) == set(failed.region.nodes) for s in new.subtasks):
                raise Rejected(f"it has the nodes of {failed.title} in one subtask again: cut them otherwise")
            return new

        lookup = self._docs.invitation_as_data if self._docs else ""

        def compose(budget: int) -> list[Message]:
            return _prompt(brief, _task(session, failed, reason, within), budget, lookup)

        try:
            new = await ask_for(
                self._model, PlanAnswer, compose, check, stage="replan", subtask=failed.id, docs=self._docs
            )
        except Unusable as why:
            self._record.emit(events.Warned(text=f"the model gave no other plan that holds ({why})"))
            return None
        if not new.subtasks or session.plan is None:
            return None
        plan = session.plan
        return plan.model_copy(
            update={
                "subtasks": (*plan.subtasks, *new.subtasks),
                "uncovered": new.uncovered,
                "note": "\n".join(filter(None, [plan.note, new.note])),
                "revision": plan.revision + 1,
            }
        )


def _prompt(brief: PlanBrief, task: str, budget: int, lookup: str = "") -> list[Message]:
    hottest = ", ".join(hot_nodes(brief.graph)) or "none"
    fixed = sum(map(estimated, (brief.hardware, task, hottest, lookup)))
    table = node_table(brief.graph, int((budget - fixed) * 0.7))
    sections = [
        Section("hardware", brief.hardware, foreign=False),
        Section("nodes", table),
        Section("hot", f"{HOT:.0%}", foreign=False),
        Section("hottest", hottest, foreign=False),
        Section("system", brief.system or "not measured", rank=1, least=100),
        Section("notes", "\n".join(brief.notes) or "nothing", rank=1, least=100),
        Section("task", task, rank=2, least=400, foreign=False),
        Section("source", brief.source, rank=3),
        Section("lookup", lookup, foreign=False),
    ]
    return render(PROMPT, sections, budget)


def _task(session: Session, failed: Subtask, reason: str, within: list[str]) -> str:
    """What is asked of a replan: the history, and which nodes are free."""
    tried = history(session.attempts_of(failed.id))
    return (
        f"The subtask {failed.id} ({failed.title}) with the nodes {', '.join(failed.region.nodes)} got "
        f"nowhere: {reason}. Its attempts:\n{tried}\n"
        f"Plan these nodes anew, in smaller or other subtasks. You may use the nodes {', '.join(within)}; "
        "all others belong to subtasks that stay as they are. Name in `left`, with the reason, what is "
        "better left to PyTorch."
    )
