"""Settings of the controller, of its evidence, of its autoscaler and of the data cache."""

from dataclasses import dataclass, field
from enum import StrEnum

from app.domain.access.namespaces import NamespaceSet
from app.domain.cache.values import CacheSite
from app.domain.reservations.pod_limits import DEFAULT_LIMITS, PodLimits
from app.domain.retention import KEEPING, Keeping


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSettings:
    """What is kept of ended attempts: the last `log_bytes` bytes of each log, and the events of the pod.

    `deadline` is the number of seconds from the first attempt to read them until the controller gives up.
    `whole_logs_deadline` is how long an ended pod waits until its logs are kept whole; None if no whole logs are kept.
    """

    log_bytes: int = 64 * 1024
    deadline: float = 60.0
    whole_logs_deadline: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerSettings:
    """Settings of the autoscaler; times are seconds.

    If it is not `enabled`, the autoscaler only reports what it would do. A resized job keeps its size for `freeze`.
    """

    enabled: bool = False
    period: float = 30.0
    freeze: float = 60.0
    max_load: float = 0.97


class QueueMode(StrEnum):
    """Whether Kueue admits jobs: if the cluster serves it, always (jobs with a queue wait for it), or never."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """Settings of the controller; times are seconds. `coalesce` is the least time between two reconciles of a
    job that changes of its pods cause. `usage_labels` are the keys of the labels by which usage is added up.
    """

    namespaces: tuple[str, ...] = ()
    reserved_namespaces: tuple[str, ...] = ()
    system_namespace: str = "jobgate-system"
    lease_ttl: float = 15.0
    # A fifth of the lease: four renewals may fail before it expires.
    lease_renew_every: float = 3.0
    request_timeout: float = 5.0
    coalesce: float = 0.05
    # The longest delay of a change whose notification was lost.
    poll_every: float = 1.0
    # API processes read the heartbeat once a second.
    heartbeat_every: float = 1.0
    stale_after: float = 30.0
    # Without contact for this long, the controller gives its lease to a process that has contact.
    contact_limit: float = 60.0
    retry_every: float = 2.0
    clean_every: float = 30.0
    sweep_every: float = 60.0
    # As often as Prometheus scrapes by default in most installations; each count reads every live job.
    count_every: float = 15.0
    autoscaler: AutoscalerSettings = AutoscalerSettings()
    pod_limits: PodLimits = DEFAULT_LIMITS
    queues: QueueMode = QueueMode.AUTO
    keeping: Keeping = KEEPING
    usage_labels: tuple[str, ...] = ()

    @property
    def served(self) -> NamespaceSet:
        """The namespaces whose jobs the controller reconciles. Elsewhere it changes only its own ConfigMap."""
        never = frozenset({self.system_namespace, *self.reserved_namespaces})
        return NamespaceSet(only=frozenset(self.namespaces) or None, never=never)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSettings:
    """Settings of the data cache.

    `site` describes the runtime servers. Sample sets of every namespace may name Secrets of `secret_namespaces`.
    `pause_factor` multiplies the pauses between two reconciles of a sample set.
    """

    site: CacheSite = field(default_factory=CacheSite)
    secret_namespaces: frozenset[str] = frozenset()
    pause_factor: float = 1.0
