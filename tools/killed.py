"""A runner that was killed gets a second chance: the kill may have been anybody's."""

from collections.abc import Awaitable, Callable

from stitch_tui.tools.bench import Json

NOTE = "a runner was killed by SIGKILL, by somebody or for want of memory; it was run again"


async def unless_killed(ask: Callable[[], Awaitable[Json]]) -> Json:
    """The report of `ask`, a call of the judge; asked again, once, where SIGKILL ended the runner.

    A candidate that kills itself, or takes all memory, does so again.
    """
    report = await ask()
    if not _killed(report):
        return report
    again = await ask()
    again["notes"] = [*again["notes"], NOTE]
    return again


def _killed(report: Json) -> bool:
    return any(finding["detail"].get("signal") == "SIGKILL" for finding in report["findings"])
