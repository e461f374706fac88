"""The Coder that asks a model: drafts, repairs and optimises a subtask's ``.cu``, or the host program."""

from collections.abc import Sequence

from stitch_tui.agents import events
from stitch_tui.agents.chat.fences import without_thinking
from stitch_tui.agents.chat.message import Message
from stitch_tui.agents.chat.request import Answer, Ask
from stitch_tui.agents.chat.tokens import cut_to, estimated
from stitch_tui.agents.code_answer import CUDA, CodeAnswer, Refused, read_code
from stitch_tui.agents.documentation import Documentation, query_in
from stitch_tui.agents.host import contract as host_contract
from stitch_tui.agents.host.prompt import host_prompt
from stitch_tui.agents.model import ChatModel
from stitch_tui.agents.prompt_text import advice_text, border, feedback, history, semantics
from stitch_tui.agents.prompting import Section, render
from stitch_tui.agents.record import Record
from stitch_tui.agents.roles import CodeBrief, Coder
from stitch_tui.agents.state import Advice, Author, Candidate, Iteration
from stitch_tui.agents.structured import ANSWER_TOKENS, PROBLEM_TOKENS, with_turns
from stitch_tui.tools.bundle.single_file import HEADER
from stitch_tui.tools.iteration import Kind

ATTEMPTS = 3
"""Answers that are asked for before an iteration is written down as refused."""
DELTA = 160
"""Characters of streamed text that are shown at once, or less at the end of a line."""


class ModelCoder:
    """Each call is one attempt, whatever the model says: a candidate, or a refusal with its reason."""

    def __init__(self, model: ChatModel, record: Record, docs: Documentation | None = None) -> None:
        self._model, self._record, self._docs = model, record, docs

    async def code(self, brief: CodeBrief) -> Candidate | None:
        """The model's next candidate.

        Raises:
            StitchError: as `ChatModel.ask` raises them.
        """
        base = _base(brief)
        code, form = base.candidate.source if base and base.candidate else "", CUDA
        if brief.host:
            code, form = brief.host.text, host_contract.form_of(brief.host.own)
        last = brief.attempts[-1] if brief.attempts else None
        docs = await self._docs.on_errors(brief.subtask.id, last) if self._docs else ""
        shown: list[Message] = []
        turns: list[Message] = []
        refusal = Refused("nothing was asked")
        left, attempts = self._docs.lookups if self._docs else 0, 0
        while attempts < ATTEMPTS:
            answer = await self._ask(brief, base, docs, [*shown, *turns], searches=left > 0)
            if self._docs and left and (query := query_in(answer.text)):
                left -= 1
                found = await self._docs.look_up("coder", brief.subtask.id, query, left=left)
                shown += [
                    Message(role="assistant", content=_shown(answer)),
                    Message(role="user", content=found),
                ]
                continue
            attempts += 1
            try:
                return _candidate(brief, read_code(answer, code, form))
            except Refused as reason:
                refusal = reason
            turns = [
                Message(role="assistant", content=_shown(answer)),
                Message(role="user", content=_again(str(refusal), form.fence, editable=bool(code))),
            ]
        return Candidate(
            source=refusal.source,
            strategy="no usable answer",
            note=str(refusal),
            author=Author.MODEL,
            refused=str(refusal),
        )

    def variants(self, brief: CodeBrief, most: int) -> tuple[Candidate, ...]:
        """None: an answer costs more than an attempt."""
        return ()

    async def _ask(
        self,
        brief: CodeBrief,
        base: Iteration | None,
        docs: str,
        turns: Sequence[Message],
        *,
        searches: bool,
    ) -> Answer:
        kind, tokens = _kind(brief), self._model.settings.feedback_tokens
        lookup = self._docs.invitation if self._docs else ""

        def compose(budget: int) -> list[Message]:
            if brief.host:
                return host_prompt(brief, brief.host, budget, tokens, docs, lookup)
            return _prompt(brief, kind, base, budget, tokens, docs, lookup)

        live = _Live(self._record, brief.subtask.id)
        try:
            functions = self._docs.functions if self._docs and searches else ()
            ask = Ask(with_turns(compose, turns), stage=kind, subtask=brief.subtask.id, functions=functions)
            return await self._model.ask(ask, live.feed)
        finally:
            live.flush()


class WarmStart:
    """The built-in Coder's first attempt, which a model then has to beat."""

    def __init__(self, first: Coder, then: Coder) -> None:
        self._first, self._then = first, then

    async def code(self, brief: CodeBrief) -> Candidate | None:
        """The first attempt of the built-in Coder where it has one and speed counts, then the model's.

        On the emulator nothing is timed, so that there would be nothing to beat: there the model begins.
        """
        if not brief.attempts and brief.device.startswith("cuda"):
            candidate = await self._first.code(brief)
            if candidate is not None:
                return candidate
        return await self._then.code(brief)

    def variants(self, brief: CodeBrief, most: int) -> tuple[Candidate, ...]:
        """Those of the built-in Coder, whose winner is the version to beat."""
        return self._first.variants(brief, most)


