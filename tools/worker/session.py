"""What lasts in the judge between two requests."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .faults import Fault

if TYPE_CHECKING:
    from .baselines import Baselines
    from .task import Task

Json = dict[str, Any]
Emit = Callable[[str, Json], None]
"""Reports progress: ``emit(event, data)``."""


class Session:
    """What lasts between requests."""

    def __init__(self) -> None:
        self._task: Task | None = None
        self._baselines: Baselines | None = None

    @property
    def is_open(self) -> bool:
        return self._task is not None

    @property
    def task(self) -> "Task":
        """The open `task.Task`.

        Raises:
            Fault: nothing has been opened.
        """
        if self._task is None:
            raise Fault("usage", "no reference is open", advice="call open first")
        return self._task

    @task.setter
    def task(self, task: "Task") -> None:
        self._task = task

    @property
    def baselines(self) -> "Baselines":
        """The reference's own processes, for timing."""
        if self._baselines is None:
            from .baselines import Baselines

            self._baselines = Baselines()
        return self._baselines

    def close(self) -> None:
        """End what was started; one that rests does not see that the judge is gone."""
        if self._baselines is not None:
            self._baselines.close()
