"""Queues of Kueue for one test, and what Kueue knows of a job."""

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.behaviour.client import DEADLINE, Jobs
from tests.behaviour.manifests import Body, job, task
from tests.behaviour.scaling.elastic import di_job, di_task
from tests.support.clusters.kube import KubeClient
from tests.support.waiting import until

API = "/apis/kueue.x-k8s.io/v1beta2"
GROUP = "kueue.x-k8s.io"
NODE_LABEL = {"kubernetes.io/os": "linux"}
_PLURALS = {"Topology": "topologies", "WorkloadPriorityClass": "workloadpriorityclasses"}
TOLERATION = {"key": "dedicated", "operator": "Equal", "value": "queues", "effect": "NoSchedule"}


@dataclass(slots=True, kw_only=True)
class Queues:
    """A ClusterQueue with quota for CPUs, its flavor, a class of higher priority, and LocalQueues of one namespace."""

    jobs: Jobs
    name: str

    @property
    def priority_class(self) -> str:
        return f"{self.name}-high"

    async def add_local(self, name: str, *, of: str | None = None) -> None:
        """Make a LocalQueue of the ClusterQueue, or of another one."""
        spec = {"clusterQueue": of or self.name}
        path = f"{API}/namespaces/{self.jobs.namespace}/localqueues"
        (await self.jobs.kube.post(path, body_of("LocalQueue", name, spec=spec))).ok()
        await self.jobs.kube.eventually(f"{path}/{name}", is_active, within=DEADLINE)

    async def cover_memory(self) -> None:
        """Give the ClusterQueue, which is not in use, more memory than any job requests."""
        path = f"{API}/clusterqueues/{self.name}"
        (group,) = (await self.jobs.kube.get(path)).ok()["spec"]["resourceGroups"]
        group["coveredResources"].append("memory")
        group["flavors"][0]["resources"].append({"name": "memory", "nominalQuota": "64Gi"})
        (await self.jobs.kube.patch(path, {"spec": {"resourceGroups": [group]}})).ok()

    async def submit(
        self, name: str, script: str = "exec sleep 600", *, queue: str | None = "team", high: bool = False, **more: Any
    ) -> str:
        """Submit a job whose replicas request one CPU each, and return its uid."""
        manifest = queued(job(name, requesting(script, **more)), queue, self.priority_class if high else None)
        return str((await self.jobs.submit(manifest))["uid"])

    async def stop(self, policy: str, *, of: str | None = None) -> None:
        """Set the stop policy of the ClusterQueue, or another one: Hold admits nothing, HoldAndDrain also evicts."""
        (await self.jobs.kube.patch(f"{API}/clusterqueues/{of or self.name}", {"spec": {"stopPolicy": policy}})).ok()

    def path(self, uid: str) -> str:
        return f"{API}/namespaces/{self.jobs.namespace}/workloads/jobgate-{uid}"

    async def workload(self, uid: str, wanted: Callable[[Body], object] = bool) -> Body:
        found: Body = await self.jobs.kube.eventually(self.path(uid), wanted, within=DEADLINE)
        return found

    async def until_condition(self, uid: str, kind: str, status: str = "True") -> Body:
        found = await self.workload(uid, lambda body: condition(body, kind).get("status") == status)
        return condition(found, kind)

    async def until_unused(self) -> None:
        """Wait until no quota of the ClusterQueue is used."""

        def is_unused(body: Body) -> bool:
            usage = [one for flavor in body["status"].get("flavorsUsage", ()) for one in flavor["resources"]]
            return all(str(one.get("total", "0")) == "0" for one in usage)

        await self.jobs.kube.eventually(f"{API}/clusterqueues/{self.name}", is_unused, within=DEADLINE)

    async def until_no_workload(self) -> None:
        path = f"{API}/namespaces/{self.jobs.namespace}/workloads"
        await self.jobs.kube.eventually(path, lambda found: not found["items"], within=DEADLINE)

    async def until_nothing_left(self) -> None:
        """Wait until the namespace has no Workload, no pod, and so no gate and no finalizer, and no quota is used."""
        await self.until_no_workload()
        await self.jobs.kube.eventually(self.jobs.objects("pods"), lambda found: not found["items"], within=DEADLINE)
        await self.until_unused()


