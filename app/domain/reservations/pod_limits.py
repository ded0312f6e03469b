"""The limits on the planned pods of all live jobs of an installation, and the jobs that wait for room within them.

new job ─▶ fits, and no other job of its namespace waits ─▶ has room until it ends
larger than the limit, or too many wait        ─▶ refused
otherwise                                      ─▶ waits for its turn: by priority, then by age
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from app.domain.errors import FieldError


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLimits:
    """The limits on the planned pods of live jobs, including paused jobs.

    `waiting` is how many jobs of a namespace may wait for room within its limit. If it is 0, they are refused.
    """

    installation: int = 100_000
    namespace: int = 50_000
    waiting: int = 0

    @property
    def largest_job(self) -> int:
        """The pods of the largest job that can ever have room."""
        return min(self.installation, self.namespace)


DEFAULT_LIMITS: Final = PodLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class OverLimit:
    """A limit that the wanted pods would exceed. `namespace` is None for the limit of the installation.

    `waiting` is the number of jobs of the namespace that wait for room before them.
    """

    namespace: str | None
    wanted: int
    planned: int
    limit: int
    waiting: int = 0

    @property
    def is_for_ever(self) -> bool:
        """Whether the pods would not fit if no other job had any."""
        return self.wanted > self.limit

    @property
    def detail(self) -> str:
        where = f"the namespace {self.namespace}" if self.namespace is not None else "this installation"
        if self.is_for_ever:
            return f"{_pods(self.wanted)} never fit: the jobs of {where} may have {self.limit} together"
        wanted = "1 more pod does" if self.wanted == 1 else f"{self.wanted} more pods do"
        detail = f"{wanted} not fit: the jobs of {where} that have not ended have {self.planned} of {self.limit}"
        return detail + (f", and {_jobs(self.waiting)} before" if self.waiting else "")

    def error(self, pointer: str) -> FieldError:
        room = self.limit - self.planned
        if self.is_for_ever:
            accepted = f"at most {_pods(self.limit)}"
        elif self.waiting:
            accepted = "no more pods, or wait until these jobs have started"
        elif room > 0:
            accepted = f"at most {_pods(room)}, or wait until other jobs end"
        else:
            accepted = "no more pods, or wait until other jobs end"
        return FieldError(pointer=pointer, code="TooManyPods", detail=self.detail, accepted=accepted)


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def _jobs(waiting: int) -> str:
    return f"{waiting} jobs wait for room" if waiting > 1 else "1 job waits for room"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWithoutRoom:
    """A job that has not ended, and waits until its pods fit within the limits of live pods."""

    uid: UUID
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomWait:
    """What a job waits for: the jobs of its namespace have `planned` of `limit` pods, and `before` get room earlier.

    `is_complete` is False if more jobs may be before it than those. `is_installation_full` says that the room of the
    namespace suffices for the job, but that of the installation does not.
    """

    pods: int
    planned: int
    limit: int
    before: tuple[str, ...] = ()
    is_complete: bool = True
    is_installation_full: bool = False

    @property
    def message(self) -> str:
        has = f"the jobs of the namespace that have room have {self.planned} of {self.limit} pods"
        needs = f"the job needs {self.pods} pod{'s' if self.pods > 1 else ''}"
        if self.pods > self.limit:
            return f"{needs}, more than its namespace may have: {has}"
        if self.is_installation_full:
            return f"{needs}, for which this installation has no room; {has}"
        return f"{needs}, and {has}; {self._turn}"

    @property
    def _turn(self) -> str:
        if not self.before:
            return "it is the next job to get room"
        listed = ", ".join(self.before)
        return f"before it: {listed}" if self.is_complete else f"before it: {listed} and possibly more"


@dataclass(slots=True)
class PodRoom:
    """The number of planned pods, in the installation and by namespace, and their limits.

    `waiting` is the number of jobs that wait for room, by namespace.
    """

    limits: PodLimits
    planned: int = 0
    by_namespace: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)

    def take(self, namespace: str, pods: int) -> OverLimit | None:
        """Count these pods as planned and return None, or return the limit that they exceed. 0 pods exceed none.

        They do not fit while jobs of the namespace wait, whose turn is before.
        """
        waiting = self.waiting.get(namespace, 0)
        if 0 < pods <= self.limits.largest_job and waiting:
            return replace(self._over(namespace, pods), waiting=waiting)
        return self._take(namespace, pods)

    def exceed(self, namespace: str, pods: int) -> OverLimit | None:
        """Return the limit that a job of so many pods exceeds alone, so that it could never have room."""
        if pods > self.limits.namespace:
            return self._over(namespace, pods)
        if pods > self.limits.installation:
            return OverLimit(namespace=None, wanted=pods, planned=self.planned, limit=self.limits.installation)
        return None

    def enqueue(self, over: OverLimit) -> bool:
        """Count the job that wants these pods as waiting. Return whether it may wait."""
        namespace = over.namespace
        if namespace is None or over.wanted > self.limits.largest_job:
            return False
        if self.waiting.get(namespace, 0) >= self.limits.waiting:
            return False
        self.waiting[namespace] = self.waiting.get(namespace, 0) + 1
        return True

    def take_in_turn(self, namespace: str, jobs: Iterable[JobWithoutRoom]) -> list[JobWithoutRoom]:
        """Count the pods of waiting jobs of a namespace as planned, in this order, and return these jobs.

        The first one that does not fit ends the turn, so that smaller ones after it cannot delay it for ever. Those
        that can never fit are left out.
        """
        started = []
        for job in jobs:
            if job.pods > self.limits.largest_job:
                continue
            if self._take(namespace, job.pods) is not None:
                break
            started.append(job)
        return started

    def _over(self, namespace: str, pods: int) -> OverLimit:
        planned = self.by_namespace.get(namespace, 0)
        return OverLimit(namespace=namespace, wanted=pods, planned=planned, limit=self.limits.namespace)

    def _take(self, namespace: str, pods: int) -> OverLimit | None:
        there = self.by_namespace.get(namespace, 0)
        # Scaling down is always accepted, also if a lowered limit is exceeded already.
        if pods > 0 and there + pods > self.limits.namespace:
            return self._over(namespace, pods)
        if pods > 0 and self.planned + pods > self.limits.installation:
            return OverLimit(namespace=None, wanted=pods, planned=self.planned, limit=self.limits.installation)
        self.planned += pods
        self.by_namespace[namespace] = there + pods
        return None

    def is_far_from_full(self, wanted: Mapping[str, int], writers: int) -> bool:
        """Return whether these pods fit even if `writers` concurrent transactions each add their share of the limits.

        A transaction that relies on the answer adds at most a `share` of each limit itself, and none to a namespace in
        which jobs wait.
        """
        added = {namespace: pods for namespace, pods in wanted.items() if not self.waiting.get(namespace)}
        total = sum(added.values())
        everywhere, here = share(self.limits.installation, writers), share(self.limits.namespace, writers)
        if total > everywhere or self.planned + total + (writers - 1) * everywhere > self.limits.installation:
            return False
        return all(
            pods <= here and self.by_namespace.get(namespace, 0) + pods + (writers - 1) * here <= self.limits.namespace
            for namespace, pods in added.items()
        )


def share(limit: int, writers: int) -> int:
    """Return how many pods each of several concurrent writers may add unseen by the others.

    Together, the writers may add a quarter of the limit.
    """
    # Writers that are far from a limit need not wait for one another. Near it, each waits and counts the others.
    return limit // (4 * writers)
