"""What a user of an MxJob writes (mxnet.mlkube.io/v1beta1).

Most of what is required is declared optional: its absence is told in upstream's words and order, by validation.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Final, TypeAlias

from pydantic import ConfigDict, Field, field_validator

from app.domain.dialects.spec_model import SpecModel

PS_ROOT_PORT: Final = 9091

Port: TypeAlias = Annotated[int, Field(ge=1, le=65_535)]


class Mode(StrEnum):
    LOCAL = "local"
    DIST = "dist"


class MxRole(StrEnum):
    """What a replica does in the exchange; the order is upstream's."""

    SCHEDULER = "SCHEDULER"
    SERVER = "SERVER"
    WORKER = "WORKER"

    @property
    def task(self) -> str:
        return self.value.lower()


def _requires(*fields: str) -> Callable[[dict[str, Any]], None]:
    """Tell in the JSON schema what only validation demands."""

    def change(schema: dict[str, Any]) -> None:
        schema["required"] = list(fields)
        for field in fields:
            schema["properties"][field].pop("default", None)

    return change


class MxReplicaSpec(SpecModel):
    """The replicas of one role."""

    model_config = ConfigDict(json_schema_extra=_requires("template"))

    replicas: Annotated[int, Field(json_schema_extra={"minimum": 1})] = 1
    template: dict[str, Any] | None = Field(
        default=None,
        json_schema_extra={
            "description": "A Kubernetes core/v1 PodTemplateSpec; one of its containers is named mxnet.",
            "x-kubernetes-type": "io.k8s.api.core.v1.PodTemplateSpec",
        },
    )
    ps_root_port: Port = Field(default=PS_ROOT_PORT, alias="PsRootPort")
    """Where the scheduler listens; the other roles' value has no meaning."""
    mx_replica_type: str = Field(
        default=MxRole.WORKER.value, json_schema_extra={"enum": [role.value for role in MxRole]}
    )

    @field_validator("mx_replica_type")
    @classmethod
    def _default_role(cls, value: str) -> str:
        return value or MxRole.WORKER.value


def _job_schema(schema: dict[str, Any]) -> None:
    """Nulls among the replica specs are read to be refused in upstream's words."""
    _requires("jobMode", "replicaSpecs")(schema)
    items = schema["properties"]["replicaSpecs"]["items"]
    schema["properties"]["replicaSpecs"]["items"] = items["anyOf"][0]


class MxJobSpec(SpecModel):
    model_config = ConfigDict(json_schema_extra=_job_schema)

    runtime_id: str | None = Field(default=None, alias="RuntimeId")
    """Part of every pod's name; drawn when it is left out."""
    job_mode: str = Field(default="", json_schema_extra={"enum": [mode.value for mode in Mode]})
    replica_specs: list[MxReplicaSpec | None] = Field(default=[])

    @field_validator("runtime_id")
    @classmethod
    def _draw_for_empty(cls, value: str | None) -> str | None:
        return value or None

    @property
    def roles(self) -> list[tuple[int, MxReplicaSpec]]:
        """The replica specs that are there, with their places."""
        return [(index, replica) for index, replica in enumerate(self.replica_specs) if replica is not None]