def requesting(script: str = "exec sleep 600", *, cpu: str = "1", **more: Any) -> Body:
    found = task(script, **more)
    found["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return found


def elastic_job(name: str, collectors: int = 1) -> Body:
    """A DIJob of a learner and collectors, of half a CPU each, in the queue `team`."""
    tasks = [di_task("learner"), di_task("collector", collectors)]
    for each in tasks:
        each["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m"}}
    return queued(di_job(name, tasks, minReplicas=2, maxReplicas=4), "team")


def queued(manifest: Body, queue: str | None, priority_class: str | None = None) -> Body:
    named = {f"{GROUP}/queue-name": queue, f"{GROUP}/priority-class": priority_class}
    labels = {key: value for key, value in named.items() if value is not None}
    return {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}


def condition(body: Body, kind: str) -> Body:
    found = (one for one in body.get("status", {}).get("conditions", ()) if one["type"] == kind)
    return next(found, {})


def is_active(body: Body) -> bool:
    return bool(condition(body, "Active").get("status") == "True")


def path_of(body: Body) -> str:
    """Return the path of the collection of an object of Kueue."""
    plural = _PLURALS.get(body["kind"], f"{body['kind'].lower()}s")
    namespace = body["metadata"].get("namespace")
    return f"{API}/{plural}" if namespace is None else f"{API}/namespaces/{namespace}/{plural}"


def is_paused_by_deactivation(status: Body) -> bool:
    """Return whether the job is paused with the message of Kueue, which may write it some time after `active`."""
    found = (status["phase"], status["reason"], status["message"])
    return found == ("Paused", "Deactivated", "The workload is deactivated")


def body_of(kind: str, name: str, **more: Any) -> Body:
    return {"apiVersion": f"{GROUP}/v1beta2", "kind": kind, "metadata": {"name": name}, **more}


def quota_objects(name: str, cpu: int | str, *, flavor: Body, priority_class: str) -> list[Body]:
    """A ClusterQueue with quota for CPUs in one flavor, and a class of higher priority, which preempts."""
    resources = [{"name": "cpu", "nominalQuota": cpu}]
    group = {"coveredResources": ["cpu"], "flavors": [{"name": name, "resources": resources}]}
    spec = {
        "namespaceSelector": {},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [group],
    }
    return [
        body_of("ResourceFlavor", name, spec=flavor),
        body_of("WorkloadPriorityClass", priority_class, value=1000),
        body_of("ClusterQueue", name, spec=spec),
    ]


@asynccontextmanager
async def queues_of(jobs: Jobs, *, cpu: int) -> AsyncIterator[Queues]:
    """Make the queues, with a LocalQueue `team`, and delete them afterwards."""
    queues = Queues(jobs=jobs, name=f"q-{secrets.token_hex(4)}")
    flavor = {"nodeLabels": NODE_LABEL, "tolerations": [TOLERATION]}
    made = quota_objects(queues.name, cpu, flavor=flavor, priority_class=queues.priority_class)
    async with existing(jobs.kube, made):
        await queues.add_local("team")
        yield queues


@asynccontextmanager
async def existing(kube: KubeClient, objects: Sequence[Body]) -> AsyncIterator[None]:
    """Create objects of Kueue, and delete them afterwards, the last one first."""
    async with deleted(kube, objects):
        for body in objects:
            (await kube.post(path_of(body), body)).ok()
        yield


@asynccontextmanager
async def deleted(kube: KubeClient, objects: Sequence[Body]) -> AsyncIterator[None]:
    """Delete objects of Kueue afterwards, the last one first."""
    yield
    for body in reversed(objects):
        await kube.delete(f"{path_of(body)}/{body['metadata']['name']}")


async def has_kueue(jobs: Jobs) -> bool:
    return (await jobs.kube.get(API)).status == 200


async def until_history(jobs: Jobs, name: str, reason: str) -> Body:
    """The last row of the history with this reason, once there is one."""

    async def read() -> Body | None:
        return next((row for row in reversed(await jobs.history(name)) if row["reason"] == reason), None)

    return await until(read, bool, what=f"{reason} in the history of {name}", within=DEADLINE)
