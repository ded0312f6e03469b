"""Kueue's objects for tests, by plain requests: on the embedded cluster, or on a real one that serves Kueue.

The names of cluster-wide objects begin with that of the test's namespace, so tests do not share quota.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.clusters.kube import Answer, KubeClient
from tests.support.waiting import until

API = "/apis/kueue.x-k8s.io/v1beta2"
GROUP_VERSION = "kueue.x-k8s.io/v1beta2"
JOB_UID = "kueue.x-k8s.io/job-uid"
NOW = "2026-01-01T00:00:00Z"
Json = dict[str, Any]
_Quotas = Mapping[str, Mapping[str, str]]


async def require_kueue(api: KubeClient) -> None:
    """Skip the test on a real cluster without Kueue."""
    if (await api.get(API)).status == 404:
        pytest.skip(f"the cluster does not serve {GROUP_VERSION}: start Kueue, or run `make test-cluster`")


def template(cpu: str = "1", **spec: Any) -> Json:
    container = {"name": "main", "image": "registry.example/none:1", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"restartPolicy": "Never", "containers": [container], **spec}}


def pod_set(name: str = "main", count: int = 1, cpu: str = "1", **spec: Any) -> Json:
    return {"name": name, "count": count, "template": template(cpu, **spec)}


def workload(name: str, queue: str, *pod_sets: Json, priority: int = 0, **spec: Any) -> Json:
    found = {"queueName": queue, "priority": priority, "podSets": list(pod_sets) or [pod_set()], **spec}
    return {"apiVersion": GROUP_VERSION, "kind": "Workload", "metadata": {"name": name}, "spec": found}


def condition(obj: Json, kind: str) -> Json:
    found = (obj.get("status") or {}).get("conditions") or []
    return next((entry for entry in found if entry["type"] == kind), {})


def holds(kind: str, status: str = "True", reason: str = "") -> Callable[[Json], bool]:
    """Return a test of an object: the condition has the status, and the reason if one is given."""

    def test(obj: Json) -> bool:
        found = condition(obj, kind)
        return found.get("status") == status and reason in ("", found["reason"])

    return test


class Queues:
    """The queues and Workloads of one test."""

    def __init__(self, api: KubeClient, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.workloads = f"{API}/namespaces/{namespace}/workloads"
        self.local_queues = f"{API}/namespaces/{namespace}/localqueues"
        self._wide: list[str] = []

    def wide(self, name: str) -> str:
        """Return the name of a cluster-wide object of this test."""
        return f"{self.namespace}-{name}"

    def cluster_queue(self, name: str) -> str:
        return f"{API}/clusterqueues/{self.wide(name)}"

    async def add_flavor(self, name: str, **spec: Any) -> None:
        await self._add_wide("resourceflavors", "ResourceFlavor", name, spec)

    def cohort(self, name: str) -> str:
        return f"{API}/cohorts/{self.wide(name)}"

    async def add_cohort(self, name: str, quotas: _Quotas | None = None, **spec: Any) -> None:
        await self._add_wide(
            "cohorts", "Cohort", name, {"resourceGroups": self.groups(quotas)} | spec if quotas else spec
        )

    async def add_queue(
        self,
        name: str,
        quotas: _Quotas,
        *,
        preemption: str = "LowerPriority",
        lending: Mapping[str, str] | None = None,
        borrowing: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        """Add a ClusterQueue with these quotas by flavor and resource, and a LocalQueue of the same name.

        `lending` and `borrowing` limit what it lends and borrows of a resource.
        """
        defaults = {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": preemption},
            "resourceGroups": self.groups(quotas, lending, borrowing),
        }
        await self._add_wide("clusterqueues", "ClusterQueue", name, defaults | spec)
        await self.add_local_queue(name, name)

    def groups(
        self,
        quotas: _Quotas,
        lending: Mapping[str, str] | None = None,
        borrowing: Mapping[str, str] | None = None,
    ) -> list[Json]:
        """Return the resource groups with these quotas."""
        limits = {"lendingLimit": lending or {}, "borrowingLimit": borrowing or {}}
        flavors = [
            {
                "name": self.wide(flavor),
                "resources": [
                    {"name": resource, "nominalQuota": amount}
                    | {field: found[resource] for field, found in limits.items() if resource in found}
                    for resource, amount in amounts.items()
                ],
            }
            for flavor, amounts in quotas.items()
        ]
        return [{"coveredResources": list(next(iter(quotas.values()))), "flavors": flavors}]

    async def add_local_queue(self, name: str, cluster_queue: str, **spec: Any) -> None:
        body = {
            "apiVersion": GROUP_VERSION,
            "kind": "LocalQueue",
            "metadata": {"name": name},
            "spec": {"clusterQueue": self.wide(cluster_queue), **spec},
        }
        (await self.api.post(self.local_queues, body)).ok()

    async def _add_wide(self, plural: str, kind: str, name: str, spec: Json) -> None:
        body = {"apiVersion": GROUP_VERSION, "kind": kind, "metadata": {"name": self.wide(name)}, "spec": spec}
        (await self.api.post(f"{API}/{plural}", body)).ok()
        self._wide.append(f"{API}/{plural}/{self.wide(name)}")

    async def submit(self, name: str, queue: str, *pod_sets: Json, **spec: Any) -> Json:
        found: Json = (await self.api.post(self.workloads, workload(name, queue, *pod_sets, **spec))).ok()
        return found

    async def submit_owned(self, name: str, queue: str, *pod_sets: Json, job_uid: str, **spec: Any) -> Json:
        """Submit a Workload whose label names the job that owns it, in the place of which a ConfigMap stands."""
        body = workload(name, queue, *pod_sets, **spec)
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        owner = (await self.api.post(path, {"metadata": {"name": name}})).ok()["metadata"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner["uid"], "controller": True}
        body["metadata"] |= {"labels": {JOB_UID: job_uid}, "ownerReferences": [reference]}
        return dict((await self.api.post(self.workloads, body)).ok())

    async def edit(self, name: str, **spec: Any) -> Json:
        return dict((await self.api.patch(f"{self.workloads}/{name}", {"spec": spec})).ok())

    async def get(self, name: str) -> Json:
        return dict((await self.api.get(f"{self.workloads}/{name}")).ok())

    async def reaches(self, name: str, wanted: Callable[[Json], bool]) -> Json:
        return dict(await self.api.eventually(f"{self.workloads}/{name}", wanted))

    async def admitted(self, name: str) -> Json:
        return await self.reaches(name, holds("Admitted"))

    async def pending(self, name: str, message: str, reason: str = "Pending") -> Json:
        """Wait until the Workload has no quota for this reason. Kueue 0.15 begins some messages with a capital."""
        return await self.reaches(
            name,
            lambda obj: holds("QuotaReserved", "False", reason)(obj) and self.message(obj).lower() == message.lower(),
        )

    @staticmethod
    def message(obj: Json, kind: str = "QuotaReserved") -> str:
        return str(condition(obj, kind).get("message", ""))

    async def write_status(self, name: str, change: Callable[[Json], object]) -> Answer:
        """Update the status as an owner does: again while others write at the same time."""

        async def attempt() -> Answer:
            body = await self.get(name)
            change(body["status"])
            return await self.api.put(f"{self.workloads}/{name}/status", body)

        return await until(attempt, lambda answer: answer.status != 409, what="the status is written")

    async def set_condition(self, name: str, kind: str, status: str, reason: str, message: str = "") -> None:
        (await self.write_status(name, lambda found: _set(found, kind, status, reason, message))).ok()

    async def finish(self, name: str) -> None:
        await self.set_condition(name, "Finished", "True", "Succeeded", "all pods have ended")

    async def give_back(self, name: str, *, requeued: bool = True) -> None:
        """Return the quota of an evicted Workload, as its owner does once its pods are gone.

        Without `requeued`, the Workload waits until Kueue queues it again.
        """

        def change(found: Json) -> None:
            evicted = next(entry for entry in found["conditions"] if entry["type"] == "Evicted")
            del found["admission"]
            _set(found, "QuotaReserved", "False", "Pending", evicted["message"])
            _set(found, "Admitted", "False", "NoReservation", "The workload has no reservation")
            _set(found, "Requeued", str(requeued), evicted["reason"], evicted["message"])

        (await self.write_status(name, change)).ok()

    async def remove(self) -> None:
        for name in [item["metadata"]["name"] for item in (await self.api.get(self.workloads)).body["items"]]:
            await self.api.patch(f"{self.workloads}/{name}", {"metadata": {"finalizers": None}})
            await self.api.delete(f"{self.workloads}/{name}")
        # Kueue keeps a queue until it is unused, and a flavor until no queue refers to it.
        for path in reversed(self._wide):
            await self.api.delete(path)


def _set(status: Json, kind: str, value: str, reason: str, message: str) -> None:
    conditions = status.setdefault("conditions", [])
    entry = {"type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": NOW}
    conditions[:] = [*(found for found in conditions if found["type"] != kind), entry]


@asynccontextmanager
async def queues_of(api: KubeClient, namespace: str) -> AsyncIterator[Queues]:
    await require_kueue(api)
    found = Queues(api, namespace)
    try:
        yield found
    finally:
        await found.remove()
