"""A session with models is begun, edited, approved and redirected in a terminal, as it builds and measures.

The same on the emulator, which measures no time, and on a GPU: what happened is read off the journal.
"""

import secrets
import shutil
import time
from collections.abc import Callable, Iterator

import pytest
from engine_projects import Project
from scripted_model import ADVICE, ScriptedModel, answer, plan, pointwise
from terminals import OwnTerminal, Terminal, Tmux

from stitch_tui.agents import journal
from stitch_tui.agents.events import BuildFinished, Decision, Event, SessionFinished, SubtaskUpdated
from stitch_tui.agents.state import SubtaskState
from stitch_tui.tools.iteration import Outcome

RELU = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.relu(x) * 2
def get_inputs(): return [torch.randn(4, 16)]
def get_init_inputs(): return []
"""
RIGHT = "v > 0.0f ? v * 2.0f : (v != v ? v : 0.0f)"
COPIES = "".join(
    f"#define C{n}(x) {' '.join([f'C{n - 1}(x)'] * 10)}\n" if n else "#define C0(x) x\n" for n in range(5)
)
SLOW_TO_BUILD = f"""\
{COPIES}
__device__ float chain(float v) {{
  C4(v = v * 1.0001f + 0.5f; if (v > 3e4f) v *= 0.25f;)
  return v;
}}
"""
SLOW_TO_RUN = """\
__device__ float idle(float v) {
  float w = v;
  for (int i = 0; i < (1 << 24); ++i) w = w * 0.999f + v;
  return w == 12345.678f ? 1.0f : 0.0f;
}
"""
MEASURED = {"emulator": SubtaskState.CHECKING, "cuda": SubtaskState.MEASURING}


@pytest.fixture(
    params=[
        pytest.param(Tmux, marks=pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is missing")),
        OwnTerminal,
    ]
)
def terminal(request: pytest.FixtureRequest, project: Project) -> Iterator[Terminal]:
    made: Terminal = request.param(project)
    yield made
    made.close()
    project.said("stop")


def model() -> ScriptedModel:
    """Its first candidate builds for long, its second runs for long, its third is right."""
    nonce = f"// {secrets.token_hex(8)}\n"  # built by nobody before
    candidates = [
        pointwise("chain(v)", before=SLOW_TO_BUILD + nonce),
        pointwise(f"({RIGHT}) + idle(v)", before=SLOW_TO_RUN + nonce),
        pointwise(RIGHT),
    ]
    planned = plan(("relu, doubled", ["relu", "mul"]))
    return ScriptedModel([planned], [answer(text, f"way {n}") for n, text in enumerate(candidates)], [ADVICE])


@pytest.mark.parametrize(
    "device",
    [pytest.param("emulator", marks=pytest.mark.slow), pytest.param("cuda", marks=pytest.mark.gpu)],
)
def test_a_session_is_steered_while_it_builds_and_while_it_measures(
    project: Project, terminal: Terminal, device: str
) -> None:
    (project.folder / "model.py").write_text(RELU)
    scripted = model()

    def told() -> list[Event]:
        return list(journal.read(project.journal)) if journal.sessions(project.folder) else []

    def wait(what: str, holds: Callable[[Event], bool]) -> None:
        terminal.until(lambda: any(map(holds, told())), what)

    def says(text: str) -> None:
        terminal.write(text)
        terminal.press("Enter")
        wait(text, lambda e: isinstance(e, Decision) and text.endswith(e.text or "?"))

    def works(state: SubtaskState, iteration: int) -> None:
        def there() -> bool:
            session = project.session
            return len(session.iterations) == iteration and session.subtasks[0].state is state

        terminal.until(there, f"{state} in iteration {iteration}")

    with scripted.served() as server:
        project.environment |= variables(server.url, device)
        terminal.open()
        terminal.shows("model.py")
        terminal.press("Enter")
        terminal.shows("to decide")
        terminal.press("e")
        terminal.shows("edit s01")
        terminal.write(", by hand")
        terminal.press("Enter")
        wait("edited", lambda e: isinstance(e, Decision) and e.action == "edit")
        time.sleep(1.0)  # a proposal must have been on screen before a key decides on it
        terminal.press("A")
        terminal.shows("approve")
        terminal.press("y")
        works(SubtaskState.BUILDING, 1)
        terminal.press("R")
        says("build less")
        works(MEASURED[device], 2)
        says("/now run less")
        wait("kept", lambda e: getattr(e, "outcome", None) is Outcome.KEPT)
        wait("the end", lambda e: isinstance(e, SessionFinished))

    session, events = project.session, told()
    decided = [event.action for event in events if isinstance(event, Decision)]
    assert decided[:4] == ["edit", "approve", "redirect", "redirect"]
    assert session.subtasks[0].title == "relu, doubled, by hand"
    first, second, third = session.iterations[:3]
    assert (first.outcome, second.outcome) == (Outcome.REDIRECTED, Outcome.REDIRECTED)
    assert third.outcome is Outcome.KEPT
    assert first.verdict is second.verdict is None
    assert [e.iteration for e in events if isinstance(e, BuildFinished)][:1] == [3], "neither was let finish"
    assert "build less" in scripted.prompts["coder"][1]
    assert "run less" in scripted.prompts["coder"][2]
    turned = [n for n, e in enumerate(events) if isinstance(e, Decision) and e.action == "redirect"]
    assert [last_state(events[:n]) for n in turned] == [SubtaskState.BUILDING, MEASURED[device]]
    assert any("redirect s01 by human: run less" in commit.iteration.decision for commit in project.commits)


def last_state(events: list[Event]) -> SubtaskState:
    return [event.state for event in events if isinstance(event, SubtaskUpdated)][-1]


def variables(url: str, device: str) -> dict[str, str]:
    """What has ``stitch`` ask this server for everything, on that device."""
    role = {"PROVIDER": "openai", "MODEL": "tiny", "BASE_URL": url}
    roles = ("PLANNER", "CODER", "VERIFIER")
    named = {f"STITCH_MODELS__{r}__{name}": value for r in roles for name, value in role.items()}
    # on a GPU the built-in Coder would begin, and the work go on for speed
    brief = {"STITCH_SESSION__WARM_START": "false", "STITCH_LIMITS__ITERATIONS": "4"}
    return named | brief | {"STITCH_DEVICE__KIND": device, "OPENAI_API_KEY": "sk-the-key-of-this-test"}
