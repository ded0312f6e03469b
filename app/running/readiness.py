"""The checks of /readyz: the process does not stop, Postgres accepts writes, and the controller is healthy."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from app.base.cancellation import TaskGroup
from app.base.clock import Clock
from app.db.installation import heartbeats, leases
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.db.postgres.write_proof import prove_writable
from app.loops.leadership.controller_state import ControllerCondition
from app.services.reading.system import Check, health_of

PROOF_EVERY = 2.0  # seconds that a result is cached; /readyz needs no token, so it must not load Postgres
PROOF_WITHIN = 3.0  # seconds; a healthy server needs a few milliseconds
Condition = Callable[[], Awaitable[ControllerCondition]]
STOPPING = Check(name="shutdown", ok=False, detail="this process is about to stop")


class Readiness:
    """Returns the checks when called. `condition` is that of the controller; None without a controller to report.

    A process stays ready while the Kubernetes API does not answer, because clients can still submit and read jobs.
    From `stopping` on it is not ready, whatever else is slow: load balancers must learn that before it closes.
    """

    def __init__(self, db: Database, clock: Clock, condition: Condition | None, stopping: asyncio.Event) -> None:
        self._db = db
        self._clock = clock
        self._condition = condition
        self._stopping = stopping
        self._proving = asyncio.Lock()
        self._proved_at: float | None = None
        self._failure = ""

    async def __call__(self) -> Sequence[Check]:
        async with TaskGroup() as group:
            checking = group.create_task(self._check())
            stopping = group.create_task(self._stopping.wait())
            await asyncio.wait({checking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            checking.cancel()
            stopping.cancel()
        return [STOPPING] if self._stopping.is_set() else checking.result()

    async def _check(self) -> Sequence[Check]:
        failure = await self._database_failure()
        checks = [Check(name="database", ok=not failure, detail=failure)]
        if self._condition is not None:
            found = await self._condition()
            checks.append(Check(name="controller", ok=found.ok, detail=str(found)))
        return checks

    async def _database_failure(self) -> str:
        async with self._proving:
            if self._proved_at is None or self._clock.monotonic() - self._proved_at > PROOF_EVERY:
                self._failure = await self._prove()
                self._proved_at = self._clock.monotonic()
            return self._failure

    async def _prove(self) -> str:
        try:
            await prove_writable(self._db, PROOF_WITHIN)
        except DatabaseUnavailable as error:
            return str(error)
        return ""


class StoredController:
    """Derives the condition of a controller in another process from what Postgres stores: its lease and its heartbeat.

    `ttl` is the duration of a lease in seconds.
    """

    def __init__(self, db: Database, clock: Clock, ttl: float) -> None:
        self._db = db
        self._clock = clock
        self._ttl = ttl
        self._reading = asyncio.Lock()
        self._read_at = float("-inf")
        self._held_at = clock.monotonic()  # when the lease was last seen to be held, or this began
        self._beat: heartbeats.Heartbeat | None = None

    async def condition(self) -> ControllerCondition:
        """Return the condition. It is not ok if no process has held the lease for the duration of a lease."""
        async with self._reading:
            if self._clock.monotonic() - self._read_at > PROOF_EVERY:
                await self._read()
        return stored_condition(self._beat, unheld=self._read_at - self._held_at, ttl=self._ttl)

    async def _read(self) -> None:
        # Without an answer, the last heartbeat stays, and the check of the database reports the cause.
        with suppress(DatabaseUnavailable, TimeoutError):
            async with asyncio.timeout(PROOF_WITHIN):
                if await leases.holding(self._db, leases.CONTROLLER) is not None:
                    self._held_at = self._clock.monotonic()
                self._beat = await heartbeats.read(self._db)
        self._read_at = self._clock.monotonic()


def stored_condition(beat: heartbeats.Heartbeat | None, *, unheld: float, ttl: float) -> ControllerCondition:
    """Return the condition of the controller that stored this heartbeat.

    Args:
        beat: None if no controller has had contact with the cluster.
        unheld: seconds in which no process held the lease of the controller.
        ttl: duration of a lease in seconds. If nobody holds the lease for longer, no controller works.
    """
    if unheld > ttl:
        message = f"no process has held the controller's lease for {unheld:.0f} s"
        return ControllerCondition(ok=False, state="Waiting", message=message)
    # As `controller_condition` judges its own process.
    health = health_of(beat)
    return ControllerCondition(ok=health.ok, state=health.state, message=health.message)
