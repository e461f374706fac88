"""How fast is a candidate?  The judge's methods that time it against the reference's baselines, on a GPU.

What the blocks mean is said elsewhere (`samples`, and ``tools/timing.py`` in the engine).
"""

from .baselines import BASELINE_SECONDS
from .candidate_fault import CandidateFault, Unsupported
from .contest import Contest, Measurement, kinds
from .device_probe import require_device
from .faults import Fault
from .launch import Launch
from .project_imports import blamed
from .session import Emit, Json, Session
from .target import target_of


def time(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``time``.

    Params: ``target``, ``runner``, ``options`` (fields of `Measurement`), ``rivals`` (runners by name: other
    candidates for the same target, timed in the same blocks).  The result has ``category``, ``findings``,
    ``unchecked``, ``notes`` and, when correct, ``blocks`` (name -> microseconds of each launch of each
    block; a rival that failed has none), ``baselines`` (those that ran), ``lower_precision`` (more of them),
    ``bind_us`` and ``environment``.
    """
    launch = Launch.of(params["runner"]).on(session.task.reference.device)
    if not launch.device.startswith("cuda"):
        raise Fault("usage", "only a GPU is timed", advice="emulator verdicts are functional")
    require_device(session.task.reference.device)
    options = Measurement(**(params.get("options") or {}))
    device = session.task.reference.device
    rivals = {name: Launch.of(runner).on(device) for name, runner in (params.get("rivals") or {}).items()}
    contest = Contest(session, params["target"], launch, rivals, options, emit)
    try:
        return contest.run()
    except CandidateFault as raised:
        fault = blamed(raised, launch, session.task.reference)
        return {"category": fault.category, "findings": [fault.as_finding()], "unchecked": [], "notes": []}
    except Unsupported:
        finding = CandidateFault("unsupported", "the full size, when timed").as_finding()
        return {"category": "unsupported", "findings": [finding], "unchecked": [], "notes": []}
    finally:
        contest.close()


def warm(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``warm``: start the baselines that ``time`` will want; ``wait``: until they run."""
    if session.task.reference.device.type == "cuda":
        options = Measurement(**(params.get("options") or {}))
        wanted = kinds(session.task, target_of(session.task, params["target"]), options)
        session.baselines.start(session.task, params["target"], wanted)
        if params.get("wait"):
            emit("stage", {"stage": "baselines", "limit_s": BASELINE_SECONDS})
            session.baselines.wait(params["target"])
    return {}


def rest(session: Session, params: Json, emit: Emit) -> Json:
    """The judge's method ``rest``: baselines that are not ready stop until the next ``warm``."""
    session.baselines.rest()
    return {}
