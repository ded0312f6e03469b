"""The limits on the planned pods of all live jobs of an installation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from app.domain.errors import FieldError


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLimits:
    """The limits on the planned pods of live jobs, including paused jobs."""

    installation: int = 100_000
    namespace: int = 50_000


DEFAULT_LIMITS: Final = PodLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class OverLimit:
    """A limit that the wanted pods would exceed. `namespace` is None for the limit of the installation."""

    namespace: str | None
    wanted: int
    planned: int
    limit: int

    def error(self, pointer: str) -> FieldError:
        where = f"the namespace {self.namespace}" if self.namespace is not None else "this installation"
        return FieldError(
            pointer=pointer,
            code="TooManyPods",
            detail=f"{self.wanted} more pods do not fit: the jobs of {where} that have not ended have "
            f"{self.planned} of {self.limit}",
            accepted=f"{max(self.limit - self.planned, 0)} pods or fewer, or wait until other jobs end",
        )


@dataclass(slots=True)
class PodRoom:
    """The number of planned pods, in the installation and by namespace, and their limits."""

    limits: PodLimits
    planned: int = 0
    by_namespace: dict[str, int] = field(default_factory=dict)

    def take(self, namespace: str, pods: int) -> OverLimit | None:
        """Count these pods as planned and return None, or return the limit that they exceed. 0 pods exceed none."""
        there = self.by_namespace.get(namespace, 0)
        # Scaling down is always accepted, also if a lowered limit is exceeded already.
        if pods > 0 and there + pods > self.limits.namespace:
            return OverLimit(namespace=namespace, wanted=pods, planned=there, limit=self.limits.namespace)
        if pods > 0 and self.planned + pods > self.limits.installation:
            return OverLimit(namespace=None, wanted=pods, planned=self.planned, limit=self.limits.installation)
        self.planned += pods
        self.by_namespace[namespace] = there + pods
        return None

    def is_far_from_full(self, wanted: Mapping[str, int], writers: int) -> bool:
        """Return whether these pods fit even if `writers` concurrent transactions each add their share of the limits.

        A transaction that relies on the answer adds at most a `share` of each limit itself.
        """
        total = sum(wanted.values())
        everywhere, here = share(self.limits.installation, writers), share(self.limits.namespace, writers)
        if total > everywhere or self.planned + total + (writers - 1) * everywhere > self.limits.installation:
            return False
        return all(
            pods <= here and self.by_namespace.get(namespace, 0) + pods + (writers - 1) * here <= self.limits.namespace
            for namespace, pods in wanted.items()
        )


def share(limit: int, writers: int) -> int:
    """Return how many pods each of several concurrent writers may add unseen by the others.

    Together, the writers may add a quarter of the limit.
    """
    # Writers that are far from a limit need not wait for one another. Near it, each waits and counts the others.
    return limit // (4 * writers)
