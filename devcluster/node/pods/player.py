"""The interface of a player, which moves a pod through its states instead of running its containers.

The node works without players. The one that exists is `devcluster.testing.script`.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from devcluster.node.containers.record import ContainerRecord
from devcluster.node.context import PodContext
from devcluster.node.pods.status import PodState


class PodPlayer(Protocol):
    """Changes the container records and the state of one pod, and calls `PodContext.changed` after each change."""

    async def run(self) -> None:
        """Play until the end or until cancelled: the pod is then being deleted."""

    def stop(self) -> None:
        """End all containers of a pod that is being deleted."""


PlayerFor = Callable[[PodContext, Sequence[ContainerRecord], PodState], PodPlayer | None]
"""Returns the player of a pod, or None if the pod is to be run."""


def no_player(_context: PodContext, _records: Sequence[ContainerRecord], _state: PodState) -> None:
    """Run every pod."""
