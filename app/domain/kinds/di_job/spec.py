"""The spec of a DIJob (diengine.opendilab.org/v2alpha1).

tasks                      groups of pods: learner, collectors, evaluator and others
volumes                    volumes of every pod
backoffLimit               how often the whole job is restarted
cleanPodPolicy             which pods are deleted at the end of the job
minReplicas, maxReplicas   bounds on the replicas of all tasks together
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, model_validator
from typing_extensions import override

from app.domain.kinds.spec.model import SpecModel

_INT32_MAX: Final = 2**31 - 1

Int32: TypeAlias = Annotated[int, Field(ge=0, le=_INT32_MAX)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=_INT32_MAX)]
TaskType: TypeAlias = Literal["learner", "collector", "evaluator", "none"]

NO_TYPE: Final = "none"
COLLECTOR: Final = "collector"


class TaskSpec(SpecModel):
    """A named group of replicas with one pod template."""

    replicas: Count = 1
    """The number of replicas."""
    type: TaskType = NO_TYPE
    """The role of the task in DI-engine."""
    name: str = ""
    """Required for a task of type none; the default for another type is the type."""
    template: dict[str, Any] = Field(
        json_schema_extra={
            "type": "object",
            "description": "A Kubernetes core/v1 PodTemplateSpec.",
            "x-kubernetes-type": "io.k8s.api.core.v1.PodTemplateSpec",
        }
    )


class DIJobSpec(SpecModel):
    """The spec of a DIJob."""

    group: str | None = None
    """Reserved by upstream; stored without effect."""
    priority: Literal["normal", "high"] = "normal"
    """Reserved by upstream; stored without effect."""
    clean_pod_policy: Literal["Running", "All", "None"] = "Running"
    """Which pods are deleted when the job has ended."""
    preemptible: bool = False
    """Stored without effect, since jobgate has no allocator."""
    backoff_limit: Int32 | None = 3
    """The number of restarts after which the job fails; null means no limit."""
    min_replicas: Int32 | None = None
    """The least number of replicas of all tasks together; each task has at least one."""
    max_replicas: Count | None = None
    """The largest number of replicas of all tasks together; the default is what fits into the variable DI_NODES."""
    volumes: list[dict[str, Any]] = Field(
        default=[],
        json_schema_extra={
            "description": "Kubernetes core/v1 Volumes, added to every pod.",
            "x-kubernetes-type": "io.k8s.api.core.v1.Volume",
        },
    )
    tasks: Annotated[list[TaskSpec], Field(min_length=1)]
    """The groups of replicas."""

    @model_validator(mode="before")
    @classmethod
    @override
    def _drop_nulls(cls, value: Any) -> Any:
        """Drop fields that are null, except backoffLimit, where null means no limit and absence the default."""
        if not isinstance(value, dict):
            return value
        return {key: item for key, item in value.items() if item is not None or key == "backoffLimit"}
