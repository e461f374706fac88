"""The Verifier's adviser that asks a model: a diagnosis and one change.  The verdict is not its to change."""

from pydantic import BaseModel, ConfigDict

from stitch_tui.agents import events
from stitch_tui.agents.builtin.roles import work_of
from stitch_tui.agents.chat.message import Message
from stitch_tui.agents.chat.tokens import cut_to
from stitch_tui.agents.diagnosis import diagnose
from stitch_tui.agents.documentation import Documentation
from stitch_tui.agents.model import ChatModel
from stitch_tui.agents.prompt_text import facts, history, semantics
from stitch_tui.agents.prompting import Section, render
from stitch_tui.agents.record import Record
from stitch_tui.agents.roles import AdviceBrief
from stitch_tui.agents.state import Advice, Bottleneck
from stitch_tui.agents.structured import Rejected, Unusable, ask_for

PROMPT = "verifier-advise"
LONGEST = 1200
"""Characters of a recommendation."""


class AdviceAnswer(BaseModel):
    """What the model answers: evidence is by the numbers of the facts, so that none can be invented."""

    model_config = ConfigDict(extra="forbid")

    bottleneck: Bottleneck
    evidence: list[int]
    change: str
    files: list[str] = []
    next_steps: list[str] = []


class ModelAdviser:
    """Advises by a model's answer; where none will do there is no advice."""

    def __init__(self, model: ChatModel, record: Record, docs: Documentation | None = None) -> None:
        self._model, self._record, self._docs = model, record, docs

    async def advise(self, brief: AdviceBrief) -> Advice | None:
        """The recommendation after one attempt.

        Raises:
            StitchError: as `ChatModel.ask` raises them.
        """
        verdict = brief.attempt.verdict
        if verdict is None:
            return None
        known = facts(verdict, brief.subtask.bound_us) + diagnosed(brief)

        def check(answer: AdviceAnswer) -> Advice:
            if not verdict.correct and answer.bottleneck is not Bottleneck.CORRECTNESS:
                raise Rejected("the verdict is not correct, so that the bottleneck is correctness")
            return _advice(answer, known)

        lookup = self._docs.invitation_as_data if self._docs else ""

        def compose(budget: int) -> list[Message]:
            return _prompt(brief, known, budget, self._model.settings.feedback_tokens, lookup)

        try:
            return await ask_for(
                self._model,
                AdviceAnswer,
                compose,
                check,
                stage="advise",
                subtask=brief.subtask.id,
                docs=self._docs,
            )
        except Unusable as reason:
            self._record.emit(events.Warned(text=f"no advice on {brief.subtask.id}: {reason}"))
            return None


def diagnosed(brief: AdviceBrief) -> list[str]:
    """What the rules make of the profile, as facts."""
    profile = brief.attempt.verdict.profile if brief.attempt.verdict else None
    found = diagnose(profile, work_of(brief.graph, brief.subtask.region)) if profile else ()
    return [f"by rule {d.disease} ({d.bottleneck}): {d.evidence}; would help: {d.change}" for d in found]


def _advice(answer: AdviceAnswer, known: list[str]) -> Advice:
    if wrong := [number for number in answer.evidence if not 1 <= number <= len(known)]:
        raise Rejected(f"there is no fact {wrong[0]}: they are numbered 1 to {len(known)}")
    if not answer.change.strip():
        raise Rejected("it recommends no change")
    return Advice(
        bottleneck=answer.bottleneck,
        evidence="; ".join(known[number - 1] for number in dict.fromkeys(answer.evidence)),
        change=answer.change.strip()[:LONGEST],
        files=tuple(answer.files[:8]),
        next_steps=tuple(step[:LONGEST] for step in answer.next_steps[:4]),
    )


def _prompt(
    brief: AdviceBrief, known: list[str], budget: int, tokens: int, lookup: str = ""
) -> list[Message]:
    subtask, candidate = brief.subtask, brief.attempt.candidate
    numbered = "\n".join(f"{number}. {fact}" for number, fact in enumerate(known, 1))
    sections = [
        Section("hardware", brief.hardware, foreign=False),
        Section("title", subtask.title),
        Section("semantics", semantics(brief.graph, subtask), rank=2, least=400),
        Section("facts", cut_to(numbered, tokens), rank=1, least=300),
        Section("history", history(brief.earlier), rank=4, least=100),
        Section("code", candidate.source if candidate else "", rank=3, least=800),
        Section("lookup", lookup, foreign=False),
    ]
    return render(PROMPT, sections, budget)
