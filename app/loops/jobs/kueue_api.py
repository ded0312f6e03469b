"""What the cluster serves of Kueue: whether there is its API, whether it has Cohorts, and what it accepts."""

from contextlib import suppress
from typing import Final

from app.base.clock import Clock
from app.domain.queueing.schema import SCHEMA, most_pod_sets_of
from app.k8s.api import KubeApi
from app.k8s.errors import KubeError
from app.k8s.resources import COHORT, WORKLOAD, Discovery

READ_SCHEMA_EVERY: Final = 300.0  # seconds until a new version of Kueue is noticed; its document has about a megabyte


class KueueApi:
    """Reads what the cluster serves, at most once in `every` seconds."""

    def __init__(self, api: KubeApi, clock: Clock, every: float) -> None:
        self._api = api
        self._clock = clock
        self._discovery = Discovery(api.get_raw, clock, every)
        self._schema_until = 0.0
        self.has_cohorts = False
        self.most_pod_sets: int | None = None

    async def is_served(self) -> bool:
        """Return whether the cluster serves Kueue's API. Without an answer, the last one counts.

        Raises:
            KubeError: there was no answer yet.
        """
        served = await self._discovery.has(WORKLOAD)
        self.has_cohorts = await self._discovery.has(COHORT)
        return served

    async def read_limits(self) -> None:
        """Read what the present version of Kueue accepts, if the last answer is old. Without one, it stays known."""
        if self._schema_until <= self._clock.monotonic():
            with suppress(KubeError):
                self.most_pod_sets = most_pod_sets_of(await self._api.get_raw(SCHEMA))
                self._schema_until = self._clock.monotonic() + READ_SCHEMA_EVERY
