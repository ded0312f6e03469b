"""Runs loops that must never end. A loop that fails or returns is logged, counted, and started again."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass

import structlog

from app.base.backoff import ExponentialBackoff
from app.base.cancellation import TaskGroup, rounds
from app.base.clock import Clock
from app.loops.metrics import LOOP_RESTARTS

log = structlog.get_logger(__name__)

BACKOFF = ExponentialBackoff(first=0.5, longest=30.0)  # seconds before a loop is started again
HEALTHY_AFTER = 60.0  # seconds of running after which earlier failures are forgotten

Loop = Callable[[], Coroutine[None, None, None]]


@dataclass(slots=True)
class Supervisor:
    """Runs all loops by name. Cancel `run` to stop them."""

    loops: Mapping[str, Loop]
    clock: Clock

    async def run(self) -> None:
        async with TaskGroup() as group:
            for name, loop in self.loops.items():
                group.create_task(self._keep_running(name, loop), name=name)

    async def _keep_running(self, name: str, loop: Loop) -> None:
        failures = 0
        # From the start: Prometheus sees no increase in a series that begins with 1.
        restarts = LOOP_RESTARTS.labels(name)
        for _ in rounds():
            started = self.clock.monotonic()
            try:
                # The loop has a task of its own, so that a loop that ends as cancelled does not end the supervisor.
                async with TaskGroup() as group:
                    group.create_task(loop())
                log.error("loop.returned", loop=name)
            # CancelledError is no Exception, so the supervisor's own cancellation is not handled here.
            except* Exception:
                log.exception("loop.failed", loop=name)
            restarts.inc()
            if self.clock.monotonic() - started > HEALTHY_AFTER:
                failures = 0
            failures += 1
            await asyncio.sleep(BACKOFF.delay(failures))
