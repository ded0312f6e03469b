"""The state of the whole installation: the same in every process, whatever its role.

PostgreSQL ─▶ lease, feed, heartbeat of the controller ─▶ what works, and what waits
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from app.db.installation import leases, system
from app.db.installation.heartbeats import Heartbeat
from app.db.installation.system import StoredSystem
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.services.reading.freshness import Freshness, FreshnessReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one readiness check. `detail` says what is wrong."""

    name: str
    ok: bool
    detail: str = ""


ReadinessChecks: TypeAlias = Callable[[], Awaitable[Sequence[Check]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerHealth:
    """The active controller. `ok` is False if an operator must act."""

    ok: bool
    state: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemState:
    """`stored` is None if PostgreSQL does not answer; `beat` is then the last heartbeat that was read."""

    database: Check
    stored: StoredSystem | None
    beat: Heartbeat | None
    freshness: Freshness

    @property
    def controller(self) -> ControllerHealth:
        if self.stored is not None and self.stored.lease_expires_at is None:
            return ControllerHealth(ok=False, state="Waiting", message="no process holds the controller's lease")
        return health_of(self.beat)


def health_of(beat: Heartbeat | None) -> ControllerHealth:
    """Return the health of a controller that holds the lease, from its last heartbeat."""
    if beat is None:
        return ControllerHealth(ok=True, state="Waiting", message="no controller has had contact with the cluster")
    # An unreachable cluster needs no restart and may come back; only an operator can resolve a wrong one.
    return ControllerHealth(ok=beat.state != "WrongCluster", state=beat.state, message=beat.message)


class SystemReader:
    """Reads the state of the installation. `readiness` has a check of the database."""

    def __init__(self, db: Database, freshness: FreshnessReader, readiness: ReadinessChecks) -> None:
        self._db = db
        self._freshness = freshness
        self._readiness = readiness

    async def read(self) -> SystemState:
        database = next(check for check in await self._readiness() if check.name == "database")
        stored: StoredSystem | None = None
        with suppress(DatabaseUnavailable):
            stored = await system.read(self._db, leases.CONTROLLER)
        return SystemState(
            database=database,
            stored=stored,
            freshness=await self._freshness.read(),
            beat=await self._freshness.heartbeat(),
        )
