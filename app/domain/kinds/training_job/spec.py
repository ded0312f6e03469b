"""The spec of a TrainingJob (paddlepaddle.org/v1alpha1), with upstream's names: dashes, underscores, capitals.

Values of Kubernetes types (volumes, probes, resources …) are plain objects; the pods that contain them are validated.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field

from app.domain.kinds.spec.model import SpecModel

DEFAULT_IMAGE: Final = "paddlepaddle/paddlecloud-job:0.11.0"
DEFAULT_PORT: Final = 7164
_INT32_MAX: Final = 2**31 - 1
# Ten years: longer than any job, and short enough to be added to any date.
_MAX_SECONDS: Final = 10 * 366 * 86_400


def _number(value: Any) -> Any:
    """Return the integer of a decimal string, as upstream's examples write it; other values unchanged."""
    # An int64 has at most 19 digits.
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
    """A model whose fields have their Python names on the wire, or an alias. No name becomes camel case."""

    model_config = ConfigDict(alias_generator=str, populate_by_name=True)


class AnnotationsSpec(PaddleModel):
    """Settings of the job. They are not the annotations of its metadata."""

    usergroupid: str = ""
    """Stored without effect."""
    userid: str = ""
    """Stored without effect."""
    priority: str = ""
    """The label `priority` of every pod, and an annotation of trainers."""
    scheduler: str = ""
    """Overrides schedulerName for pservers and trainers."""
    walltime: Seconds = 0
    """How long the job may run before it ends as Timeout."""


class FrameworkSpec(PaddleModel):
    """The framework; if it is absent, local_job and is_nccl determine whether the job has pservers."""

    name: Literal["paddle", "tensorflow"]
    """The framework."""
    type: Literal["local", "nccl2", "multi"]
    """`multi` has pservers and trainers; `local` and `nccl2` have only trainers."""


class RoleSpec(PaddleModel):
    """The common fields of master, pserver and trainer."""

    resources: Resources = Field(default={})
    replica_spec: Object | None = Field(default=None, alias="replicaSpec", exclude=True)
    """Set by upstream's controller; ignored."""
    envs: dict[str, str] = Field(default={})
    """Environment variables of the pods."""
    grace_period_seconds: Count | None = None
    """The time between the stop signal and the end of a container."""
    pre_stop_cmd: list[str] = Field(default=[])
    """A command that runs before the container is stopped, if grace_period_seconds is set too."""
    tolerations: list[Toleration] = Field(default=[])
    """The tolerations of the pods."""
    node_selector: dict[str, str] = Field(default={})
    """The labels of the nodes that may run the pods."""
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None


class MasterSpec(RoleSpec):
    """The master of a fault tolerant job. Its resources are fixed, and its envs are ignored."""

    etcd_endpoint: str = Field(default="", alias="etcd-endpoint")
    """Ignored, as in upstream."""


class WorkerSpec(RoleSpec):
    """The fields that pserver and trainer have and a master has not."""

    entrypoint: str = ""
    """The command, split at spaces, or like a shell if it has quotes; the default is `paddle_k8s` of the image."""
    min_instance: Count = Field(default=0, alias="min-instance")
    """The least number of replicas."""
    max_instance: Count = Field(default=0, alias="max-instance")
    """0 means min-instance."""
    image_pull_secrets: list[SecretReference] = Field(default=[], alias="imagePullSecrets")
    """The Secrets with which the image is pulled."""
    index_succeed: bool = Field(default=False, exclude=True)
    """Set by upstream's controller; ignored."""


class PserverSpec(WorkerSpec):
    """The parameter servers. Their number is always min-instance."""


class TrainerSpec(WorkerSpec):
    """The trainers. Their number begins at min-instance (at least 1) and can grow to max-instance."""

    min_instance: Count = Field(default=0, alias="min-instance")
    """The least number of trainers, with which a job begins; 0 means 1."""
    etcd_endpoint: str = Field(default="", alias="etcd-endpoint")
    """Ignored, as in upstream."""
    workspace: str = ""
    """The variable TRAINER_PACKAGE of the pods."""
    passes: Count = Field(default=0, exclude=True)
    """Ignored, as in upstream, whose examples have it here; the number of passes is spec.passes."""


class TrainingJobSpec(PaddleModel):
    """The spec of a TrainingJob."""

    image: str = ""
    """The image of all roles; the default is paddlepaddle/paddlecloud-job:0.11.0."""
    host_network: bool = False
    """All pods use the network of their node."""
    port: Port = 0
    """The first port of the pservers; 0 means 7164."""
    ports_num: Port = 0
    """The number of ports; 0 means 1."""
    ports_num_for_sparse: Port = 0
    """The number of further ports; 0 means 1."""
    trainer_port: Port = 0
    """The first port of the trainers; 0 means none."""
    trainer_ports_num: Port = 0
    """The number of ports of the trainers."""
    fault_tolerant: bool = False
    """Adds a master with etcd. Trainers can then fail while others go on, and their number can change."""
    local_job: bool = False
    """The job has no pservers."""
    passes: Count = 0
    """The number of passes over the data; 0 means 1."""
    volumes: list[Annotated[Object, _kubernetes("Volume")]] = Field(default=[])
    """The volumes of all pods."""
    volume_mounts: list[Annotated[Object, _kubernetes("VolumeMount")]] = Field(default=[], alias="VolumeMounts")
    """The volume mounts of trainers and master."""
    mountpath: str = ""
    """Ignored, as in upstream."""
    mount_path: str = Field(default="", alias="mountPath", exclude=True)
    """The spelling of mountpath in one of upstream's examples; both are ignored."""
    nfsmount: str = ""
    """Ignored, as in upstream."""
    annotations: AnnotationsSpec = AnnotationsSpec()
    """Settings of the job."""
    master: MasterSpec = MasterSpec()
    """The master of a fault tolerant job."""
    pserver: PserverSpec = PserverSpec()
    """The parameter servers."""
    trainer: TrainerSpec = TrainerSpec()
    """The trainers."""
    is_nccl: bool = False
    """The job has no pservers, and the trainers have the pservers' ports."""
    frame_work: FrameworkSpec | None = None
    """The framework and its topology."""
    scheduler_name: str = Field(default="", alias="schedulerName")
    """The scheduler of the pods."""
    pod_group_name: str = Field(default="", alias="podGroupName")
    """The annotation `scheduling.k8s.io/group-name` of every pod."""
    matrix: bool = False
    """Ignored, as in upstream's open-source mode."""

    @property
    def uses_pservers(self) -> bool:
        if self.frame_work is not None:
            return self.frame_work.type == "multi"
        return not self.local_job and not self.is_nccl

    @property
    def pservers(self) -> int:
        return self.pserver.min_instance if self.uses_pservers else 0


def with_defaults(spec: TrainingJobSpec) -> TrainingJobSpec:
    """Return the spec with a default for each field that is zero or empty.

    The defaults are those of PaddlePaddle's controller. Only the number of trainers has another one, 1: that controller
    has none, and its jobs without trainers succeed at once.
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
