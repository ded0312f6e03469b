"""What a controller is made of and how it waits; given to it by the composition root."""

from dataclasses import dataclass, field
from uuid import UUID

import structlog
from typing_extensions import override

from app.clock import Clock
from app.db.engine import Database
from app.db.notifications import Listener
from app.db.publisher import Publisher
from app.domain.cache.values import CacheSite
from app.domain.dialects.base import Site
from app.domain.namespaces import NamespaceSet
from app.domain.pod_limits import DEFAULT_LIMITS, PodLimits
from app.domain.reconcile.timing import Timing
from app.k8s.api import KubeApi
from app.loops.cache.runtime_servers import RuntimeServers
from app.loops.evidence import EvidenceSettings

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerSettings:
    """Times are seconds. Not `enabled`, it looks and says what it would do. `freeze` is how long a job keeps a size."""

    enabled: bool = False
    period: float = 30.0
    freeze: float = 60.0
    max_load: float = 0.97


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """Times are seconds. `coalesce` is how long changes of one job are gathered before a pass."""

    namespaces: tuple[str, ...] = ()
    reserved_namespaces: tuple[str, ...] = ()
    system_namespace: str = "jobgate-system"
    lease_ttl: float = 15.0
    lease_renew_every: float = 3.0
    request_timeout: float = 5.0
    coalesce: float = 0.02
    poll_every: float = 1.0
    heartbeat_every: float = 1.0
    stale_after: float = 30.0
    retry_every: float = 2.0
    clean_every: float = 30.0
    sweep_every: float = 60.0
    autoscaler: AutoscalerSettings = AutoscalerSettings()
    pod_limits: PodLimits = DEFAULT_LIMITS

    @property
    def served(self) -> NamespaceSet:
        """Where the controller acts; nothing else in the cluster is changed, apart from its own ConfigMap."""
        never = frozenset({self.system_namespace, *self.reserved_namespaces})
        return NamespaceSet(only=frozenset(self.namespaces) or None, never=never)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSettings:
    """Of the data cache: how runtime servers are made, the namespaces whose Secrets sets of others may name, and by
    what the pauses between looks are multiplied.
    """

    site: CacheSite = field(default_factory=CacheSite)
    secret_namespaces: frozenset[str] = frozenset()
    pause_factor: float = 1.0


@dataclass(slots=True)
class ControllerState:
    """What the controller of this process says it is doing. `state` is Waiting, Syncing, Running, Unreachable or
    WrongCluster. Whether it may do so is for the clock to say: see `condition`.
    """

    state: str = "Waiting"
    message: str = "another process holds the controller's lease"

    def set(self, state: str, message: str = "") -> None:
        if (self.state, self.message) != (state, message):
            log.info("controller.state", state=state, message=message)
        self.state, self.message = state, message


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What /readyz reports of a controller. `ok` is False when an operator should look."""

    ok: bool
    state: str
    message: str

    @override
    def __str__(self) -> str:
        return f"{self.state} {self.message}".strip()


def condition(said: ControllerState, *, remaining: float | None, unanswered: float, ttl: float) -> Condition:
    """Judge a controller by the clock of its lease.

    `remaining` is the time until the lease runs out, None when this process does not hold it; `unanswered` the time
    since the database answered about the lease; `ttl` how long a lease lasts. All are seconds.
    """
    if remaining is None and unanswered > ttl:
        return Condition(
            ok=False, state="Waiting", message=f"the database has not answered about the lease for {unanswered:.0f} s"
        )
    if remaining is None:
        return Condition(ok=True, state="Waiting", message="another process holds the controller's lease")
    if remaining <= 0:
        return Condition(
            ok=False,
            state="LeaseLost",
            message=f"the lease ran out {abs(remaining):.0f} s ago, and the work under it has not ended",
        )
    return Condition(ok=said.state != "WrongCluster", state=said.state, message=said.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """`db` serves the controller alone, and `lease_db` nothing but its lease: neither waits for requests."""

    api: KubeApi
    db: Database
    lease_db: Database
    listener: Listener
    publisher: Publisher
    clock: Clock
    installation_id: UUID
    installation_key: bytes = field(repr=False)
    settings: ControllerSettings
    timing: Timing
    evidence: EvidenceSettings
    site: Site
    samples: SampleSettings
    runtimes: RuntimeServers
