"""The interface of kinds whose manifests become pods, and the values that its methods take and return."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from app.domain.errors import Conflict, Problems
from app.domain.kinds.base import JOBS, Kind
from app.domain.kinds.envelope import ASSIGNED, read_envelope, usable_name
from app.domain.kinds.spec.checks import SpecChecks, read_and_check
from app.domain.kinds.spec.model import SpecModel
from app.domain.kinds.spec.spelling import Spelling
from app.domain.plan import GangApi, JobIdentity, JobPlan, JobWarning, Manifest
from app.domain.policy.template import DeclaredTemplate
from app.domain.reservations.pod_limits import DEFAULT_LIMITS, PodLimits
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
    """The core/v1 volumes, mounts and variables of a container that requests the resource of an accelerator."""

    volumes: Sequence[Manifest] = ()
    mounts: Sequence[Manifest] = ()
    env: Sequence[Manifest] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The configuration of an installation that plans depend on.

    `schedulers` maps the scheduler names of the five systems to those of this cluster; None stands for the default
    scheduler. `gang_schedulers` are the APIs that schedulers of this cluster read PodGroups of, by the name of the
    scheduler. `accelerators` are by resource name. Pods reach jobgate at `server_url`. `pserver_restart_limit` and
    `auto_clean` are flags of Paddle's operator.
    """

    schedulers: Mapping[str, str | None] = field(default_factory=dict)
    gang_schedulers: Mapping[str, GangApi] = field(default_factory=dict)
    accelerators: Mapping[str, Accelerator] = field(default_factory=dict)
    server_url: str = "http://127.0.0.1:8080"
    pserver_restart_limit: int = 5
    auto_clean: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Values that `JobKind.accept` needs besides the posted manifest.

    `suffix` returns five new characters of Kubernetes' alphabet for generated names at each call. `stored` is the
    accepted manifest that the posted one replaces; values that were assigned to it are kept.
    """

    suffix: Callable[[], str]
    stored: Manifest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The tasks of a job that can be resized while the job runs.

    `bounds` are the least and the largest size of each task, and `total` those of all tasks together. `autoscaled` is
    the task that the autoscaler may resize, or None.
    """

    sizes: Mapping[str, int]
    bounds: Mapping[str, tuple[int, int]]
    total: tuple[int, int]
    autoscaled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFacts:
    """The inputs of a native status, besides the manifest.

    `reported` has the values that the pods of the job have reported, such as the profilings of a DIJob.
    """

    status: JobStatus
    replicas: Sequence[Replica]
    attempts: Sequence[tuple[str, int, Attempt]] = ()
    scale_records: Sequence[ScaleRecord] = ()
    reported: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime
    deleted: bool = False


