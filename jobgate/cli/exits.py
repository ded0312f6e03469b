"""Exit statuses of the commands."""

from enum import IntEnum

from jobgate.client.phases import Ending, Goal, ending_of, is_reached


class Exit(IntEnum):
    """What a command reports to a script."""

    SUCCEEDED = 0
    FAILED = 1
    USAGE = 2  # the request cannot work: wrong arguments, a refused manifest, a gateway that does not answer
    TIMED_OUT = 3
    CANCELLED = 4
    INTERRUPTED = 130  # as of a shell command that SIGINT ended


def exit_of(goal: Goal, phase: str) -> Exit:
    """Return the exit status of a command that has waited until an object had this phase."""
    ending = ending_of(phase)
    if ending is Ending.CANCELLED:
        return Exit.CANCELLED
    if ending is Ending.FAILED:
        return Exit.FAILED
    return Exit.SUCCEEDED if is_reached(goal, phase) else Exit.FAILED
