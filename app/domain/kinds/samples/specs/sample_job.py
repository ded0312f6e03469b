"""The spec of a SampleJob (batch.paddlepaddle.org/v1alpha1) and its rules."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from app.domain.cache.limits import CacheLimits
from app.domain.cache.source_limits import SourceLimits
from app.domain.cache.vocabulary import JobType
from app.domain.cache.worker_hosts import ACCEPTED, worker_hosts, wrong_hosts
from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kinds.samples.specs.mount_options import FlagNumber
from app.domain.kinds.samples.specs.paths import EMPTY_LIST, check_all_relative, check_relative
from app.domain.kinds.samples.specs.sample_set import check_set_name
from app.domain.kinds.samples.specs.secret_refs import SecretRef, check_secret_ref
from app.domain.kinds.samples.specs.sources import check_source, wrong_hosts_of_source
from app.domain.kinds.spec.model import SpecModel

KIND: Final = "SampleJob"
MUTABLE_FIELDS: Final = (
    "/metadata/labels",
    "/metadata/annotations",
    "/spec/secretRef",
    "/spec/terminate",
    "/spec/syncOptions",
    "/spec/warmupOptions",
    "/spec/rmrOptions",
    "/spec/clearOptions",
)
STRATEGIES: Final = ("random", "sequence")
_PATHS_ACCEPTED: Final = "one or more paths relative to the mount"


class SampleSetRef(SpecModel):
    """A reference to a SampleSet."""

    name: str = Field(default="", json_schema_extra={"minLength": 1})
    """Name of the SampleSet in the same namespace."""


class SyncOptions(SpecModel):
    """Flags of `juicefs sync` under their own names. JuiceFS applies its defaults to those that are not set."""

    model_config = ConfigDict(populate_by_name=True, alias_generator=lambda name: name.replace("_", "-"))

    source: str = ""
    """The default is the source of the set."""
    destination: str = ""
    """A directory relative to the mount; the default is the mount."""
    start: str | None = None
    """The first key to synchronize."""
    end: str | None = None
    """The last key to synchronize."""
    threads: FlagNumber | None = None
    """The number of concurrent transfers."""
    http_port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    """The port of the metrics."""
    update: bool | None = None
    """Replace objects that are older than in the source."""
    force_update: bool | None = None
    """Always replace objects."""
    perms: bool | None = None
    """Keep the permissions."""
    dirs: bool | None = None
    """Synchronize directories, too."""
    dry: bool | None = None
    """Copy nothing."""
    delete_src: bool | None = None
    """Delete objects from the source after the copy."""
    delete_dst: bool | None = None
    """Delete objects that the source does not have."""
    exclude: str | None = None
    """Leave out keys that match this pattern."""
    include: str | None = None
    """Take keys that match this pattern, even if `exclude` matches."""
    manager: str | None = None
    """The address of the manager of a distributed sync."""
    worker: str | None = None
    """The hosts of a distributed sync, separated by commas."""
    bwlimit: FlagNumber | None = None
    """The limit of the bandwidth in Mbit/s; 0 means none."""
    no_https: bool | None = None
    """Do not use HTTPS."""


class WarmupOptions(SpecModel):
    """The options of a warm-up."""

    paths: list[str] | None = Field(default=None, json_schema_extra={"minItems": 1})
    """Paths relative to the mount; the default is the whole volume."""
    partitions: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """Ignored: the number of partitions of the set applies."""
    strategy_name: str = Field(default="sequence", json_schema_extra={"enum": [*STRATEGIES]})
    """How files are assigned to the servers."""
    file: str = ""
    """A file in the mount that lists paths."""
    threads: FlagNumber | None = None
    """The number of threads of each server."""


class RmrOptions(SpecModel):
    """The options of a removal."""

    paths: list[str] | None = Field(default=None, json_schema_extra={"minItems": 1})
    """The paths to remove, relative to the mount. A job of type `rmr` needs them."""


class ClearOptions(SpecModel):
    """The options of a clearing of the cache."""

    paths: list[str] | None = Field(default=None, json_schema_extra={"minItems": 1})
    """Cache directories or paths in them, as on the node or as in the container; the default is all."""


class SampleJobSpec(SpecModel):
    """The spec of a SampleJob."""

    type: str = Field(default="", json_schema_extra={"enum": [kind.value for kind in JobType]})
    """The operation."""
    sample_set_ref: SampleSetRef | None = None
    """The SampleSet."""
    secret_ref: SecretRef | None = None
    """The Secret with the keys of the source of a sync."""
    terminate: bool = False
    """End the running and the queued jobs of the set's servers first."""
    sync_options: SyncOptions | None = None
    """The options of a job of type `sync`."""
    warmup_options: WarmupOptions | None = None
    """The options of a job of type `warmup`."""
    rmr_options: RmrOptions | None = None
    """The options of a job of type `rmr`."""
    clear_options: ClearOptions | None = None
    """The options of a job of type `clear`."""


