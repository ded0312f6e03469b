"""What a dialect is, and what it is given."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from app.domain.errors import Conflict, FieldError
from app.domain.plan import JobIdentity, JobPlan, Manifest
from app.domain.pod_limits import DEFAULT_LIMITS, PodLimits
from app.domain.policy.declared import DeclaredTemplate
from app.domain.status.records import Attempt, JobStatus, Replica, ScaleRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an installation accepts. Sizes are bytes, durations seconds."""

    max_replicas: int = 10_000
    max_rendered_pod_bytes: int = 1024 * 1024
    max_job_bytes: int = 256 * 1024 * 1024  # the rendered pods of all replicas together
    pods: PodLimits = DEFAULT_LIMITS
    max_list_replicas: int = 20_000  # the replicas of all jobs of one List


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """What a container that asks for the resource gets beside it: core/v1 volumes, mounts and env."""

    volumes: Sequence[Manifest] = ()
    mounts: Sequence[Manifest] = ()
    env: Sequence[Manifest] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What an installation's own configuration adds to every plan.

    `schedulers` says what this cluster has for upstream's scheduler names; None: the default scheduler.
    `accelerators` are by resource name. `server_url` is where pods reach jobgate. `pserver_restart_limit` and
    `auto_clean` are flags of Paddle's operator.
    """

    schedulers: Mapping[str, str | None] = field(default_factory=dict)
    accelerators: Mapping[str, Accelerator] = field(default_factory=dict)
    server_url: str = "http://127.0.0.1:8080"
    pserver_restart_limit: int = 5
    auto_clean: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What an accepted manifest may draw on beside what was posted.

    `random` yields five characters of Kubernetes' alphabet for generated names, anew at each call. `stored` is the
    accepted manifest that this one replaces: what was drawn or decided for it stays so.
    """

    random: Callable[[], str]
    stored: Manifest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The tasks of a job whose sizes may change while it lives.

    `bounds` are least and most of each, `total` those of the sum over all of them. `autoscaled` is the task that the
    autoscaler may resize, if the kind knows one.
    """

    sizes: Mapping[str, int]
    bounds: Mapping[str, tuple[int, int]]
    total: tuple[int, int]
    autoscaled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFacts:
    """All a native status may be made of. `reported` is what the job's own pods have told (DIJob's profilings)."""

    status: JobStatus
    replicas: Sequence[Replica]
    attempts: Sequence[tuple[str, int, Attempt]] = ()
    scale_records: Sequence[ScaleRecord] = ()
    reported: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime
    deleted: bool = False


class Dialect(ABC):
    """A kind's translation in both directions. Implementations are stateless; one instance serves all jobs.

    A manifest passed in has been decoded; `accept` checks its envelope (apiVersion, kind, metadata) and collects all
    errors at once. What a dialect decides once and upstream's spec has no field for is kept in the accepted manifest
    under `assigned`, beside the spec; it is no part of what may be posted.
    """

    kind: ClassVar[str]
    api_versions: ClassVar[tuple[str, ...]]  # spoken ones, the canonical one first
    mutable_fields: ClassVar[tuple[str, ...]]  # JSON pointers that PUT and PATCH may change; a step * is any one
    supports_pause: ClassVar[bool] = False
    resource: ClassVar[str] = "jobs"  # the collection of the API

    @abstractmethod
    def accept(self, manifest: Manifest, limits: Limits, given: Given) -> Manifest:
        """The manifest as it is stored: upstream defaults filled in, older spellings made current.

        Raises:
            InvalidManifest: with every error of the manifest.
        """

    @abstractmethod
    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        """Errors for what differs between two accepted manifests and may not."""

    @abstractmethod
    def plan(self, manifest: Manifest, identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
        """What the accepted manifest means."""

    @abstractmethod
    def pod_templates(self, posted: Manifest, accepted: Manifest) -> Sequence[DeclaredTemplate]:
        """The pod templates that an accepted manifest declares; their pointers lead into what was posted."""

    @abstractmethod
    def native_status(self, manifest: Manifest, facts: StatusFacts) -> dict[str, Any]:
        """The status object as the kind's own system shows it."""

    @abstractmethod
    def json_schema(self) -> dict[str, Any]:
        """JSON schema of the manifest, for `GET /api/v1/kinds`."""

    def with_pause(self, manifest: Manifest, *, paused: bool) -> Manifest:  # noqa: ARG002  for kinds that can
        """The manifest after pause or resume.

        Raises:
            Conflict: this job, or no job of this kind, can be paused.
        """
        raise Conflict(f"a {self.kind} cannot be paused", code="PauseNotSupported")

    def scaling(self, manifest: Manifest) -> Scaling | None:  # noqa: ARG002  for kinds that can
        """What of this job may be resized; None: nothing."""
        return None

    def resized(self, manifest: Manifest, sizes: Mapping[str, int]) -> Manifest:  # noqa: ARG002  for kinds that can
        """The accepted manifest with these tasks resized, each and their sum within the bounds of `scaling`."""
        raise Conflict(f"a {self.kind} cannot be scaled", code="ScaleNotSupported")
