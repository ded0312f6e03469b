"""Types of fields whose values are a closed set that is not an enumeration of the domain.

They document the values and do not validate them: a view never refuses or changes what is stored. Each set is one
schema of the OpenAPI document (`app/api/document/client_generators.py`), so that all its fields have the same type in
a generated client.
"""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final, TypeAlias

from pydantic import Field

from app.api.views.problem_codes import PROBLEM_CODES
from app.db.feed import changes
from app.domain.kinds.registry import JOB_KINDS
from app.domain.status.observed import KueueState
from app.domain.vocabulary import PendingCode
from app.domain.vocabulary import RestartPolicy as _RestartPolicy

SCHEMA_NAME: Final = "x-schema-name"


def _one_of(name: str, description: str, values: Callable[[], Iterable[str]]) -> Any:
    """Return the annotation of a field with one of these values, which are read when the document is generated."""

    def document(schema: dict[str, Any]) -> None:
        schema[SCHEMA_NAME] = {"title": name, "type": "string", "description": description, "enum": sorted(values())}

    return Field(json_schema_extra=document)


CURRENT: Final = "current"
"""The type of the event that shows the state of an object at the start of its watch. The feed has no such change."""
_CHANGES: Final = (changes.CREATED, changes.EDITED, changes.DELETED, changes.STATUS, CURRENT)
_JOB_CHANGES: Final = (*_CHANGES, changes.CANCELLED, changes.REMOVED)

JobKindName: TypeAlias = Annotated[
    str,
    _one_of(
        "JobKind",
        "A kind of manifest whose manifests become pods.",
        lambda: {kind.name for kind in JOB_KINDS.values()},
    ),
]
ContainerState: TypeAlias = Annotated[
    str, _one_of("ContainerState", "The state of a container.", lambda: ("waiting", "running", "terminated"))
]
ConditionStatus: TypeAlias = Annotated[
    str, _one_of("ConditionStatus", "Whether a condition holds.", lambda: ("True", "False", "Unknown"))
]
PendingReasonCode: TypeAlias = Annotated[
    str, _one_of("PendingCode", "Why replicas are not running yet.", lambda: list(PendingCode))
]
TaskRestartPolicy: TypeAlias = Annotated[
    str,
    _one_of("RestartPolicy", "After which ends a replica is restarted.", lambda: list(_RestartPolicy)),
]
EventOrigin: TypeAlias = Annotated[
    str,
    _one_of(
        "EventOrigin",
        "`evidence`: an event of the pod of an ended attempt. `pending`: why a replica is pending now. "
        "`controller`: an action of the controller for an object of a kind without pods.",
        lambda: ("evidence", "pending", "controller"),
    ),
]
ControllerStateName: TypeAlias = Annotated[
    str,
    _one_of(
        "ControllerState",
        "The state of a controller. `Waiting`: it does not hold the lease. `Syncing`: it lists the cluster, then "
        "reconciles each live job once.",
        lambda: ("Waiting", "Syncing", "Running", "Unreachable", "WrongCluster"),
    ),
]
KueueStateName: TypeAlias = Annotated[
    str,
    _one_of(
        "KueueState",
        "What the controller knows of Kueue. `listed`: its queues. `absent`: the cluster does not serve it, or "
        "JOBGATE_QUEUES is off. `denied`: jobgate has no right to read its objects. `unknown`: they are not listed "
        "yet. A later version may have further states.",
        lambda: list(KueueState),
    ),
]
ChangeType: TypeAlias = Annotated[
    str, _one_of("ChangeType", "A change of an object. `current`: its state as the watch began.", lambda: _CHANGES)
]
JobChangeType: TypeAlias = Annotated[
    str,
    _one_of(
        "JobChangeType",
        "A change of a job. `current`: its state as the watch began. `removed`: its objects are deleted because of its "
        "TTL or because its name is used again.",
        lambda: _JOB_CHANGES,
    ),
]
ProblemCode: TypeAlias = Annotated[
    str,
    _one_of(
        "ProblemCode",
        "A stable code for programs. Later versions may have further codes, so treat an unknown one by its status.",
        lambda: PROBLEM_CODES,
    ),
]
