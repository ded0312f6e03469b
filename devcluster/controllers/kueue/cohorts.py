"""What ClusterQueues borrow from and lend to each other, by the tree of their Cohorts. Pure.

A Cohort that is only named has neither quota of its own nor a parent. Amounts can be negative: then more is in use
than there is.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

from devcluster.controllers.kueue.workloads import Usage, total, without
from devcluster.formats.objects import Object, meta, spec
from devcluster.formats.quantity import parse

_ZERO = Decimal(0)
_Key: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class QuotaNode:
    """A ClusterQueue or Cohort. Only a ClusterQueue has `used` of its own."""

    quotas: dict[_Key, Object] = field(default_factory=dict)
    parent: "QuotaNode | None" = None
    children: list["QuotaNode"] = field(default_factory=list)
    used: Usage = field(default_factory=dict)

    def nominal(self, key: _Key) -> Decimal:
        return self._amount(key, "nominalQuota") or _ZERO

    def available(self, key: _Key) -> Decimal:
        """Return what the node can use now."""
        if self.parent is None:
            return self._subtree(key) - self._usage(key)
        own, used = self._own(key), self._usage(key)
        left, limit = self.parent.available(key), self._amount(key, "borrowingLimit")
        if limit is not None:
            left = min(left, self._lending(key) - max(_ZERO, used - own) + limit)
        return max(_ZERO, own - used) + left

    def maximum(self, key: _Key) -> Decimal:
        """Return what the node could use if no other one used any."""
        if self.parent is None:
            return self._subtree(key)
        most, limit = self._own(key) + self.parent.maximum(key), self._amount(key, "borrowingLimit")
        return most if limit is None else min(most, self._subtree(key) + limit)

    def use(self, amounts: Usage) -> None:
        self.used = total((self.used, amounts))

    def give_back(self, amounts: Usage) -> None:
        self.used = without(self.used, amounts)

    def _subtree(self, key: _Key) -> Decimal:
        return self.nominal(key) + sum((child._lending(key) for child in self.children), _ZERO)  # noqa: SLF001

    def _usage(self, key: _Key) -> Decimal:
        below = (max(_ZERO, child._usage(key) - child._own(key)) for child in self.children)  # noqa: SLF001
        return self.used.get(key, _ZERO) + sum(below, _ZERO)

    def _lending(self, key: _Key) -> Decimal:
        subtree, limit = self._subtree(key), self._amount(key, "lendingLimit")
        return subtree if limit is None else min(subtree, limit)

    def _own(self, key: _Key) -> Decimal:
        return self._subtree(key) - self._lending(key)

    def _amount(self, key: _Key, field_name: str) -> Decimal | None:
        found = self.quotas.get(key, {}).get(field_name)
        return None if found is None else parse(found)


def tree(queues: Iterable[Object], cohorts: Collection[Object]) -> dict[str, QuotaNode]:
    """Return the nodes of ClusterQueues by their names, within the tree of their Cohorts."""
    above = {meta(cohort)["name"]: QuotaNode(quotas_of(cohort)) for cohort in cohorts}
    for cohort in cohorts:
        _join(above[meta(cohort)["name"]], spec(cohort).get("parentName", ""), above)
    found: dict[str, QuotaNode] = {}
    for queue in queues:
        node = found[meta(queue)["name"]] = QuotaNode(quotas_of(queue))
        _join(node, spec(queue).get("cohortName", ""), above)
    return found


def _join(node: QuotaNode, parent: str, above: dict[str, QuotaNode]) -> None:
    """Put a node below its parent, unless that is below the node already."""
    if not parent:
        return
    found = above.setdefault(parent, QuotaNode())
    upward: QuotaNode | None = found
    while upward is not None:
        if upward is node:
            return
        upward = upward.parent
    node.parent = found
    found.children.append(node)


def quotas_of(obj: Object) -> dict[_Key, Object]:
    """Return the quotas of a ClusterQueue or Cohort, by flavor and resource."""
    return {
        (flavor["name"], resource["name"]): resource
        for group in spec(obj).get("resourceGroups") or []
        for flavor in group.get("flavors") or []
        for resource in flavor.get("resources") or []
    }
