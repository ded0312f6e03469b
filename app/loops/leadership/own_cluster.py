"""The cluster of an installation, for the parts of a controller that write to it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from app.k8s.api import KubeApi
from app.loops.leadership.lease import Leadership


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCluster:
    """The cluster that an installation has identified as its own, and the lease under which this process writes to it.

    `verify` raises if another cluster answers now: that it has none of the objects would prove nothing. `timeout` is
    seconds for each request.
    """

    api: KubeApi
    leadership: Leadership
    verify: Callable[[], Awaitable[None]]
    timeout: float

    def guard(self) -> None:
        """Check before a request that the lease outlives it.

        Raises:
            LeaseLost: the lease could expire before the request ends.
        """
        self.leadership.guard(self.timeout)
