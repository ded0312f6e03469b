"""What the ClusterQueues of a cohort can use beyond their own quota. Pure.

    lent by a queue         its quota, or its lendingLimit; the rest is only its own
    pool of the cohort      what all of its queues lend, less what they use of it
    a queue has             the rest of its own, and what is left in the pool up to its borrowingLimit

This is Kueue's computation for a cohort without a parent and without quota of its own. jobgate reads no Cohorts.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

from app.domain.kubernetes.quantity import value_of
from app.domain.kubernetes.queueing import ClusterQueue, ResourceQuota

_ZERO: Final = Decimal(0)


class QuotaKey(NamedTuple):
    flavor: str
    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortShare:
    """What a ClusterQueue can use of a resource now (`free`), and if no queue of its cohort used any (`most`)."""

    free: Decimal
    most: Decimal


CohortShares: TypeAlias = Mapping[QuotaKey, CohortShare]
NO_COHORT: Final[CohortShares] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quota:
    nominal: Decimal
    used: Decimal
    lent: Decimal
    borrowing_limit: Decimal | None

    @property
    def own(self) -> Decimal:
        return self.nominal - self.lent

    @property
    def used_of_pool(self) -> Decimal:
        return max(_ZERO, self.used - self.own)

    def share(self, pool: Decimal, used_of_pool: Decimal) -> CohortShare:
        left, most = pool - used_of_pool, self.own + pool
        if self.borrowing_limit is not None:
            left = min(left, self.lent - self.used_of_pool + self.borrowing_limit)
            most = min(most, self.nominal + self.borrowing_limit)
        return CohortShare(free=max(_ZERO, max(_ZERO, self.own - self.used) + left), most=most)


def cohort_shares(queues: Iterable[ClusterQueue]) -> Mapping[str, CohortShares]:
    """Return what each of the ClusterQueues that belong to a cohort can use, by name."""
    quotas = {
        (queue.spec.cohort_name, queue.metadata.name): dict(_quotas(queue))
        for queue in queues
        if queue.spec.cohort_name
    }
    pools: dict[tuple[str, QuotaKey], tuple[Decimal, Decimal]] = {}
    for (cohort, _), found in quotas.items():
        for key, quota in found.items():
            lent, used = pools.get((cohort, key), (_ZERO, _ZERO))
            pools[cohort, key] = lent + quota.lent, used + quota.used_of_pool
    return {
        name: {key: quota.share(*pools[cohort, key]) for key, quota in found.items()}
        for (cohort, name), found in quotas.items()
    }


def _quotas(queue: ClusterQueue) -> Iterator[tuple[QuotaKey, _Quota]]:
    used = {
        QuotaKey(flavor.name, item.name): value_of(item.total)
        for flavor in queue.status.flavors_reservation
        for item in flavor.resources
    }
    for group in queue.spec.resource_groups:
        for flavor in group.flavors:
            for resource in flavor.resources:
                key = QuotaKey(flavor.name, resource.name)
                yield key, _quota(resource, used.get(key, _ZERO))


def _quota(resource: ResourceQuota, used: Decimal) -> _Quota:
    nominal, limit = value_of(resource.nominal_quota), resource.lending_limit
    return _Quota(
        nominal=nominal,
        used=used,
        lent=nominal if limit is None else min(nominal, value_of(limit)),
        borrowing_limit=None if resource.borrowing_limit is None else value_of(resource.borrowing_limit),
    )
