"""Text in a candidate that addresses whoever judges it: asked about, and withheld from models."""

import re

_ADDRESSED = re.compile(
    r"ignore (all |any |the )?(previous|prior|above|earlier) (instructions|rules|findings)"
    r"|(dear|attention|note to|message to|to the) (the )?"
    r"(judge|verifier|reviewer|evaluator|grader|assistant|ai)\b"
    r"|\bas an? (ai|language model|llm|judge|verifier)\b"
    r"|(mark|accept|approve|report|rate|score|consider) (this|the) (kernel|candidate|code|solution)?\s*"
    r"(as )?(correct|verified|passing|best|valid)"
    r"|(you|verifier|judge) (must|should|shall) (accept|approve|pass|answer|say|output|conclude)"
    r"|verdict\W{0,4}(correct|pass)|\"?category\"?\s*:\s*\"?correct|system prompt",
    re.IGNORECASE,
)
_LOOSER = re.compile(
    r"(loosen|relax|raise|increase|widen|lower)\w* (the )?(\w+ )?(tolerance|atol|rtol|error limit)"
    r"|(tolerance|atol|rtol)\w* (should|must|needs to|has to|can) be "
    r"(looser|larger|raised|relaxed|increased|higher)"
    r"|use (a )?(looser|larger|higher|relaxed) (tolerance|atol|rtol)",
    re.IGNORECASE,
)
WITHHELD = "[withheld: it addresses whoever judges it]"


def addressed(text: str) -> list[tuple[str, int]]:
    """Questions that the text raises, each with its line; empty for nearly every source."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _ADDRESSED.search(line):
            found.append((f"text that addresses whoever judges it: {match[0]!r}", number))
        if match := _LOOSER.search(line):
            found.append((f"asks for a looser tolerance: {match[0]!r}", number))
    return found


def presentable(text: str) -> str:
    """`text`, or a note in its place when it addresses a judge."""
    return WITHHELD if _ADDRESSED.search(text) or _LOOSER.search(text) else text
