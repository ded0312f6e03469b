"""The names of a DIJob's pods, and the environment variables by which its containers find one another."""

from collections.abc import Mapping, Sequence
from typing import Final

from app.domain.kinds.di_job.members import by_global_rank
from app.domain.plan import JobIdentity, Manifest, Rank

SERVICE_PREFIX: Final = "di-"
_CLUSTER: Final = "svc.cluster.local"


def pod_name(job: str, task: str, rank: int) -> str:
    """Return the name of a replica's pod, which is also its host name."""
    return f"{job}-{task}-{rank}"


def service_name(job: str) -> str:
    return f"{SERVICE_PREFIX}{job}"


def host(job: str, task: str, rank: int, namespace: str) -> str:
    """Return the DNS name of a replica."""
    return f"{pod_name(job, task, rank)}.{service_name(job)}.{namespace}.{_CLUSTER}"


def nodes_variable(task: str) -> str:
    # Task names are DNS labels, which have no underscore, so two tasks never get the same variable.
    return f"DI_{task.upper().replace('-', '_')}_NODES"


def shared_variables(identity: JobIdentity, ranked: Mapping[str, Sequence[int]], server_url: str) -> dict[str, str]:
    """Return the variables of all containers.

    DI_NODES lists hosts by global rank (DI_RANK), DI_<task>_NODES by rank.
    """
    hosts = {
        Rank(task, rank): host(identity.name, task, rank, identity.namespace)
        for task, of_task in ranked.items()
        for rank in range(len(of_task))
    }
    lists = {nodes_variable(task): ",".join(hosts[key] for key in hosts if key.task == task) for task in ranked}
    return {
        "DI_JOB_ID": f"{identity.namespace}/{identity.name}",
        "DI_SERVER_URL": server_url,
        "DI_SERVER_TOKEN": identity.credential,
        "DI_NODES": ",".join(by_global_rank(ranked, hosts)),
        **lists,
    }


def with_variables(containers: Sequence[Manifest], variables: Mapping[str, str]) -> list[Manifest]:
    """Return the containers with these variables first. Those of the user can refer to them and cannot replace them."""
    ours = [{"name": name, "value": value} for name, value in variables.items()]
    return [
        {**container, "env": ours + [own for own in container.get("env") or () if own["name"] not in variables]}
        for container in containers
    ]
