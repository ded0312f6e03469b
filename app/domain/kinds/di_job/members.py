"""The members of a DIJob: the sizes of its tasks, the global ranks of its replicas, and their addresses.

A replica keeps its global rank while it is in the job. When it leaves, its global rank becomes free. Lists by global
rank have "" at a free rank. New replicas get the lowest free ranks.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Final

from app.domain.errors import FieldError, InvalidManifest, shorten
from app.domain.kinds.di_job.spec import COLLECTOR
from app.domain.kinds.envelope import ASSIGNED
from app.domain.plan import Manifest, Rank
from app.domain.status.records import Replica

CONTAINER: Final = "di-container"
PORT_NAME: Final = "di-port"
DEFAULT_PORT: Final = 22270
RANKS: Final = "ranks"


def layout(sizes: Mapping[str, int], before: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """Return the global ranks of each task in order of rank. Replicas in `before` keep their global ranks."""
    kept = {task: list(before.get(task, ())[:size]) for task, size in sizes.items()}
    taken = {rank for ranks in kept.values() for rank in ranks}
    # All tasks draw from one generator, in the order of the tasks, so no rank is given twice.
    free = (rank for rank in count() if rank not in taken)
    return {task: kept[task] + [next(free) for _ in range(size - len(kept[task]))] for task, size in sizes.items()}


def sizes(manifest: Manifest) -> dict[str, int]:
    """Return the number of replicas of each task of an accepted manifest."""
    return {task["name"]: task["replicas"] for task in manifest["spec"]["tasks"]}


def ranks(manifest: Manifest) -> Mapping[str, Sequence[int]]:
    """Return the global ranks of each task of an accepted manifest, see `layout`."""
    found: Mapping[str, Sequence[int]] = manifest[ASSIGNED][RANKS]
    return found


def addresses(manifest: Manifest, replicas: Iterable[Replica]) -> list[str]:
    """Return host:port of each replica by global rank, or "" if it has left, has ended, or has no address yet."""
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


def task_to_resize(manifest: Manifest, requested: str | None) -> str:
    """Return the task that a request resizes: the requested one, otherwise the collector, otherwise the only task.

    Raises:
        InvalidManifest: there is no such task, or the request names none and the job has several.
    """
    tasks = manifest["spec"]["tasks"]
    known = [str(task["name"]) for task in tasks]
    if requested is not None:
        if requested in known:
            return requested
        raise _no_task("UnknownTask", f'the job has no task "{shorten(requested)}"', known)
    for task in tasks:
        if task["type"] == COLLECTOR:
            return str(task["name"])
    if len(known) == 1:
        return known[0]
    raise _no_task("Required", "the job has several tasks, none of type collector: name one of them", known)


def by_global_rank(ranked: Mapping[str, Sequence[int]], texts: Mapping[Rank, str]) -> list[str]:
    """Return a list with the text of each replica at the index of its global rank, and "" at all other indices."""
    found = [""] * (1 + max(rank for of_task in ranked.values() for rank in of_task))
    for key, text in texts.items():
        found[ranked[key.task][key.rank]] = text
    return found


def _host(address: str) -> str:
    # An IPv6 address needs brackets before a port.
    return f"[{address}]" if ":" in address else address


def _port(template: Manifest) -> int:
    for container in template["spec"]["containers"]:
        if container["name"] == CONTAINER:
            for port in container.get("ports") or ():
                if port.get("name") == PORT_NAME:
                    return int(port["containerPort"])
    return DEFAULT_PORT


def _no_task(code: str, detail: str, known: Sequence[str]) -> InvalidManifest:
    error = FieldError(pointer="/task", code=code, detail=detail, accepted="one of " + ", ".join(known))
    return InvalidManifest("the request does not identify a task", errors=[error])
