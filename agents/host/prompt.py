"""What a Coder is told about the host program."""

from stitch_tui.agents.chat.message import Message
from stitch_tui.agents.chat.tokens import cut_to, estimated
from stitch_tui.agents.diagnosis import advice
from stitch_tui.agents.prompt_text import advice_text, feedback, history
from stitch_tui.agents.prompting import Section, render
from stitch_tui.agents.roles import CodeBrief, HostBrief


def host_prompt(
    brief: CodeBrief, host: HostBrief, budget: int, tokens: int, docs: str = "", lookup: str = ""
) -> list[Message]:
    """The messages that ask for a host program.

    Args:
        budget: tokens of the whole.
        tokens: most that the verdicts take.
    """
    subtask, last = brief.subtask, brief.attempts[-1] if brief.attempts else None
    profile = host.program.profile
    direction = f"A person directs you: {subtask.direction}" if subtask.direction else ""
    failed = last.verdict if last and last.verdict is not host.program else None
    sections = [
        Section("hardware", brief.hardware, foreign=False),
        Section("strategy", subtask.strategy, rank=3, least=150),
        Section("direction", direction, foreign=False),
        Section("program", feedback(host.program, None, "", tokens // 2), rank=2, least=300),
        Section("advice", advice_text(advice(profile) if profile else None), rank=3, least=150),
        Section("feedback", _failed(brief, tokens // 2) if failed else "", rank=2, least=300),
        Section("history", history(brief.attempts), rank=4, least=200),
        Section("code", host.text, rank=1, least=estimated(host.text)),
        Section("source", brief.source, rank=5),
        Section("docs", docs, rank=3, least=200),
        Section("lookup", lookup, foreign=False),
    ]
    return render("coder-program", sections, budget)


def _failed(brief: CodeBrief, tokens: int) -> str:
    """What was found of the last attempt, which did not better the program that is shown."""
    last = brief.attempts[-1]
    source = last.candidate.source if last.candidate else ""
    assert last.verdict
    return cut_to(f"attempt {last.attempt}:\n{feedback(last.verdict, None, source, tokens)}", tokens)
