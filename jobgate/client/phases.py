"""What the phases of the resources mean to a client that waits. Pure."""

from enum import StrEnum
from typing import Final


class Goal(StrEnum):
    """What a client waits for."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DONE = "done"


class Ending(StrEnum):
    """How an object ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


# A SampleSet does not end. It is ready when its data is cached, which is what a client waits for.
_ENDINGS: Final = {
    "Succeeded": Ending.SUCCEEDED,
    "Ready": Ending.SUCCEEDED,
    "Failed": Ending.FAILED,
    "TimedOut": Ending.FAILED,
    "Cancelled": Ending.CANCELLED,
}
# A job that is being resized runs; one that restarts does not.
_RUNNING: Final = frozenset({"Running", "Scaling"})


def ending_of(phase: str) -> Ending | None:
    """Return how an object of this phase ended, or None if it has not."""
    return _ENDINGS.get(phase)


def is_settled(goal: Goal, phase: str, *, is_deleted: bool = False) -> bool:
    """Return whether waiting is over: the goal is reached, or cannot be reached any more."""
    if is_deleted or ending_of(phase) is not None:
        return True
    return goal is Goal.RUNNING and phase in _RUNNING


def is_reached(goal: Goal, phase: str) -> bool:
    """Return whether an object of this phase has reached the goal. An object that has succeeded has also run."""
    if goal is Goal.DONE:
        return ending_of(phase) is not None
    return ending_of(phase) is Ending.SUCCEEDED or (goal is Goal.RUNNING and phase in _RUNNING)
