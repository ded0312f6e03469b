"""Which logs the argument of `logs` names: `JOB`, `JOB/TASK`, `JOB/TASK/RANK`, or the name of a pod.

JOB is a name or a uid.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from jobgate.cli.targets import TargetError, is_kind, job_named
from jobgate.client import NotFoundError

if TYPE_CHECKING:
    from jobgate.client import Client

_ACCEPTED: Final = "accepted: JOB, JOB/TASK, JOB/TASK/RANK, the name of a pod, or a uid"


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A job, and the task and the rank if they are named."""

    job: str | UUID
    task: str | None = None
    rank: int | None = None

    def narrow(self, task: str | None, rank: int | None) -> "LogPlace":
        """Return the place with the task and the rank of the options. Raise TargetError if these are others."""
        for option, given, named in (("--task", task, self.task), ("--rank", rank, self.rank)):
            if given is not None and named is not None and given != named:
                raise TargetError(f"{option} {given} contradicts the argument, which names {named}")
        return LogPlace(self.job, self.task if task is None else task, self.rank if rank is None else rank)


def place_named(text: str) -> LogPlace:
    """Return the place that a text names if it is not the name of a pod."""
    first, slash, rest = text.partition("/")
    if slash and is_kind(first):
        job_named(f"{first}/{rest.partition('/')[0]}", "logs")  # a kind without logs is an error
        first, slash, rest = rest.partition("/")
    # A name of a task may contain slashes, and a rank is a number.
    task, _, last = rest.rpartition("/")
    if not last.isdecimal() or not task:
        task, last = rest, ""
    if not first or (slash and not task):
        raise TargetError(f"logs {text}: {_ACCEPTED}")
    return LogPlace(first, task or None, int(last) if last else None)


def places(client: "Client", text: str) -> Iterator[LogPlace]:
    """Yield what a text can name, the likeliest first. The caller tries the next one if there is no such job."""
    place = place_named(text)
    if (uid := _uid(str(place.job))) is not None:
        yield replace(place, job=uid)
    yield place
    if "/" not in text:
        yield from _pods(client, text)


def _uid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _pods(client: "Client", name: str) -> Iterator[LogPlace]:
    """Yield the replica whose pod has this name. The names of pods begin with that of their job, in every kind."""
    parts = name.split("-")
    for count in range(len(parts) - 1, 0, -1):
        job = "-".join(parts[:count])
        try:
            replicas = client.jobs.replicas(job)
        except NotFoundError:
            continue
        yield from (LogPlace(job, replica.task, replica.rank) for replica in replicas if replica.name == name)
