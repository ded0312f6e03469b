"""The spec of a GenericJob in the current spelling (batch.tensorstack.dev/v1beta1).

replicaSpecs                 groups of pods
successRules, failureRules   when the job ends
service                      ports of each replica
runMode                      debug, pause, and what changes after a pause
scheduler                    queue and priority
cleanUpPolicy                which pods are deleted at the end of the job
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from app.domain.kinds.spec.model import SpecModel

IDLE_COMMAND: Final = ("sleep", "inf")
_INT32_MAX: Final = 2**31 - 1

Int32: TypeAlias = Annotated[int, Field(ge=0, le=_INT32_MAX)]
Port: TypeAlias = Annotated[int, Field(ge=1, le=65_535)]
FinishRuleSpec: TypeAlias = Annotated[dict[str, list[Int32]], Field(description="Ranks by replica type.")]


class ServicePortSpec(SpecModel):
    """A port of core/v1 ServicePort."""

    name: str | None = None
    """Name of the port. Required if the Service has several ports."""
    port: Port
    """The port of the Service."""
    protocol: Literal["TCP", "UDP", "SCTP"] | None = None
    """The default is TCP."""
    target_port: Any = Field(default=None, json_schema_extra={"anyOf": [{"type": "integer"}, {"type": "string"}]})
    """Number or name of the container's port. The default is `port`."""
    node_port: Int32 | None = None
    """The port on every node, for a Service of a type that has one."""
    app_protocol: str | None = None
    """The protocol of the application, such as `http`."""


class ServiceOption(SpecModel):
    """If it has ports, every replica gets a Service with the name of its pod."""

    ports: list[ServicePortSpec] = Field(default=[])
    """The ports of every replica's Service."""


class ReplicaDebugSet(SpecModel):
    """What the replicas of a type run in debug mode."""

    type: str
    """The replica type."""
    skip_init_container: bool = False
    """Do not run the init containers."""
    command: list[str] = Field(default=[*IDLE_COMMAND])
    """The command of the idle containers."""


class DebugMode(SpecModel):
    """Pods are created and stay idle, so that a user can debug in them; all types if replicaSpecs is empty."""

    enabled: bool = False
    """Whether the job is in debug mode. It cannot be changed later."""
    replica_specs: list[ReplicaDebugSet] = Field(default=[])
    """Settings for single replica types."""


class ResumeSpec(SpecModel):
    """What the replicas of a type run after the job was resumed; the template has the defaults."""

    type: str
    """The replica type."""
    skip_init_container: bool = False
    """Do not run the init containers."""
    command: list[str] | None = None
    """The command of the containers."""
    args: list[str] | None = None
    """The arguments of the containers."""


class PauseMode(SpecModel):
    """A paused job has no pods. `enabled` can be changed at any time, resumeSpecs never."""

    enabled: bool = False
    """Whether the job is paused."""
    resume_specs: list[ResumeSpec] = Field(default=[])
    """What single replica types run after a resume."""


class RunMode(SpecModel):
    """How the pods of the job run."""

    debug: DebugMode = DebugMode()
    """Debug mode."""
    pause: PauseMode = PauseMode()
    """Pause and resume."""


class T9kScheduler(SpecModel):
    """The queue of the T9k scheduler."""

    queue: Annotated[str, Field(min_length=1)]
    """Name of the queue."""
    priority: Annotated[int, Field(ge=0, le=100)] = 0
    """The priority of the job in its queue."""


class SchedulePolicy(SpecModel):
    """The scheduler of the pods."""

    t9k_scheduler: T9kScheduler | None = Field(default=None, alias="t9kScheduler")
    """Settings of the T9k scheduler; without them, the default scheduler places the pods."""


class RestartPolicySpec(SpecModel):
    """Which replicas are restarted, and how often each. The default limit is 0; for Always it is unlimited."""

    policy: Literal["Never", "OnFailure", "Always"] = "OnFailure"
    """After which ends a replica is restarted."""
    limit: Int32 | None = None
    """The number of restarts of each replica."""


class ReplicaSpec(SpecModel):
    """A named group of replicas with one pod template."""

    type: str
    """Name of the group, which is the task's name."""
    replicas: Int32 = 1
    """The number of replicas."""
    restart_policy: RestartPolicySpec = RestartPolicySpec()
    """The restarts of the replicas."""
    template: dict[str, Any] = Field(
        json_schema_extra={
            "type": "object",
            "description": "A Kubernetes core/v1 PodTemplateSpec.",
            "x-kubernetes-type": "io.k8s.api.core.v1.PodTemplateSpec",
        }
    )


class GenericJobSpec(SpecModel):
    """The spec of a GenericJob."""

    success_rules: list[FinishRuleSpec] = Field(default=[])
    """The job succeeds when all replicas of one rule have succeeded; without rules, when all replicas have."""
    failure_rules: list[FinishRuleSpec] = Field(default=[])
    """The job fails when all replicas of one rule have failed and have no restart left."""
    service: ServiceOption | None = None
    """The Services of the replicas."""
    run_mode: RunMode = RunMode()
    """Debug mode and pause."""
    clean_up_policy: Literal["None", "Unfinished", "All"] = "None"
    """Which pods are deleted when the job has ended."""
    scheduler: SchedulePolicy | None = None
    """The scheduler of the pods."""
    replica_specs: Annotated[list[ReplicaSpec], Field(min_length=1)]
    """The groups of replicas."""
