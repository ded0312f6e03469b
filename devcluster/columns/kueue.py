"""The columns of Kueue's kinds, as its custom resource definitions declare them. A cell without a value is empty."""

from collections.abc import Callable

from devcluster.columns.base import AGE, NAME, Column, text
from devcluster.formats.objects import Object, condition, spec, status


def _of_spec(name: str, field: str, *, wide: bool = False) -> Column:
    return Column(name, text(lambda obj: str(spec(obj).get(field, ""))), wide=wide)


def _condition(kind: str) -> Callable[[Object], str]:
    return lambda obj: str((condition(obj, kind) or {}).get("status", ""))


def _count(name: str, field: str, *, wide: bool = False) -> Column:
    return Column(name, text(lambda obj: int(status(obj).get(field, 0))), wide=wide)


COLUMNS: dict[str, tuple[Column, ...]] = {
    "Workload": (
        NAME,
        _of_spec("Queue", "queueName"),
        Column("Reserved in", text(lambda obj: str((status(obj).get("admission") or {}).get("clusterQueue", "")))),
        Column("Admitted", text(_condition("Admitted"))),
        Column("Finished", text(_condition("Finished"))),
        AGE,
    ),
    "LocalQueue": (
        NAME,
        _of_spec("ClusterQueue", "clusterQueue"),
        _count("Pending Workloads", "pendingWorkloads"),
        _count("Admitted Workloads", "admittedWorkloads"),
    ),
    "ClusterQueue": (
        NAME,
        _of_spec("Cohort", "cohortName"),
        _of_spec("Strategy", "queueingStrategy", wide=True),
        _count("Pending Workloads", "pendingWorkloads"),
        _count("Admitted Workloads", "admittedWorkloads", wide=True),
    ),
    "WorkloadPriorityClass": (NAME, Column("Value", text(lambda obj: int(obj.get("value", 0))))),
}
