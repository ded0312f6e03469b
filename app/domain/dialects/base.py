"""What a dialect is, and what it is given."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from app.domain.errors import FieldError
from app.domain.plan import JobIdentity, JobPlan, Manifest
from app.domain.status.records import Attempt, JobStatus, Replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an installation accepts. Sizes are bytes, durations seconds."""

    max_replicas: int = 10_000
    max_rendered_pod_bytes: int = 1024 * 1024
    max_varying_bytes: int = 256 * 1024 * 1024  # texts of a job that differ from rank to rank, over all replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNames:
    """Upstream scheduler names and what this cluster has for them; None: the default scheduler, and a condition."""

    schedulers: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFacts:
    """All a native status may be made of."""

    status: JobStatus
    replicas: Sequence[Replica]
    attempts: Sequence[tuple[str, int, Attempt]] = ()
    created_at: datetime
    deleted: bool = False


class Dialect(ABC):
    """A kind's translation in both directions. Implementations are stateless; one instance serves all jobs.

    A manifest passed in has been decoded and its envelope (apiVersion, kind, metadata) checked; `accept` collects all
    of the spec's errors at once.
    """

    kind: ClassVar[str]
    api_versions: ClassVar[tuple[str, ...]]  # spoken ones, the canonical one first
    mutable_fields: ClassVar[tuple[str, ...]]  # JSON pointers below the manifest that PUT and PATCH may change
    supports_pause: ClassVar[bool]

    @abstractmethod
    def accept(self, manifest: Manifest, limits: Limits) -> Manifest:
        """The manifest as it is stored: upstream defaults filled in, older spellings made current.

        Raises:
            InvalidManifest: with every error of the spec.
        """

    @abstractmethod
    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        """Errors for what differs between two accepted manifests and may not."""

    @abstractmethod
    def plan(self, manifest: Manifest, identity: JobIdentity, *, resumed: bool, clusters: ClusterNames) -> JobPlan:
        """What the accepted manifest means."""

    @abstractmethod
    def native_status(self, manifest: Manifest, facts: StatusFacts) -> dict[str, Any]:
        """The status object as the kind's own system shows it."""

    @abstractmethod
    def with_pause(self, manifest: Manifest, *, paused: bool) -> Manifest:
        """The manifest after pause or resume. Only called where `supports_pause`."""

    @abstractmethod
    def json_schema(self) -> dict[str, Any]:
        """JSON schema of the manifest, for `GET /api/v1/kinds`."""
