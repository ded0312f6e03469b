"""The events of an object."""

from typing import NamedTuple


class EventPlace(NamedTuple):
    """The place of an event among the events of its object, independent of other events.

    For an event of a pod, `number` is its number among the events of the attempt, from 1. An event that does not belong
    to an attempt has attempt 0 and rank 0, and `task` and `number` identify it.
    """

    attempt: int = 0
    task: str = ""
    rank: int = 0
    number: int = 0
