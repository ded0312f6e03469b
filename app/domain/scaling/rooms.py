"""Plans a replica onto the node with the most free CPU, then memory, that has room for it.

The default scheduler prefers the same node. The nodes are sorted in this order, so that one of the first usually fits.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from app.domain.scaling.values import NodeCapacity, ScalableJob

_Place: TypeAlias = tuple[int, int, str]


class Rooms:
    def __init__(self, nodes: Iterable[NodeCapacity]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._order = sorted(_place(node) for node in self._nodes.values() if node.open)

    @property
    def nodes(self) -> tuple[NodeCapacity, ...]:
        """The nodes with their remaining capacity, in the given order."""
        return tuple(self._nodes.values())

    def find(self, job: ScalableJob) -> NodeCapacity | None:
        """Return the node for one more replica; None if it fits on none."""
        for free_cpu, _, name in reversed(self._order):
            if job.need.cpu and free_cpu < job.need.cpu:
                return None  # the nodes that follow have even less free CPU
            if _takes(node := self._nodes[name], job):
                return node
        return None

    def charge(self, node: NodeCapacity, job: ScalableJob) -> None:
        charged = replace(node, free=node.free - job.need, slots=node.slots - 1)
        # The name of the node makes its place unique, so bisect finds this very entry.
        del self._order[bisect_left(self._order, _place(node))]
        insort(self._order, _place(charged))
        self._nodes[node.name] = charged


def _place(node: NodeCapacity) -> _Place:
    return node.free.cpu, node.free.memory, node.name


def _takes(node: NodeCapacity, job: ScalableJob) -> bool:
    return node.slots > 0 and node.free.covers(job.need) and job.selector.items() <= node.labels.items()
