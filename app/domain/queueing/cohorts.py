"""What the ClusterQueues of a cohort can use beyond their own quota. Pure.

    subtree of a node       the quota of a ClusterQueue; that of a Cohort, and what all below it lend
    lent by a node          its subtree, or its lendingLimit; the rest is only its own
    used of a Cohort        what those below use beyond their own
    a node has              the rest of its own, and what its parent has, up to its borrowingLimit

This is Kueue's computation. A Cohort is the parent of ClusterQueues and of other Cohorts. One that is only named, and
does not exist as an object, has neither a parent nor quota of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

from app.domain.kubernetes.quantity import value_of
from app.domain.kubernetes.queueing import ClusterQueue, Cohort, ResourceGroup, ResourceQuota

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


class _Limits(NamedTuple):
    lending: Decimal | None
    borrowing: Decimal | None


_UNLIMITED: Final = _Limits(None, None)


@dataclass(slots=True, kw_only=True)
class _Node:
    """A ClusterQueue or Cohort. `left` and `most` are what it can use now, which may be less than none, and in all."""

    subtree: dict[QuotaKey, Decimal] = field(default_factory=dict)
    used: dict[QuotaKey, Decimal] = field(default_factory=dict)
    limits: dict[QuotaKey, _Limits] = field(default_factory=dict)
    left: dict[QuotaKey, Decimal] = field(default_factory=dict)
    most: dict[QuotaKey, Decimal] = field(default_factory=dict)

    def lending(self, key: QuotaKey) -> Decimal:
        limit = self.limits.get(key, _UNLIMITED).lending
        subtree = self.subtree.get(key, _ZERO)
        return subtree if limit is None else min(subtree, limit)

    def own(self, key: QuotaKey) -> Decimal:
        return self.subtree.get(key, _ZERO) - self.lending(key)

    def used_of_parent(self, key: QuotaKey) -> Decimal:
        return max(_ZERO, self.used.get(key, _ZERO) - self.own(key))

    def add(self, below: "_Node") -> None:
        """Add what a ClusterQueue or Cohort below lends and borrows."""
        for key in below.subtree.keys() | below.used.keys():
            self.subtree[key] = self.subtree.get(key, _ZERO) + below.lending(key)
            self.used[key] = self.used.get(key, _ZERO) + below.used_of_parent(key)

    def share_in(self, parent: "_Node | None") -> None:
        for key, subtree in self.subtree.items():
            used, own = self.used.get(key, _ZERO), self.own(key)
            if parent is None:
                self.left[key], self.most[key] = subtree - used, subtree
                continue
            left, most = parent.left.get(key, _ZERO), own + parent.most.get(key, _ZERO)
            limit = self.limits.get(key, _UNLIMITED).borrowing
            if limit is not None:
                left = min(left, self.lending(key) - self.used_of_parent(key) + limit)
                most = min(most, subtree + limit)
            self.left[key], self.most[key] = max(_ZERO, own - used) + left, most


def cohort_shares(queues: Iterable[ClusterQueue], cohorts: Iterable[Cohort]) -> Mapping[str, CohortShares]:
    """Return what each of the ClusterQueues that belong to a cohort can use, by name.

    Those below a cycle of Cohorts are not among them: Kueue admits nothing to them.
    """
    objects = {cohort.metadata.name: cohort for cohort in cohorts}
    members = {queue.metadata.name: queue for queue in queues if queue.spec.cohort_name}
    named = {*objects, *(item.spec.parent_name for item in objects.values())} - {""}
    paths = {name: _path(name, objects) for name in named | {item.spec.cohort_name for item in members.values()}}
    nodes = {
        name: _node(objects[name].spec.resource_groups if name in objects else ())
        for name, path in paths.items()
        if path
    }
    leaves = {name: _leaf(queue) for name, queue in members.items() if queue.spec.cohort_name in nodes}
    for name, leaf in leaves.items():
        nodes[members[name].spec.cohort_name].add(leaf)
    order = sorted(nodes, key=lambda name: len(paths[name]))
    for name in reversed(order):
        for parent in paths[name][1:2]:
            nodes[parent].add(nodes[name])
    for name in order:
        nodes[name].share_in(next((nodes[parent] for parent in paths[name][1:2]), None))
    for name, leaf in leaves.items():
        leaf.share_in(nodes[members[name].spec.cohort_name])
    return {
        name: {key: CohortShare(free=max(_ZERO, leaf.left[key]), most=leaf.most[key]) for key in leaf.subtree}
        for name, leaf in leaves.items()
    }


def _path(name: str, objects: Mapping[str, Cohort]) -> Sequence[str]:
    """Return the Cohort and those above it, up to the root; empty if it is below a cycle."""
    path: list[str] = []
    while name:
        if name in path:
            return ()
        path.append(name)
        name = objects[name].spec.parent_name if name in objects else ""
    return path


def _leaf(queue: ClusterQueue) -> _Node:
    node = _node(queue.spec.resource_groups)
    for flavor in queue.status.flavors_reservation:
        for item in flavor.resources:
            node.used[QuotaKey(flavor.name, item.name)] = value_of(item.total)
    return node


def _node(groups: Iterable[ResourceGroup]) -> _Node:
    node = _Node()
    for key, quota in _quotas(groups):
        node.subtree[key] = value_of(quota.nominal_quota)
        node.limits[key] = _Limits(_limit(quota.lending_limit), _limit(quota.borrowing_limit))
    return node


def _quotas(groups: Iterable[ResourceGroup]) -> Iterator[tuple[QuotaKey, ResourceQuota]]:
    for group in groups:
        for flavor in group.flavors:
            for resource in flavor.resources:
                yield QuotaKey(flavor.name, resource.name), resource


def _limit(quantity: str | int | None) -> Decimal | None:
    return None if quantity is None else value_of(quantity)
