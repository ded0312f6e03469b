"""What a user of a DIJob writes (diengine.opendilab.org/v2alpha1).

tasks               learner, collectors, evaluator and others: the pods      volumes     added to every pod
backoffLimit        how often the whole job may be restarted                 cleanPodPolicy  what stays at the end
minReplicas, maxReplicas   bounds of all tasks together, while it lives
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, model_validator
from typing_extensions import override

from app.domain.dialects.spec_model import SpecModel

_INT32_MAX: Final = 2**31 - 1

Int32: TypeAlias = Annotated[int, Field(ge=0, le=_INT32_MAX)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=_INT32_MAX)]
TaskType: TypeAlias = Literal["learner", "collector", "evaluator", "none"]

NO_TYPE: Final = "none"
COLLECTOR: Final = "collector"


class TaskSpec(SpecModel):
    """A named group of like replicas."""

    replicas: Count = 1
    type: TaskType = NO_TYPE
    name: str = ""
    """Required for a task of type none; any other is named after its type."""
    template: dict[str, Any] = Field(
        json_schema_extra={
            "type": "object",
            "description": "A Kubernetes core/v1 PodTemplateSpec.",
            "x-kubernetes-type": "io.k8s.api.core.v1.PodTemplateSpec",
        }
    )


class DIJobSpec(SpecModel):
    group: str | None = None
    """Reserved upstream; kept."""
    priority: Literal["normal", "high"] = "normal"
    """Reserved upstream; kept."""
    clean_pod_policy: Literal["Running", "All", "None"] = "Running"
    """Which pods are deleted when the job has ended."""
    preemptible: bool = False
    """Kept; without an allocator such a job is scheduled like any other."""
    backoff_limit: Int32 | None = 3
    """Restarts of the job before it fails; null is no limit."""
    min_replicas: Int32 | None = None
    """Least sum of the tasks' replicas; each task keeps one in any case."""
    max_replicas: Count | None = None
    """Most replicas of all tasks together; without it, as many as the job's pods can list in DI_NODES."""
    volumes: list[dict[str, Any]] = Field(
        default=[],
        json_schema_extra={
            "description": "Kubernetes core/v1 Volumes, added to every pod.",
            "x-kubernetes-type": "io.k8s.api.core.v1.Volume",
        },
    )
    tasks: Annotated[list[TaskSpec], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    @override
    def _drop_nulls(cls, value: Any) -> Any:
        """A null backoffLimit is not an absent one: it has no limit."""
        if not isinstance(value, dict):
            return value
        return {key: item for key, item in value.items() if item is not None or key == "backoffLimit"}
