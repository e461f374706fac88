"""Every setting of stitch as typed fields; `stitch_tui.config` layers files, environment and flags.

The sentence under a field is its documentation: ``stitch.toml.example`` is checked against it.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from stitch_tui.tools import device_names, git_names, urls

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        defer_build=True,
        validate_default=True,
        allow_inf_nan=False,
    )


class Mode(StrEnum):
    TRAIN = "train"
    EVAL = "eval"


class Autonomy(StrEnum):
    ASK_EACH = "ask-each"
    ASK_PLAN = "ask-plan"
    AUTO = "auto"


Action = Literal["write", "build", "run", "commit", "network"]
"""What a rule may deny a run."""


class ReferenceSettings(_Table):
    path: str = ""
    """The reference: file.py, file.py:Class or pkg.mod:Class."""
    python: str = ""
    """Interpreter that runs the reference; empty: the one that runs stitch."""
    mode: Mode = Mode.TRAIN
    """Module mode while the reference is captured and compared: train (as KernelBench does) or eval."""
    dtype: Literal["f32", "f16", "bf16"] = "f32"
    """Floating type that parameters and floating inputs are cast to."""
    matmul_precision: Literal["highest", "high", "medium"] = "highest"
    """torch.set_float32_matmul_precision for the reference."""
    allow_tf32_conv: bool = True
    """torch.backends.cudnn.allow_tf32 for the reference (PyTorch's default is true)."""
    load_seconds: Positive = 120.0
    """Longest time for importing and constructing the reference."""
    forward_seconds: Positive = 120.0
    """Longest time for one forward pass of the reference."""


class SessionSettings(_Table):
    warm_start: bool = True
    """With a model as Coder, on a GPU: begin with the built-in Coder's version, which it has to beat."""
    host_program: bool = True
    """With a model as Coder, on a GPU: after the kernels it may write the host side of the program anew."""
    idle_minutes: Positive = 60.0
    """An engine that waits this long for a decision ends, resumable."""


class GoalSettings(_Table):
    speedup: Annotated[float, Field(ge=0)] = 0.0
    """Speedup of the whole program to reach; 0: as fast as the limits allow. Needs a GPU."""
    baseline: Literal["best", "eager", "compile", "compile-reduce-overhead"] = "best"
    """What the speedup is held against; best: the fastest of all."""
    stagnation: Count = 3
    """Stop a subtask after this many iterations without improvement."""
    min_coverage: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the reference's time that kernels have to cover; a plan with less is not taken."""
    replan_after: Count = 5
    """Plan a subtask anew after this many iterations without a correct one, if the Planner is a model."""


class SearchSettings(_Table):
    seconds: Annotated[float, Field(ge=0)] = 30.0
    """Longest race of a subtask's variants on a GPU, before the first attempt; 0: none."""
    variants: Count = 12
    """Sets of parameters of the built-in Coder's that are built side by side and raced."""


class LimitSettings(_Table):
    iterations: Count = 15
    """Iterations for each subtask."""
    replans: Annotated[int, Field(ge=0)] = 2
    """How often a subtask that gets nowhere is planned anew, in the whole run."""
    minutes: Positive = 120.0
    """Wall time of a run."""
    tokens: Annotated[int, Field(ge=0)] = 0
    """Tokens of all models together; 0: no limit."""
    cost: Annotated[float, Field(ge=0)] = 0.0
    """Money for all models together, in the unit of the configured prices; 0: no limit."""


class AutonomySettings(_Table):
    mode: Autonomy = Autonomy.ASK_PLAN
    """ask-each, ask-plan or auto; `stitch --auto` runs as auto."""
    deny: tuple[Action, ...] = ()
    """Actions that are never taken, in any mode: write, build, run, commit, network."""


class DeviceSettings(_Table):
    kind: Literal["auto", "cuda", "emulator"] = "auto"
    """auto: a CUDA device when there is one, else the emulator (functional verdicts only)."""
    index: Annotated[int, Field(ge=0)] = 0
    """Which CUDA device."""
    arch: Annotated[str, AfterValidator(device_names.target)] = ""
    """Target such as sm_90; empty: the device's own."""
    profile: bool = True
    """Profile each version that becomes best, with nsys and ncu where they are: 8 to 20 s each time."""


class EndpointSettings(_Table):
    provider: str
    model: str = ""
    """Model name at the endpoint."""
    base_url: Annotated[str, AfterValidator(urls.endpoint)] = ""
    """Endpoint, with /v1; empty: OPENAI_BASE_URL."""
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key; keys never stand in files. Empty: no key."""
    idle_seconds: Positive = 180.0
    """Longest silence within an answer, also before its first word."""
    ca_bundle: str = ""
    """PEM file of certificate authorities."""
    proxy: Annotated[str, AfterValidator(urls.proxy)] = ""
    """Proxy URL for this endpoint."""
    headers: dict[str, str] = {}
    """Extra request headers."""


class RoleSettings(EndpointSettings):
    provider: Literal["builtin", "openai"] = "builtin"
    """builtin: deterministic, no model; openai: any OpenAI-compatible endpoint."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Sampling temperature; unset: the endpoint's."""
    reasoning_effort: Literal["", "minimal", "low", "medium", "high"] = ""
    """Reasoning effort, where the model has one."""
    context_tokens: Annotated[int, Field(ge=2048)] = 32768
    """What prompt and answer may take together; prompts are cut to it, the least relevant first."""
    max_tokens: Annotated[int, Field(ge=0)] = 0
    """Longest answer; 0: the endpoint's, and a third of context_tokens is kept free for it."""
    feedback_tokens: Annotated[int, Field(ge=200)] = 3000
    """Most that compiler, checks and timing say in one prompt, the most relevant first."""
    timeout_seconds: Positive = 600.0
    """Longest time for one answer, which is cut there."""
    retries: Annotated[int, Field(ge=0)] = 5
    """How often a request is made again after a failure that may pass."""
    input_price: Annotated[float, Field(ge=0)] = 0.0
    """Price of a million input tokens; 0: unknown, only tokens are counted."""
    output_price: Annotated[float, Field(ge=0)] = 0.0
    """Price of a million output tokens."""


class EmbeddingSettings(EndpointSettings):
    provider: Literal["none", "offline", "openai"] = "none"
    """Vectors as the docs index' second opinion; offline: wordllama's (extra docs); openai: an endpoint's."""
    idle_seconds: Positive = 30.0
    """Longest wait for one answer."""


class ModelSettings(_Table):
    planner: RoleSettings = RoleSettings()
    coder: RoleSettings = RoleSettings()
    verifier: RoleSettings = RoleSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()


class DocsSettings(_Table):
    retrieval: bool = True
    """Roles that are models may search the local documentation; a Coder's compile errors are looked up."""
    passages: Annotated[int, Field(ge=1, le=20)] = 3
    """Passages that one look-up shows."""
    lookups: Annotated[int, Field(ge=0, le=20)] = 2
    """How often a role may search for itself before one answer."""
    tokens: Annotated[int, Field(ge=100)] = 1500
    """Most that the passages of one look-up take in a prompt."""


def _author(text: str) -> str:
    if text:
        git_names.author(text)
    return text


class GitSettings(_Table):
    author: Annotated[str, AfterValidator(_author)] = ""
    """Author of stitch's commits, 'Name <mail>'; empty: the repository's identity, else stitch's own."""
    branch_prefix: Annotated[str, AfterValidator(git_names.branch_prefix)] = "stitch"
    """Sessions live at refs/heads/PREFIX/SESSION."""


class UiSettings(_Table):
    theme: str = "stitch-night"
    """Theme of the session screen; `stitch themes` lists them."""
    keymap: dict[str, str] = {}
    """Other keys: id of a binding = keys, such as "decide.approve" = "y"; F1 shows the ids."""
    notifications: Literal["unfocused", "never"] = "unfocused"
    """Ring the terminal's bell when something waits for a decision and the terminal is not focused."""


class Settings(_Table):
    reference: ReferenceSettings = ReferenceSettings()
    session: SessionSettings = SessionSettings()
    goal: GoalSettings = GoalSettings()
    search: SearchSettings = SearchSettings()
    limits: LimitSettings = LimitSettings()
    autonomy: AutonomySettings = AutonomySettings()
    device: DeviceSettings = DeviceSettings()
    models: ModelSettings = ModelSettings()
    docs: DocsSettings = DocsSettings()
    git: GitSettings = GitSettings()
    ui: UiSettings = UiSettings()
