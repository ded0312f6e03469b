"""Whether Kueue captures new pods of a namespace: it gates each one, and makes a Workload of its own for it.

    the namespace has a LocalQueue `default`, or Kueue's queues are not known    yes
    otherwise                                                                    as it does in a dry run of the create

A pod that is annotated with a suspending parent is not captured. But Kueue gates each annotated pod, in any namespace,
and it costs a patch to remove the gates. So only pods that it would capture are annotated.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from app.base.clock import Clock
from app.domain.plan import Manifest
from app.domain.queueing.requests import DEFAULT_QUEUE
from app.domain.status.observed import KueueState
from app.domain.status.pods.observation import is_gated
from app.k8s.api import KubeApi
from app.k8s.codec import POD
from app.k8s.errors import KubeError
from app.loops.jobs.queues import QueueMirror

PROBE_TTL: Final = 30.0  # seconds until another configuration of Kueue is noticed
SEEN_TTL: Final = 3600.0  # seconds after a captured pod; a dry run had a wrong answer, or was too early


@dataclass(slots=True)
class _Known:
    captures: bool = True
    until: float = 0.0
    probing: asyncio.Lock = field(default_factory=asyncio.Lock)


class Captures:
    """What is known of each namespace; `timeout` is seconds for each request."""

    def __init__(self, api: KubeApi, queues: QueueMirror, clock: Clock, *, timeout: float) -> None:
        self._api = api
        self._queues = queues
        self._clock = clock
        self._timeout = timeout
        self._known: dict[str, _Known] = {}

    async def would_capture(self, pod: Manifest) -> bool:
        """Return whether Kueue would capture this pod without an annotation. It may be wrong about a recent change."""
        namespace = pod["metadata"]["namespace"]
        if self._queues.state is not KueueState.LISTED or self._queues.has_local_queue(namespace, DEFAULT_QUEUE):
            return True
        known = self._known.setdefault(namespace, _Known())
        async with known.probing:
            if known.until <= self._clock.monotonic():
                known.captures = await self._probe(pod)
                known.until = self._clock.monotonic() + PROBE_TTL
            return known.captures

    def note(self, namespace: str) -> None:
        """Note that Kueue has captured a pod of the namespace."""
        known = self._known.setdefault(namespace, _Known())
        known.captures, known.until = True, self._clock.monotonic() + SEEN_TTL

    async def _probe(self, pod: Manifest) -> bool:
        try:
            return is_gated(await self._api.create_as(pod, POD, dry_run=True, timeout=self._timeout))
        except KubeError:
            return True  # the create reports why