class _Live:
    """Streamed text as events, a few words at a time."""

    def __init__(self, record: Record, subtask: str) -> None:
        self._record, self._subtask, self._text = record, subtask, ""

    def feed(self, text: str) -> None:
        self._text += text
        if len(self._text) >= DELTA or "\n" in text:
            self.flush()

    def flush(self) -> None:
        if self._text:
            self._record.emit(events.CoderDelta(subtask=self._subtask, text=self._text))
        self._text = ""


def _kind(brief: CodeBrief) -> Kind:
    """What is asked for; after a failed optimisation the best version is to be improved again."""
    if brief.host:
        return Kind.PROGRAM
    if brief.best is not None:
        return Kind.OPTIMISE
    has_code = any(a.candidate and a.candidate.source for a in brief.attempts)
    return Kind.REPAIR if has_code else Kind.DRAFT


def _base(brief: CodeBrief) -> Iteration | None:
    """The version to start from: the best correct one, else the last one with code."""
    coded = [a for a in brief.attempts if a.candidate and a.candidate.source]
    return brief.best or (coded[-1] if coded else None)


def _prompt(
    brief: CodeBrief,
    kind: Kind,
    base: Iteration | None,
    budget: int,
    feedback_tokens: int,
    docs: str = "",
    lookup: str = "",
) -> list[Message]:
    subtask, last = brief.subtask, brief.attempts[-1] if brief.attempts else None
    code = base.candidate.source if base and base.candidate else ""
    direction = f"A person directs you: {subtask.direction}" if subtask.direction else ""
    sections = [
        Section("hardware", brief.hardware, foreign=False),
        Section("abi", _abi(), foreign=False),
        Section("title", subtask.title),
        Section("border", border(brief.graph, subtask)),
        Section("semantics", semantics(brief.graph, subtask), rank=1, least=600),
        Section("strategy", subtask.strategy, rank=3, least=150),
        Section("direction", direction, foreign=False),
        Section("feedback", _feedback(brief, base, last, feedback_tokens), rank=2, least=300),
        Section("advice", advice_text(_advice(base, last)), rank=3, least=150),
        Section("history", history(brief.attempts), rank=4, least=200),
        Section("code", code, rank=1, least=estimated(code)),
        Section("source", brief.source, rank=5),
        Section("docs", docs, rank=3, least=200),
        Section("lookup", lookup, foreign=False),
    ]
    return render(f"coder-{kind}", sections, budget)


def _feedback(brief: CodeBrief, base: Iteration | None, last: Iteration | None, tokens: int) -> str:
    """What is known of the version to start from, and of the last attempt where that is another one."""
    parts = []
    for attempt, name in ((base, "the version below"), (last, "the last attempt")):
        if attempt is None or attempt.verdict is None or (name == "the last attempt" and attempt is base):
            continue
        source = attempt.candidate.source if attempt.candidate else ""
        text = feedback(attempt.verdict, brief.subtask.bound_us, source, tokens)
        parts.append(f"{name} (attempt {attempt.attempt}):\n{text}")
    return cut_to("\n".join(reversed(parts)), tokens)


def _advice(base: Iteration | None, last: Iteration | None) -> Advice | None:
    """What was recommended last: after the last attempt, else of the version to start from."""
    return next((found.advice for found in (last, base) if found and found.advice), None)


def _abi() -> str:
    """The interface as it stands in the header."""
    return HEADER.read_text(encoding="utf-8")


def _candidate(brief: CodeBrief, answer: CodeAnswer) -> Candidate:
    last = brief.attempts[-1] if brief.attempts else None
    followed = answer.followed if last is not None and last.advice is not None else None
    if followed is not None and last is not None and last.candidate and _same(last.candidate, answer):
        followed = False  # whatever it says: nothing was changed
    return Candidate(
        source=answer.source,
        strategy=answer.strategy or f"attempt {len(brief.attempts) + 1}",
        note=answer.note,
        author=Author.MODEL,
        followed=followed,
    )


def _same(before: Candidate, now: CodeAnswer) -> bool:
    return before.source.split() == now.source.split()


def _shown(answer: Answer) -> str:
    return cut_to(without_thinking(answer.text), ANSWER_TOKENS) or "(nothing)"


def _again(problem: str, fence: str, *, editable: bool) -> str:
    how = f"one ```{fence} fence with the whole file" + (", or edits of the file above" if editable else "")
    return f"Your answer cannot be used: {cut_to(problem, PROBLEM_TOKENS)}.\nAnswer again with {how}."
