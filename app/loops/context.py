"""What every part of a controller works with. The composition root makes it once for each process."""

from dataclasses import dataclass, field
from uuid import UUID

from app.base.clock import Clock
from app.db.feed.publisher import Publisher
from app.db.installation.timekeeper import Timekeeper
from app.db.postgres.engine import Database
from app.db.postgres.notifications import Listener
from app.domain.planning import Planner
from app.domain.reconcile.timing import Timing
from app.exports.archive import Archive
from app.k8s.api import KubeApi
from app.loops.cache.runtime_servers import RuntimeServers
from app.loops.controller_settings import ControllerSettings, EvidenceSettings, SampleSettings
from app.loops.leadership.identity import Identity
from app.loops.leadership.lease import Leadership


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerContext:
    """The connections, identity and settings of a controller.

    `db` serves only the controller and `lease_db` only its lease, so that neither waits for requests of clients.
    """

    api: KubeApi
    db: Database
    lease_db: Database
    listener: Listener
    publisher: Publisher
    clock: Clock
    timekeeper: Timekeeper
    installation_id: UUID
    installation_key: bytes = field(repr=False)
    settings: ControllerSettings
    timing: Timing
    evidence: EvidenceSettings
    planner: Planner
    samples: SampleSettings
    runtimes: RuntimeServers
    archive: Archive | None = None  # to which jobs are copied before their records are deleted

    def build_identity(self, leadership: Leadership) -> Identity:
        """Return what compares the installation with its cluster for a process that is, or becomes, the controller."""
        return Identity(
            self.api,
            self.db,
            leadership,
            self.clock,
            installation_id=self.installation_id,
            system_namespace=self.settings.system_namespace,
            timeout=self.settings.request_timeout,
        )
