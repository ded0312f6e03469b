"""All settings, each an environment variable JOBGATE_…, with unit and reason for its default.

Only `app.running`, the commands and the demo read settings. All other code receives values as arguments.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from app.db.postgres.timeouts import DatabaseTimeouts
from app.domain.access.grants import read_group_grants
from app.domain.access.namespaces import NamespaceSet
from app.domain.cache.values import CACHE_MOUNT_PATH, DATA_MOUNT_PATH, CacheSite
from app.domain.kinds.accelerators import accelerators_of
from app.domain.kinds.job_kind import Accelerator, Limits, Site
from app.domain.plan import GangApi
from app.domain.reconcile.timing import Timing
from app.domain.reservations.pod_limits import PodLimits
from app.domain.retention import parse_duration
from app.k8s.session.limits import TransportLimits
from app.loops.controller_settings import AutoscalerSettings, ControllerSettings, SampleSettings
from app.settings.database import DatabaseUrl
from app.settings.documents import read_document
from app.settings.keeping import Duration
from app.settings.sample_sets import SampleSetSettings
from app.settings.serving import Names

ENV_PREFIX = "JOBGATE_"
# Absolute, without dot components, and without characters that need quoting.
_DIRECTORY = r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$"
# A queue of TensorStack's scheduler is requested by a job, and not for all jobs of a scheduler.
_GANG_APIS = [api.value for api in GangApi if api is not GangApi.TENSORSTACK]

# Limits that hold for all workers of a gateway together, and the least that one worker needs. Without a division, more
# workers would need more memory and more connections to PostgreSQL than the operator has allowed.
_DIVIDED = {
    "database_pool_size": 2,
    "max_bodies_bytes": 1024,
    "max_open": 1,
    "max_open_per_token": 1,
    "max_open_logs": 1,
    "max_waiting_submissions": 1,
    "max_connections": 8,
    "max_connections_per_address": 1,
}


class Settings(SampleSetSettings):
    """The settings of one process. Times are in seconds and sizes in bytes, unless a description says otherwise."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="ignore", frozen=True)

    database_url: Annotated[DatabaseUrl | None, Field(description="postgresql://user:password@host/database")] = None
    database_pool_size: Annotated[
        int, Field(ge=2, description="most connections of a process for requests; PostgreSQL accepts 100 by default")
    ] = 10
    database_timeout: Annotated[
        float,
        Field(
            gt=0,
            description="longest time of a statement; a connection without an answer for 1.5 times as long is closed",
        ),
    ] = 10.0
    controller_pool_size: Annotated[
        int, Field(ge=2, description="most connections for the controller, separate so that requests cannot delay it")
    ] = 6

    kubeconfig: Annotated[
        str | None, Field(description="path; by default $KUBECONFIG, then ~/.kube/config, then in-cluster credentials")
    ] = None
    kube_context: Annotated[str | None, Field(description="context of the kubeconfig; by default its current one")] = (
        None
    )
    namespaces: Annotated[
        Names,
        Field(description="comma-separated namespaces to serve and watch; empty for the whole cluster"),
    ] = ()
    system_namespace: Annotated[
        str, Field(description="namespace of this installation's ConfigMap, which identifies its cluster")
    ] = "jobgate-system"
    missing_namespaces: Annotated[
        Literal["refuse", "wait"],
        Field(description="whether a job of a namespace that the cluster does not have is refused or waits for it"),
    ] = "refuse"
    reserved_namespaces: Annotated[
        Names,
        Field(description="comma-separated namespaces that are never served, besides kube-* and the system one"),
    ] = ()
    scheduler_names: Annotated[
        str,
        Field(description="comma-separated pairs upstream=cluster, for schedulers with another name in the cluster"),
    ] = ""
    gang_schedulers: Annotated[
        str,
        Field(
            description="comma-separated pairs scheduler=API, for schedulers that place the pods of a job together; "
            f"APIs are {', '.join(_GANG_APIS)}"
        ),
    ] = "default-scheduler=kubernetes,volcano=volcano,scheduler-plugins-scheduler=scheduler-plugins"
    accelerators_file: Annotated[
        str | None,
        Field(description="YAML in mxnet-operator's format: additions to containers that request a resource"),
    ] = None

    runtime_image: Annotated[
        str, Field(description="image of SampleSets' runtime servers, with jobgate and juicefs in it")
    ] = ""
    runtime_access: Annotated[
        Literal["pod-proxy", "pod-address"],
        Field(description="how the controller reaches runtime servers: through the API server, or at pods' addresses"),
    ] = "pod-proxy"
    sample_pause_factor: Annotated[
        float,
        Field(
            gt=0,
            le=10,
            description="factor of the pauses of 1 to 300 s between two reconciles of a SampleSet or SampleJob",
        ),
    ] = 1.0
    cache_mount_path: Annotated[
        str, Field(pattern=_DIRECTORY, description="directory of the cache in the pods of runtime servers")
    ] = CACHE_MOUNT_PATH
    data_mount_path: Annotated[
        str, Field(pattern=_DIRECTORY, description="directory of the data in the pods of runtime servers")
    ] = DATA_MOUNT_PATH

    max_replicas: Annotated[int, Field(ge=1, description="largest number of replicas of a job")] = 10_000
    max_live_pods: Annotated[
        int, Field(ge=1, description="most pods of all live jobs; Kubernetes is tested with 150 000")
    ] = 100_000
    max_live_pods_per_namespace: Annotated[
        int, Field(ge=1, description="most pods of the live jobs of one namespace: half of all")
    ] = 50_000
    max_waiting_jobs_per_namespace: Annotated[
        int,
        Field(
            ge=0,
            description="most jobs of one namespace that wait for room within `JOBGATE_MAX_LIVE_PODS_PER_NAMESPACE`; "
            "0: a job for which there is no room is refused",
        ),
    ] = 0
    max_list_replicas: Annotated[
        int, Field(ge=1, description="largest number of replicas of all jobs of one List; twice that of one job")
    ] = 20_000
    max_job_bytes: Annotated[
        int, Field(ge=1024, description="largest total size of a job's pods as JSON: an eighth of etcd's quota")
    ] = 256 * 1024 * 1024
    max_rendered_pod_bytes: Annotated[
        int, Field(ge=1024, description="largest size of a pod as JSON; etcd refuses 1.5 MiB")
    ] = 1024 * 1024

    restart_backoff: Annotated[
        float, Field(ge=0, description="wait before the first restart, doubled each time, as a Kubernetes Job does")
    ] = 10.0
    restart_backoff_max: Annotated[
        float, Field(ge=0, description="longest wait before a restart, as of a Kubernetes Job")
    ] = 360.0
    pserver_restart_limit: Annotated[
        int, Field(ge=1, description="exits of one parameter server after which a TrainingJob fails, as upstream")
    ] = 5
    auto_clean: Annotated[
        bool, Field(description="delete all pods of a TrainingJob that has ended, not only its running ones")
    ] = False
    disruption_limit: Annotated[
        int, Field(ge=0, description="replacements of a disrupted replica before it counts as failed")
    ] = 10
    pending_deadline: Annotated[
        Duration,
        Field(description="longest uninterrupted time pending, after which a job fails; 0 or never: no limit"),
    ] = "86400"
    start_deadline: Annotated[
        Duration,
        Field(
            description="longest time that a job holds nodes while its other replicas find none; 0 or never: no limit"
        ),
    ] = "600"
    ttl_after_finished: Annotated[
        Duration,
        Field(
            description="time after its end for which the objects of a job stay in the cluster; or never remove them"
        ),
    ] = "86400"
    node_lost_after: Annotated[
        Duration,
        Field(description="time beyond its grace after which a pod on a lost node is deleted by force; or never"),
    ] = "300"
    events_after: Annotated[float, Field(ge=0, description="time pending after which the Events of a pod are read")] = (
        5.0
    )

    autoscaler: Annotated[
        Literal["on", "off"],
        Field(description="whether the autoscaler resizes jobs; if off, it only records what it would do"),
    ] = "off"
    autoscaler_period: Annotated[
        float, Field(gt=0, description="time between two runs of the autoscaler, as upstream")
    ] = 30.0
    autoscaler_freeze: Annotated[
        float,
        Field(ge=0, description="time for which the autoscaler does not resize a job after any change of its size"),
    ] = 60.0
    autoscaler_max_load: Annotated[
        float, Field(gt=0, le=1, description="share of the cluster's CPU and memory that pods may request, as upstream")
    ] = 0.97

    @field_validator("scheduler_names")
    @classmethod
    def _name_both_schedulers(cls, value: str) -> str:
        _scheduler_names(value)
        return value

    @field_validator("gang_schedulers")
    @classmethod
    def _name_known_apis(cls, value: str) -> str:
        _gang_schedulers(value)
        return value

    @field_validator("accelerators_file")
    @classmethod
    def _can_be_read(cls, value: str | None) -> str | None:
        # Read at the start too, so that a file that is not valid stops the process and not a job.
        _accelerators(value)
        return value

    @model_validator(mode="after")
    def _name_no_reserved_namespace(self) -> Self:
        """Reject settings that open a reserved namespace: a Secret there holds the database's password."""
        open_to_tenants = NamespaceSet(never=self.controller().served.never)
        for setting in ("namespaces", "secret_namespaces"):
            wrong = [name for name in getattr(self, setting) if name not in open_to_tenants]
            if wrong:
                reserved = ", ".join(["kube-*", *open_to_tenants.excluded])
                variable = f"{ENV_PREFIX}{setting.upper()}"
                raise ValueError(f"{variable} names {', '.join(wrong)}; the namespaces {reserved} are never served")
        return self

    @model_validator(mode="after")
    def _metrics_have_another_port(self) -> Self:
        """Reject one port for both: two sockets can be bound to it, and the second one fails when it listens."""
        if self.metrics_port and self.metrics_port == self.port:
            raise ValueError(
                f"{ENV_PREFIX}METRICS_PORT ({self.port}) is the port of the API: choose another one, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _drain_ends_before_shutdown(self) -> Self:
        """Reject a drain that the end of the process would cut off: the requests in progress would be lost."""
        if self.drain_seconds >= self.shutdown_timeout:
            raise ValueError(
                f"{ENV_PREFIX}DRAIN_SECONDS ({self.drain_seconds:g} s) must be less than {ENV_PREFIX}SHUTDOWN_TIMEOUT "
                f"({self.shutdown_timeout:g} s): both count from SIGTERM"
            )
        return self

    @model_validator(mode="after")
    def _grant_served_namespaces(self) -> Self:
        """Reject grants that can never permit anything."""
        served = self.served_namespaces()
        grants = [grant for group in read_group_grants(self.oidc_grants).values() for grant in group]
        wrong = sorted({name for grant in grants for name in grant.namespaces or () if name not in served})
        if wrong:
            raise ValueError(f"{ENV_PREFIX}OIDC_GRANTS names {', '.join(wrong)}; these namespaces are not served here")
        return self

    def share_of(self, workers: int) -> Self:
        """Return the settings of one worker of this many: limits of the whole gateway are divided among them."""
        shares = {name: max(least, -(-getattr(self, name) // workers)) for name, least in _DIVIDED.items()}
        return self.model_copy(update={**shares, "dry_run_rate": self.dry_run_rate / workers})

    def served_namespaces(self) -> NamespaceSet:
        """Return the namespaces that jobgate serves. A token can restrict its caller further."""
        return self.controller().served

    def database_timeouts(self) -> DatabaseTimeouts:
        return DatabaseTimeouts.of(self.database_timeout)

    def controller_database_timeouts(self) -> DatabaseTimeouts:
        """Bound statements by the lease: the fence rejects what the controller writes after its lease has expired."""
        # With the `silence` of half as long, a connection without an answer is dropped after the duration of one lease.
        return DatabaseTimeouts.of(min(self.database_timeout, self.lease_seconds * 2 / 3))

    def cluster_limits(self) -> TransportLimits:
        """Return the limits of connections to the API server. Logs, which last long, get further connections."""
        limits = TransportLimits()
        followed = self.max_followed_logs if self.keeps_logs() else 0
        return replace(limits, connections=limits.connections + self.max_open_logs + followed)

    def limits(self) -> Limits:
        return Limits(
            max_replicas=self.max_replicas,
            max_rendered_pod_bytes=self.max_rendered_pod_bytes,
            max_job_bytes=self.max_job_bytes,
            max_list_replicas=self.max_list_replicas,
            pods=self.pod_limits(),
        )

    def pod_limits(self) -> PodLimits:
        return PodLimits(
            installation=self.max_live_pods,
            namespace=self.max_live_pods_per_namespace,
            waiting=self.max_waiting_jobs_per_namespace,
        )

    def site(self) -> Site:
        return Site(
            schedulers=_scheduler_names(self.scheduler_names),
            gang_schedulers=_gang_schedulers(self.gang_schedulers),
            server_url=(self.server_url or f"http://{self.host}:{self.port}").rstrip("/"),
            accelerators=_accelerators(self.accelerators_file),
            pserver_restart_limit=self.pserver_restart_limit,
            auto_clean=self.auto_clean,
        )

    def samples(self) -> SampleSettings:
        return SampleSettings(
            site=CacheSite(
                runtime_image=self.runtime_image,
                cache_mount_path=self.cache_mount_path,
                data_mount_path=self.data_mount_path,
                sources=self.source_limits(),
            ),
            secret_namespaces=frozenset(self.secret_namespaces),
            pause_factor=self.sample_pause_factor,
        )

    def timing(self) -> Timing:
        return Timing(
            restart_backoff=self.restart_backoff,
            restart_backoff_max=self.restart_backoff_max,
            disruption_limit=self.disruption_limit,
            # 0 means no limit too.
            pending_deadline=_seconds(self.pending_deadline) or None,
            start_deadline=_seconds(self.start_deadline) or None,
            ttl_after_finished=_seconds(self.ttl_after_finished),
            node_lost_after=_seconds(self.node_lost_after),
            events_after=self.events_after,
        )

    def controller(self) -> ControllerSettings:
        return ControllerSettings(
            pod_limits=self.pod_limits(),
            namespaces=self.namespaces,
            reserved_namespaces=self.reserved_namespaces,
            system_namespace=self.system_namespace,
            lease_ttl=self.lease_seconds,
            lease_renew_every=self.lease_seconds / 5,  # four renewals may fail before the lease expires
            request_timeout=self.request_timeout,
            stale_after=self.stale_after,
            contact_limit=self.contact_limit(),
            queues=self.queues,
            keeping=self.keeping(),
            usage_labels=self.usage_labels,
            autoscaler=AutoscalerSettings(
                enabled=self.autoscaler == "on",
                period=self.autoscaler_period,
                freeze=self.autoscaler_freeze,
                max_load=self.autoscaler_max_load,
            ),
        )


def _seconds(text: str) -> float | None:
    duration = parse_duration(text)
    return None if duration is None else duration.total_seconds()


def _read_pairs(text: str, *, expected: str, values: Collection[str] | None = None) -> Mapping[str, str]:
    """Return the pairs of a text such as `a=x, b=y`.

    Raises:
        ValueError: a pair has no name, no equals sign, or none of the values that are accepted, if they are given.
    """
    pairs = [item.strip() for item in text.split(",") if item.strip()]
    found = [(pair, *map(str.strip, pair.partition("=")[::2])) for pair in pairs]
    wrong = [pair for pair, name, value in found if not name or "=" not in pair or (values and value not in values)]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: expected {expected}")
    return {name: value for _, name, value in found}


def _scheduler_names(text: str) -> Mapping[str, str | None]:
    # An empty name stands for the default scheduler.
    return {upstream: here or None for upstream, here in _read_pairs(text, expected="upstream=cluster").items()}


def _gang_schedulers(text: str) -> Mapping[str, GangApi]:
    expected = f"scheduler=API, with one of the APIs {', '.join(_GANG_APIS)}"
    return {name: GangApi(api) for name, api in _read_pairs(text, expected=expected, values=_GANG_APIS).items()}


def _accelerators(path: str | None) -> Mapping[str, Accelerator]:
    return read_document(path, accelerators_of) if path else {}
