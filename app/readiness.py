"""The checks of /readyz: Postgres accepts writes, and the controller is healthy by the clock of its lease."""

import asyncio
from collections.abc import Callable, Sequence

from app.clock import Clock
from app.db.engine import Database
from app.db.errors import DatabaseUnavailable
from app.db.write_proof import prove_writable
from app.loops.leadership.controller_state import ControllerCondition
from app.services.gateway import Check

PROOF_EVERY = 2.0  # seconds that a result is cached; /readyz needs no token, so it must not load Postgres
PROOF_WITHIN = 3.0  # seconds; a healthy server needs a few milliseconds


class Readiness:
    """Returns the checks when called. `condition` is None in a process without a controller.

    A process stays ready while the Kubernetes API does not answer, because clients can still submit and read jobs.
    """

    def __init__(self, db: Database, clock: Clock, condition: Callable[[], ControllerCondition] | None) -> None:
        self._db = db
        self._clock = clock
        self._condition = condition
        self._proving = asyncio.Lock()
        self._proved_at: float | None = None
        self._failure = ""

    async def __call__(self) -> Sequence[Check]:
        failure = await self._database_failure()
        checks = [Check(name="database", ok=not failure, detail=failure)]
        if self._condition is not None:
            found = self._condition()
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