SpecT = TypeVar("SpecT", bound=SpecModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted(Generic[SpecT]):
    """An accepted manifest as it is stored, with its kind and the typed form of its spec."""

    kind: "JobKind[SpecT]"
    manifest: Manifest
    spec: SpecT

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The inputs of the checks of a spec, besides the spec.

    `job` is the name of the job. It is empty if the name is not valid; names that contain it are then not checked.
    `namespace` is None if the manifest names none.
    """

    job: str
    namespace: str | None
    limits: Limits
    given: Given


class JobKind(Kind, Generic[SpecT]):
    """The rules of one kind of job: validation, defaults, plan and native status.

    Implementations have no state; one instance serves all jobs. The accepted manifest has a field `assigned`, next to
    the spec, for values that the kind chooses once and that the spec has no field for. Clients cannot post it.
    """

    resource = JOBS
    spec_model: type[SpecT]

    def accept(self, manifest: Manifest, limits: Limits, given: Given) -> Accepted[SpecT]:
        """Validate a decoded manifest and fill in the defaults of the kind's own system.

        Raises:
            InvalidManifest: with every error of the manifest.
        """
        problems = Problems()
        envelope = read_envelope(manifest, problems)
        namespace = envelope["metadata"].get("namespace")
        context = Context(
            job=usable_name(envelope),
            namespace=namespace if isinstance(namespace, str) else None,
            limits=limits,
            given=given,
        )
        # Errors of the spec are collected apart, since only their pointers are mapped back to the posted spelling.
        found = Problems()
        spelling = self.current_spelling(manifest.get("spec"), problems)
        spec = read_and_check(self.spec_model, spelling.spec, found, self._checks(context))
        problems.absorb(found, spelling.original)
        problems.raise_if_any(f"the {self.name} is not valid")
        assert spec is not None, "without a problem there is a spec"
        accepted = {**envelope, "spec": self.stored_spec(spec)}
        assigned = self.assign(spec, context)
        return Accepted(kind=self, manifest=accepted | ({ASSIGNED: assigned} if assigned else {}), spec=spec)

    def read(self, manifest: Manifest) -> Accepted[SpecT]:
        """Return the typed form of a manifest that was accepted before."""
        # Only the shape is validated: an accepted job must stay readable when a later version or setting accepts less.
        return Accepted(kind=self, manifest=manifest, spec=self.spec_model.model_validate(manifest["spec"]))

    @abstractmethod
    def check(self, spec: SpecT, context: Context, problems: Problems) -> None:
        """Report every error of a spec that has the right shape."""

    @abstractmethod
    def plan(self, accepted: Accepted[SpecT], identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
        """Return the plan of an accepted manifest. `resumed` says whether the job was ever paused and resumed."""

    @abstractmethod
    def pod_templates(self, posted: Manifest, accepted: Accepted[SpecT]) -> Sequence[DeclaredTemplate]:
        """Return the pod templates that an accepted manifest declares, with pointers into the posted manifest."""

    @abstractmethod
    def native_status(self, accepted: Accepted[SpecT], facts: StatusFacts) -> dict[str, Any]:
        """Return the status object in the format of the kind's own system."""

    def warnings(self, posted: Manifest, accepted: Accepted[SpecT]) -> Iterable[JobWarning]:  # noqa: ARG002
        """Return warnings about posted fields that do not have the effect that their author may expect."""
        return ()

    def current_spelling(self, spec: Any, problems: Problems) -> Spelling:  # noqa: ARG002  for kinds with older ones
        """Return the posted spec with older spellings replaced by the current ones."""
        return Spelling(spec)

    def complete(self, spec: SpecT, given: Given) -> SpecT:  # noqa: ARG002  for kinds that draw values
        """Return the spec with the defaults that depend on other fields or on the stored manifest."""
        return spec

    def check_unreadable(self, spec: Any, problems: Problems) -> None:
        """Report the errors in the parts of a spec that cannot be read as a model, such as its pod templates."""

    def stored_spec(self, spec: SpecT) -> Manifest:
        """Return the spec as it is stored, defaults included."""
        return spec.model_dump(by_alias=True, exclude_none=True)

    def assign(self, spec: SpecT, context: Context) -> Manifest:  # noqa: ARG002  for kinds that assign values
        """Return the value of the field `assigned` of the accepted manifest; empty if the kind assigns nothing."""
        return {}

    def with_pause(self, accepted: Accepted[SpecT], *, paused: bool) -> Accepted[SpecT]:  # noqa: ARG002
        """Return the manifest after a pause or resume.

        Raises:
            Conflict: this job, or every job of this kind, cannot be paused.
        """
        raise Conflict(f"a {self.name} cannot be paused", code="PauseNotSupported")

    def scaling(self, accepted: Accepted[SpecT]) -> Scaling | None:  # noqa: ARG002  for kinds that can
        """Return the tasks of this job that can be resized; None if there are none."""
        return None

    def resize(self, accepted: Accepted[SpecT], sizes: Mapping[str, int]) -> Accepted[SpecT]:  # noqa: ARG002
        """Return the manifest with these sizes. The caller has checked them against the bounds of `scaling`.

        Raises:
            Conflict: this job, or every job of this kind, cannot be scaled.
        """
        raise Conflict(f"a {self.name} cannot be scaled", code="ScaleNotSupported")

    def _checks(self, context: Context) -> SpecChecks[SpecT]:
        return SpecChecks(
            complete=lambda spec: self.complete(spec, context.given),
            check=lambda spec, problems: self.check(spec, context, problems),
            is_consequence=self.is_consequence,
            check_unreadable=self.check_unreadable,
        )
