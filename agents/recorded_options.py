"""The options of a reference as a session's journal holds them: a run that takes it up keeps to them."""

from pydantic import ValidationError

from stitch_tui.agents.settings import ReferenceSettings
from stitch_tui.agents.state import Session
from stitch_tui.tools.errors import UsageError

OPTIONS = {"mode", "dtype", "matmul_precision", "allow_tf32_conv"}
"""Settings of the reference that verdicts depend on; a journal may be somebody else's and sets no others."""


def as_recorded(reference: ReferenceSettings, session: Session) -> ReferenceSettings:
    """`reference` with the options that the verdicts of `session` depend on.

    Raises:
        UsageError: the journal holds other options, or values that none may have.
    """
    if others := sorted(session.options.keys() - OPTIONS):
        raise _unusable(session, others[0], "no session keeps that")
    try:
        return ReferenceSettings.model_validate(reference.model_dump() | session.options)
    except ValidationError as fault:
        first = fault.errors()[0]
        raise _unusable(session, ".".join(map(str, first["loc"])), first["msg"]) from fault


def _unusable(session: Session, name: str, why: str) -> UsageError:
    return UsageError(
        "the session's options cannot be used",
        where=session.id,
        why=f"reference.{name}: {why}",
        advice="start a new session",
    )
