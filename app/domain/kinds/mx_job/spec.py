"""The spec of an MxJob (mxnet.mlkube.io/v1beta1).

Most required fields are declared optional, so that `validation` can report their absence with upstream's messages.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Final, TypeAlias

from pydantic import ConfigDict, Field, field_validator

from app.domain.kinds.spec.model import SpecModel

PS_ROOT_PORT: Final = 9091

Port: TypeAlias = Annotated[int, Field(ge=1, le=65_535)]


class Mode(StrEnum):
    LOCAL = "local"
    DIST = "dist"


class MxRole(StrEnum):
    """The role of a replica in the parameter server, in upstream's order."""

    SCHEDULER = "SCHEDULER"
    SERVER = "SERVER"
    WORKER = "WORKER"

    @property
    def task(self) -> str:
        return self.value.lower()


def _requires(*fields: str) -> Callable[[dict[str, Any]], None]:
    """Return a function that marks these fields as required in a JSON schema; only the validation enforces it."""

    def change(schema: dict[str, Any]) -> None:
        schema["required"] = list(fields)
        for field in fields:
            schema["properties"][field].pop("default", None)

    return change


class MxReplicaSpec(SpecModel):
    """The replicas of one role."""

    model_config = ConfigDict(json_schema_extra=_requires("template"))

    replicas: Annotated[int, Field(json_schema_extra={"minimum": 1})] = 1
    """The number of replicas."""
    template: dict[str, Any] | None = Field(
        default=None,
        json_schema_extra={
            "description": "A Kubernetes core/v1 PodTemplateSpec; one of its containers is named mxnet.",
            "x-kubernetes-type": "io.k8s.api.core.v1.PodTemplateSpec",
        },
    )
    ps_root_port: Port = Field(default=PS_ROOT_PORT, alias="PsRootPort")
    """The port of the scheduler; ignored for the other roles."""
    mx_replica_type: str = Field(
        default=MxRole.WORKER.value, json_schema_extra={"enum": [role.value for role in MxRole]}
    )
    """The role of the replicas."""

    @field_validator("mx_replica_type")
    @classmethod
    def _default_role(cls, value: str) -> str:
        # Upstream is written in Go, where an empty string is an absent field and gets the default.
        return value or MxRole.WORKER.value


def _job_schema(schema: dict[str, Any]) -> None:
    """Remove null from the items of replicaSpecs. The model accepts null so that `validation` can report it."""
    _requires("jobMode", "replicaSpecs")(schema)
    items = schema["properties"]["replicaSpecs"]["items"]
    schema["properties"]["replicaSpecs"]["items"] = items["anyOf"][0]


class MxJobSpec(SpecModel):
    """The spec of an MxJob."""

    model_config = ConfigDict(json_schema_extra=_job_schema)

    runtime_id: str | None = Field(default=None, alias="RuntimeId")
    """A part of every pod's name; jobgate generates it if it is absent."""
    job_mode: str = Field(default="", json_schema_extra={"enum": [mode.value for mode in Mode]})
    """`dist` runs scheduler, servers and workers; `local` runs one worker."""
    replica_specs: list[MxReplicaSpec | None] = Field(default=[])
    """The replicas of each role."""

    @field_validator("runtime_id")
    @classmethod
    def _draw_for_empty(cls, value: str | None) -> str | None:
        return value or None

    @property
    def roles(self) -> list[tuple[int, MxReplicaSpec]]:
        """The replica specs that are not null, each with its index in the list."""
        return [(index, replica) for index, replica in enumerate(self.replica_specs) if replica is not None]
