"""A runner that was killed gets a second chance: the kill may have been anybody's."""

from collections.abc import Awaitable, Callable

from stitch_tui.tools.bench import Json

NOTE = "a runner was killed by SIGKILL, by somebody or for want of memory; it was run again"


async def unless_killed(ask: Callable[[], Awaitable[Json]], anew: Callable[[], object] | None = None) -> Json:
    """The report of `ask`, a call of the judge; asked again, once, where SIGKILL ended the runner.

    A candidate that kills itself, or takes all memory, does so again.

    Args:
        anew: called before it is asked again, for whoever heard of the first attempt.
    """
    report = await ask()
    if not _killed(report):
        return report
    if anew:
        anew()
    again = await ask()
    again["notes"] = [*again["notes"], NOTE]
    return again


def _killed(report: Json) -> bool:
    return any(finding["detail"].get("signal") == "SIGKILL" for finding in report["findings"])