def check_sample_job(spec: SampleJobSpec, base: str, limits: CacheLimits, problems: Problems) -> None:
    """Report every violated rule of a spec that matches the schema."""
    _check_type(spec, base, problems)
    at = pointer_to(base, "sampleSetRef", "name")
    if spec.sample_set_ref is None or not spec.sample_set_ref.name:
        problems.add(at, "SampleSetRefEmpty", "spec.sampleSetRef.name is not set", "a SampleSet of the namespace")
    else:
        check_set_name(spec.sample_set_ref.name, at, problems)
    # As upstream. Jobs of other types read no Secret, and the type never changes.
    if spec.type == JobType.SYNC:
        check_secret_ref(spec.secret_ref, pointer_to(base, "secretRef"), limits, problems)
    check_sync(spec.sync_options, pointer_to(base, "syncOptions"), problems, limits.sources)
    _check_warmup(spec.warmup_options, pointer_to(base, "warmupOptions"), problems)
    check_rmr(spec.rmr_options, pointer_to(base, "rmrOptions"), problems, is_needed=spec.type == JobType.RMR)
    if spec.clear_options is not None and spec.clear_options.paths == []:
        problems.add(pointer_to(base, "clearOptions", "paths"), *EMPTY_LIST)


def _check_type(spec: SampleJobSpec, base: str, problems: Problems) -> None:
    at = pointer_to(base, "type")
    if not spec.type:
        problems.add(at, "Required", "the field is required", "one of " + ", ".join(JobType))
    elif spec.type not in set(JobType):
        detail = f"job type {shorten(spec.type)} is not supported"
        problems.add(at, "JobTypeNotSupported", detail, "one of " + ", ".join(JobType))


def check_sync(options: SyncOptions | None, base: str, problems: Problems, sources: SourceLimits) -> None:
    """Check the options of a sync."""
    if options is None:
        return
    if options.source:
        check_source(options.source, pointer_to(base, "source"), problems, sources)
    check_relative(options.destination, pointer_to(base, "destination"), problems)
    # A sync connects to its workers by ssh, and a worker to its manager by HTTP.
    if options.worker and (wrong := wrong_hosts(options.worker)):
        problems.add(pointer_to(base, "worker"), "WorkerNotValid", wrong, ACCEPTED)
    elif refused := wrong_hosts_of_source(worker_hosts(options.worker or ""), sources):
        problems.add(pointer_to(base, "worker"), *refused)
    if refused := wrong_hosts_of_source(worker_hosts(options.manager or ""), sources):
        problems.add(pointer_to(base, "manager"), *refused)


def _check_warmup(options: WarmupOptions | None, base: str, problems: Problems) -> None:
    if options is None:
        return
    if options.paths == []:
        problems.add(pointer_to(base, "paths"), *EMPTY_LIST)
    check_all_relative(options.paths or (), pointer_to(base, "paths"), problems)
    if options.file:
        check_relative(options.file, pointer_to(base, "file"), problems, may_be_whole=False)
    if options.strategy_name not in STRATEGIES:
        at = pointer_to(base, "strategyName")
        problems.add(at, "InvalidValue", "the value is not one of those accepted", "one of " + ", ".join(STRATEGIES))


def check_rmr(options: RmrOptions | None, base: str, problems: Problems, *, is_needed: bool = True) -> None:
    """Check the options of an rmr job, which `is_needed` to have paths.

    It removes data from the storage, so the whole volume is refused.
    """
    if options is None:
        if is_needed:
            detail = "the options of rmr job cannot be empty"
            problems.add(base, "RmrOptionsEmpty", detail, "an object with paths")
        return
    at = pointer_to(base, "paths")
    # An empty list is refused in any job, as by upstream's CRD.
    if not options.paths and (is_needed or options.paths is not None):
        detail = "option of paths cannot be empty, set it to relative paths of the mount"
        problems.add(at, "RmrPathsEmpty", detail, _PATHS_ACCEPTED)
    check_all_relative(options.paths or (), at, problems, may_be_whole=False)
