"""What a user of a TrainingJob writes (paddlepaddle.org/v1alpha1), by upstream's names: dashes, underscores, capitals.

Kubernetes' own pieces (volumes, probes, resources …) are plain objects here; the pods that they become are validated.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field

from app.domain.dialects.spec_model import SpecModel

DEFAULT_IMAGE: Final = "paddlepaddle/paddlecloud-job:0.11.0"
DEFAULT_PORT: Final = 7164
_INT32_MAX: Final = 2**31 - 1
# Ten years: beyond any job, and within what dates can hold.
_MAX_SECONDS: Final = 10 * 366 * 86_400


def _number(value: Any) -> Any:
    """Upstream's templates write numbers as text, too."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20 else value


def _kubernetes(name: str) -> Any:
    return Field(json_schema_extra={"description": f"Kubernetes core/v1 {name}."})


Count: TypeAlias = Annotated[int, Field(ge=0, le=_INT32_MAX)]
Port: TypeAlias = Annotated[int, Field(ge=0, le=65_535)]
Seconds: TypeAlias = Annotated[
    int,
    Field(
        ge=0, le=_MAX_SECONDS, json_schema_extra={"type": ["integer", "string"], "description": "Seconds; 0 is none."}
    ),
    BeforeValidator(_number),
]
Object: TypeAlias = dict[str, Any]
Resources: TypeAlias = Annotated[Object, _kubernetes("ResourceRequirements")]
Probe: TypeAlias = Annotated[Object, _kubernetes("Probe")]
Toleration: TypeAlias = Annotated[Object, _kubernetes("Toleration")]
SecretReference: TypeAlias = Annotated[Object, _kubernetes("LocalObjectReference")]


class PaddleModel(SpecModel):
    """Names are as they stand here, or given as an alias; nothing is camel case."""

    model_config = ConfigDict(alias_generator=str, populate_by_name=True)


class AnnotationsSpec(PaddleModel):
    """Not metadata.annotations: settings of the job."""

    usergroupid: str = ""
    userid: str = ""
    priority: str = ""
    """Becomes the label `priority` of every pod, and an annotation of trainers."""
    scheduler: str = ""
    """Overrides schedulerName for pservers and trainers."""
    walltime: Seconds = 0
    """After so long in Running the job is stopped as Timeout."""


class FrameworkSpec(PaddleModel):
    """Absent: Paddle of old, with pservers unless local_job or is_nccl says otherwise."""

    name: Literal["paddle", "tensorflow"]
    type: Literal["local", "nccl2", "multi"]


class RoleSpec(PaddleModel):
    """What master, pserver and trainer have in common."""

    resources: Resources = Field(default={})
    replica_spec: Object | None = Field(default=None, alias="replicaSpec", exclude=True)
    """Filled by upstream's controller; ignored."""
    envs: dict[str, str] = Field(default={})
    grace_period_seconds: Count | None = None
    pre_stop_cmd: list[str] = Field(default=[])
    """Run before the container is stopped, if grace_period_seconds is given too."""
    tolerations: list[Toleration] = Field(default=[])
    node_selector: dict[str, str] = Field(default={})
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None


class MasterSpec(RoleSpec):
    """The master of a fault tolerant job; its resources are fixed and its envs are not used."""

    etcd_endpoint: str = Field(default="", alias="etcd-endpoint")


class WorkerSpec(RoleSpec):
    """What pserver and trainer have beyond a master."""

    entrypoint: str = ""
    """Split on spaces, or as a shell would if it has quotes; empty: what the image's paddle_k8s starts."""
    min_instance: Count = Field(default=0, alias="min-instance")
    max_instance: Count = Field(default=0, alias="max-instance")
    """0 is min-instance."""
    image_pull_secrets: list[SecretReference] = Field(default=[], alias="imagePullSecrets")
    index_succeed: bool = Field(default=False, exclude=True)
    """Filled by upstream's controller; ignored."""


class PserverSpec(WorkerSpec):
    """Parameter servers: min-instance of them, always."""


class TrainerSpec(WorkerSpec):
    """Trainers: min-instance of them (at least 1) to begin with, and up to max-instance."""

    etcd_endpoint: str = Field(default="", alias="etcd-endpoint")
    workspace: str = ""
    passes: Count = Field(default=0, exclude=True)
    """Upstream's examples have it here, where nobody reads it; the number of passes is spec.passes."""


class TrainingJobSpec(PaddleModel):
    image: str = ""
    """Of all three roles; empty: paddlepaddle/paddlecloud-job:0.11.0."""
    host_network: bool = False
    port: Port = 0
    """First port of the pservers; 0 is 7164."""
    ports_num: Port = 0
    """0 is 1."""
    ports_num_for_sparse: Port = 0
    """More ports after these; 0 is 1."""
    trainer_port: Port = 0
    trainer_ports_num: Port = 0
    fault_tolerant: bool = False
    """Adds a master with its etcd; trainers may fail as long as one does its work, and their number may change."""
    local_job: bool = False
    """No pservers."""
    passes: Count = 0
    """0 is 1."""
    volumes: list[Annotated[Object, _kubernetes("Volume")]] = Field(default=[])
    """Of all pods."""
    volume_mounts: list[Annotated[Object, _kubernetes("VolumeMount")]] = Field(default=[], alias="VolumeMounts")
    """Of trainers and master."""
    mountpath: str = ""
    mount_path: str = Field(default="", alias="mountPath", exclude=True)
    """As one of upstream's examples spells mountpath; neither is read."""
    nfsmount: str = ""
    annotations: AnnotationsSpec = AnnotationsSpec()
    master: MasterSpec = MasterSpec()
    pserver: PserverSpec = PserverSpec()
    trainer: TrainerSpec = TrainerSpec()
    is_nccl: bool = False
    """No pservers; trainers get their ports."""
    frame_work: FrameworkSpec | None = None
    scheduler_name: str = Field(default="", alias="schedulerName")
    pod_group_name: str = Field(default="", alias="podGroupName")
    matrix: bool = False
    """Without meaning in the open-source mode."""

    @property
    def uses_pservers(self) -> bool:
        if self.frame_work is not None:
            return self.frame_work.type == "multi"
        return not self.local_job and not self.is_nccl

    @property
    def pservers(self) -> int:
        return self.pserver.min_instance if self.uses_pservers else 0


def with_defaults(spec: TrainingJobSpec) -> TrainingJobSpec:
    """The spec with upstream's defaults for what is zero or empty.

    Upstream has none for the number of trainers, and a job of none ends at once as Succeed; here it is 1.
    """
    least = spec.trainer.min_instance or 1
    trainer = {"min_instance": least, "max_instance": spec.trainer.max_instance or least}
    pserver = {"max_instance": spec.pserver.max_instance or spec.pserver.min_instance}
    return spec.model_copy(
        update={
            "image": spec.image or DEFAULT_IMAGE,
            "port": spec.port or DEFAULT_PORT,
            "ports_num": spec.ports_num or 1,
            "ports_num_for_sparse": spec.ports_num_for_sparse or 1,
            "passes": spec.passes or 1,
            "trainer": spec.trainer.model_copy(update=trainer),
            "pserver": spec.pserver.model_copy(update=pserver),
        }
    )
