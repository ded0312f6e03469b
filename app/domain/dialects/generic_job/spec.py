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

from app.domain.dialects.spec_model import SpecModel

_INT32_MAX: Final = 2**31 - 1

Int32: TypeAlias = Annotated[int, Field(ge=0, le=_INT32_MAX)]
Port: TypeAlias = Annotated[int, Field(ge=1, le=65_535)]
FinishRuleSpec: TypeAlias = Annotated[dict[str, list[Int32]], Field(description="Ranks by replica type.")]


class ServicePortSpec(SpecModel):
    """A port of core/v1 ServicePort."""

    name: str | None = None
    port: Port
    protocol: Literal["TCP", "UDP", "SCTP"] | None = None
    target_port: Any = Field(default=None, json_schema_extra={"anyOf": [{"type": "integer"}, {"type": "string"}]})
    node_port: Int32 | None = None
    app_protocol: str | None = None


class ServiceOption(SpecModel):
    """If it has ports, every replica gets a Service with the name of its pod."""

    ports: list[ServicePortSpec] = Field(default=[])


class ReplicaDebugSet(SpecModel):
    """What the replicas of a type run in debug mode."""

    type: str
    skip_init_container: bool = False
    command: list[str] = Field(default=["sleep", "inf"])


class DebugMode(SpecModel):
    """Pods are created and stay idle, so that a user can debug in them; all types if replicaSpecs is empty."""

    enabled: bool = False
    replica_specs: list[ReplicaDebugSet] = Field(default=[])


class ResumeSpec(SpecModel):
    """What the replicas of a type run after the job was resumed; the template has the defaults."""

    type: str
    skip_init_container: bool = False
    command: list[str] | None = None
    args: list[str] | None = None


class PauseMode(SpecModel):
    """A paused job has no pods. `enabled` can be changed at any time, resumeSpecs never."""

    enabled: bool = False
    resume_specs: list[ResumeSpec] = Field(default=[])


class RunMode(SpecModel):
    debug: DebugMode = DebugMode()
    pause: PauseMode = PauseMode()


class T9kScheduler(SpecModel):
    queue: Annotated[str, Field(min_length=1)]
    priority: Annotated[int, Field(ge=0, le=100)] = 0


class SchedulePolicy(SpecModel):
    t9k_scheduler: T9kScheduler | None = Field(default=None, alias="t9kScheduler")


class RestartPolicySpec(SpecModel):
    """Which replicas are restarted, and how often each. The default limit is 0; for Always it is unlimited."""

    policy: Literal["Never", "OnFailure", "Always"] = "OnFailure"
    limit: Int32 | None = None


class ReplicaSpec(SpecModel):
    """A named group of replicas with one pod template."""

    type: str
    replicas: Int32 = 1
    restart_policy: RestartPolicySpec = RestartPolicySpec()
    template: dict[str, Any] = Field(
        json_schema_extra={
            "type": "object",
            "description": "A Kubernetes core/v1 PodTemplateSpec.",
            "x-kubernetes-type": "io.k8s.api.core.v1.PodTemplateSpec",
        }
    )


class GenericJobSpec(SpecModel):
    success_rules: list[FinishRuleSpec] = Field(default=[])
    """The job succeeds when all replicas of one rule have succeeded; without rules, when all replicas have."""
    failure_rules: list[FinishRuleSpec] = Field(default=[])
    """The job fails when all replicas of one rule have failed and have no restart left."""
    service: ServiceOption | None = None
    run_mode: RunMode = RunMode()
    clean_up_policy: Literal["None", "Unfinished", "All"] = "None"
    """Which pods are deleted when the job has ended."""
    scheduler: SchedulePolicy | None = None
    replica_specs: Annotated[list[ReplicaSpec], Field(min_length=1)]
