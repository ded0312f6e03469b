"""Who is in a DIJob: its tasks' sizes, the global ranks of their replicas, and where these can be reached.

A global rank is a replica's for as long as it is in the job. One that leaves makes a hole, which is "" in every list
by global rank until growth fills it, the lowest first.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Final

from app.domain.dialects.di_job.spec import COLLECTOR
from app.domain.dialects.envelope import ASSIGNED
from app.domain.errors import FieldError, InvalidManifest, shorten
from app.domain.plan import Manifest, Rank
from app.domain.status.records import Replica

CONTAINER: Final = "di-container"
PORT_NAME: Final = "di-port"
DEFAULT_PORT: Final = 22270
RANKS: Final = "ranks"


def layout(sizes: Mapping[str, int], before: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """The global rank of each task's ranks 0, 1, …; whoever was there before keeps his."""
    kept = {task: list(before.get(task, ())[:size]) for task, size in sizes.items()}
    taken = {rank for ranks in kept.values() for rank in ranks}
    free = (rank for rank in count() if rank not in taken)
    return {task: kept[task] + [next(free) for _ in range(size - len(kept[task]))] for task, size in sizes.items()}


def sizes(manifest: Manifest) -> dict[str, int]:
    """Replicas by task of an accepted manifest."""
    return {task["name"]: task["replicas"] for task in manifest["spec"]["tasks"]}


def ranks(manifest: Manifest) -> Mapping[str, Sequence[int]]:
    """The layout of an accepted manifest."""
    found: Mapping[str, Sequence[int]] = manifest[ASSIGNED][RANKS]
    return found


def addresses(manifest: Manifest, replicas: Iterable[Replica]) -> list[str]:
    """host:port of each replica by global rank: of those that are in the job, have an address and have not ended."""
    by_task = ranks(manifest)
    ports = {task["name"]: _port(task["template"]) for task in manifest["spec"]["tasks"]}
    reachable = {
        replica.key: f"{_host(replica.attempt.pod_ip)}:{ports[replica.key.task]}"
        for replica in replicas
        if replica.key.rank < len(by_task.get(replica.key.task, ()))
        and not replica.leaving
        and replica.attempt.pod_ip
        and replica.attempt.outcome is None
    }
    return by_global_rank(by_task, reachable)


def task_to_resize(manifest: Manifest, asked: str | None) -> str:
    """The task that a request for more or fewer replicas means: the one named, else the collector, else the only one.

    Raises:
        InvalidManifest: there is no such task, or several it could be.
    """
    tasks = manifest["spec"]["tasks"]
    known = [str(task["name"]) for task in tasks]
    if asked is not None:
        if asked in known:
            return asked
        raise _unclear("UnknownTask", f'the job has no task "{shorten(asked)}"', known)
    for task in tasks:
        if task["type"] == COLLECTOR:
            return str(task["name"])
    if len(known) == 1:
        return known[0]
    raise _unclear("Required", "the job has no task of type collector and several others: say which one", known)


def by_global_rank(ranked: Mapping[str, Sequence[int]], texts: Mapping[Rank, str]) -> list[str]:
    """These texts at the indices of their replicas' global ranks; "" in the holes."""
    found = [""] * (1 + max(rank for of_task in ranked.values() for rank in of_task))
    for key, text in texts.items():
        found[ranked[key.task][key.rank]] = text
    return found


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _port(template: Manifest) -> int:
    for container in template["spec"]["containers"]:
        if container["name"] == CONTAINER:
            for port in container.get("ports") or ():
                if port.get("name") == PORT_NAME:
                    return int(port["containerPort"])
    return DEFAULT_PORT


def _unclear(code: str, detail: str, known: Sequence[str]) -> InvalidManifest:
    error = FieldError(pointer="/task", code=code, detail=detail, accepted="one of " + ", ".join(known))
    return InvalidManifest("nobody knows which task is meant", errors=[error])
