"""Stories of jobs: a manifest, the requests of a client while it runs, and the expected end after crashes."""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2

from tests.support.clusters.kube import KubeClient
from tests.support.gateways.process import insist
from tests.support.waiting import until

LAST_WORDS = "these are my last words"
DEADLINE = 600.0  # a story that starts early lasts through all later kills
FOREVER = "exec sleep 600"


@dataclass(slots=True, kw_only=True)
class Client:
    """A client that repeats each request until it is answered."""

    http: httpx2.AsyncClient
    api: KubeClient
    namespace: str

    def path(self, name: str, *more: str) -> str:
        return "/".join([f"/api/v1/namespaces/{self.namespace}/jobs", name, *more])

    async def submit(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Submit the job with one idempotency key, repeatedly until it is answered."""
        key = {"Idempotency-Key": secrets.token_hex(8)}
        path = f"/api/v1/namespaces/{self.namespace}/jobs"
        answer = await insist(self.http, "POST", path, json=manifest, headers=key)
        assert answer.status_code in (200, 201), answer.text
        job: dict[str, Any] = answer.json()
        return job

    async def act(self, method: str, name: str, *action: str) -> None:
        """Repeat the request until it is answered. The job may have ended by an earlier one whose answer was lost."""
        answer = await insist(self.http, method, self.path(name, *action))
        ended = answer.status_code == 409 and answer.json()["code"] == "AlreadyFinished"
        assert answer.status_code < 300 or ended, answer.text

    async def scale(self, name: str, replicas: int) -> None:
        """Request another size, and wait until it is reached."""
        answer = await insist(self.http, "POST", self.path(name, "scale"), json={"replicas": replicas})
        assert answer.status_code < 300, answer.text
        await self.scaled(name, replicas)

    async def scaled(self, name: str, replicas: int) -> list[dict[str, Any]]:
        """Wait until the last requested size is this one and is reached. Return all scale records."""

        async def scale_records() -> list[dict[str, Any]]:
            answer = await insist(self.http, "GET", self.path(name, "scale-records"))
            found: list[dict[str, Any]] = answer.json()["items"]
            return found

        records = await until(
            scale_records,
            lambda found: found and found[-1]["toReplicas"] == replicas and found[-1]["outcome"] is not None,
            what=f"{name} has {replicas} replicas",
            within=DEADLINE,
        )
        assert records[-1]["outcome"] == "Reached", records
        return records

    async def status(self, name: str) -> dict[str, Any]:
        answer = await insist(self.http, "GET", self.path(name, "status"))
        assert answer.status_code == 200, answer.text
        status: dict[str, Any] = answer.json()["status"]
        return status

    async def until(self, name: str, *phases: str, within: float = DEADLINE) -> dict[str, Any]:
        return await until(
            lambda: self.status(name),
            lambda status: status["phase"] in phases,
            what=f"{name} is {phases}",
            within=within,
        )


@dataclass(slots=True, kw_only=True)
class Story:
    """A job and its expected end. `attempts` is the exact number of attempts of each rank."""

    name: str
    manifest: dict[str, Any]
    phase: str
    attempts: Mapping[tuple[str, int], int]
    drive: Callable[[Client, str], Awaitable[object]]
    is_deleted: bool = False
    keeps_pods: bool = True
    exact: bool = True
    first_exit: int | None = None
    uid: str = field(default="")

    async def run(self, client: Client) -> None:
        self.uid = (await client.submit(self.manifest))["uid"]
        await self.drive(client, self.name)
        await client.until(self.name, self.phase)


def task(kind: str, script: str, *, replicas: int = 1, policy: str = "Never", **restart: int) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    pod = {"containers": [container], "terminationGracePeriodSeconds": 2, "automountServiceAccountToken": False}
    return {
        "type": kind,
        "replicas": replicas,
        "restartPolicy": {"policy": policy, **restart},
        "template": {"spec": pod},
    }


def generic_job(name: str, *tasks: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": name},
        "spec": {"replicaSpecs": list(tasks), **spec},
    }


async def _only_wait(_: Client, __: str) -> None:
    """Do nothing while the job runs."""


def serves(name: str, _: Path) -> Story:
    """The job succeeds. It has a Service for each replica."""
    manifest = generic_job(name, task("worker", "echo served", replicas=2), service={"ports": [{"port": 2222}]})
    attempts = {("worker", 0): 1, ("worker", 1): 1}
    return Story(name=name, manifest=manifest, phase="Succeeded", attempts=attempts, drive=_only_wait)


def recovers(name: str, directory: Path) -> Story:
    """The job fails once, is restarted and succeeds."""
    mark = directory / name
    script = f"test -e {mark} && exit 0; touch {mark}; echo {LAST_WORDS}; exit 3"
    manifest = generic_job(name, task("worker", script, policy="OnFailure", limit=1))
    return Story(
        name=name,
        manifest=manifest,
        phase="Succeeded",
        attempts={("worker", 0): 2},
        drive=_only_wait,
        first_exit=3,
    )


def pauses(name: str, _: Path) -> Story:
    """The job is paused while it runs, and ends after it is resumed."""
    resume = [{"type": "worker", "command": ["sh", "-c", "exit 0"]}]
    mode = {"pause": {"enabled": False, "resumeSpecs": resume}}
    manifest = generic_job(name, task("worker", FOREVER), runMode=mode)

    async def drive(client: Client, name: str) -> None:
        await client.until(name, "Running")
        await client.act("POST", name, "pause")
        await client.until(name, "Paused")
        await client.act("POST", name, "resume")

    return Story(name=name, manifest=manifest, phase="Succeeded", attempts={("worker", 0): 2}, drive=drive)


def cancels(name: str, _: Path) -> Story:
    """The job is cancelled while it runs."""

    async def drive(client: Client, name: str) -> None:
        await client.until(name, "Running")
        await client.act("POST", name, "cancel")

    manifest = generic_job(name, task("worker", FOREVER, replicas=2))
    attempts = {("worker", 0): 1, ("worker", 1): 1}
    return Story(name=name, manifest=manifest, phase="Cancelled", attempts=attempts, drive=drive)


def deletes(name: str, _: Path) -> Story:
    """The job is deleted as soon as it has started. No pod is left, not even one whose create was in progress."""

    async def drive(client: Client, name: str) -> None:
        await client.until(name, "Creating", "Pending", "Running")
        await client.act("DELETE", name)

    manifest = generic_job(name, task("worker", FOREVER), service={"ports": [{"port": 2222}]})
    return Story(
        name=name,
        manifest=manifest,
        phase="Cancelled",
        attempts={("worker", 0): 1},
        drive=drive,
        is_deleted=True,
        keeps_pods=False,
        exact=False,
    )


def cleans(name: str, _: Path) -> Story:
    """The job succeeds with the success of one replica. The other replicas are stopped, and all pods cleaned up."""
    tasks = task("main", "exit 0"), task("helper", FOREVER)
    manifest = generic_job(name, *tasks, cleanUpPolicy="All", successRules=[{"main": [0]}])
    attempts = {("main", 0): 1, ("helper", 0): 1}
    return Story(
        name=name,
        manifest=manifest,
        phase="Succeeded",
        attempts=attempts,
        drive=_only_wait,
        keeps_pods=False,
        exact=False,
    )


def is_disrupted(name: str, directory: Path) -> Story:
    """Another client deletes the pod. It is replaced, which does not count as a restart."""
    mark = directory / name
    manifest = generic_job(name, task("worker", f"test -e {mark} && exit 0; touch {mark}; {FOREVER}"))

    async def drive(client: Client, name: str) -> None:
        await client.until(name, "Running")
        await until(mark.exists, what="the mark of the first attempt", within=DEADLINE)
        await client.api.delete(f"/api/v1/namespaces/{client.namespace}/pods/{name}-worker-0")

    return Story(name=name, manifest=manifest, phase="Succeeded", attempts={("worker", 0): 2}, drive=drive)


def di_job(name: str, workers: int) -> dict[str, Any]:
    """Return a DIJob whose workers run until they are stopped, and can be scaled."""
    spec = task("worker", FOREVER)["template"]
    return {
        "apiVersion": "diengine.opendilab.org/v2alpha1",
        "kind": "DIJob",
        "metadata": {"name": name},
        "spec": {"tasks": [{"name": "worker", "replicas": workers, "template": spec}]},
    }


def _resized(name: str, sizes: Sequence[int], attempts: Mapping[int, int]) -> Story:
    """The job runs, is scaled to each of the sizes after the first, and is cancelled."""

    async def drive(client: Client, name: str) -> None:
        await client.until(name, "Running")
        for size in sizes[1:]:
            await client.scale(name, size)
        await client.act("POST", name, "cancel")

    numbers = {("worker", rank): number for rank, number in attempts.items()}
    return Story(name=name, manifest=di_job(name, sizes[0]), phase="Cancelled", attempts=numbers, drive=drive)


def grows(name: str, _: Path) -> Story:
    """The job is scaled up to three replicas. No existing replica restarts."""
    return _resized(name, [1, 3], {0: 1, 1: 1, 2: 1})


def training_job(name: str, *, autoscale: bool) -> dict[str, Any]:
    """Return a TrainingJob with one to three trainers and a list of hosts, a master and a parameter server."""
    role = {"entrypoint": "sleep 600", "min-instance": 1, "grace_period_seconds": 2}
    spec = {
        "image": "python:3.12-slim",
        "fault_tolerant": True,
        "master": {"grace_period_seconds": 2},
        "pserver": role,
        "trainer": role | {"max-instance": 3},
    }
    return {
        "apiVersion": "paddlepaddle.org/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name, "annotations": {"jobgate.dev/autoscale": "true" if autoscale else "false"}},
        "spec": spec,
    }


THREE_TRAINERS = {("master", 0): 1, ("pserver", 0): 1, **{("trainer", rank): 1 for rank in range(3)}}


def trains(name: str, _: Path) -> Story:
    """A client scales the trainers up to three. Master and parameter server do not restart."""
    manifest = training_job(name, autoscale=False)
    return replace(_resized(name, [1, 3], {}), manifest=manifest, attempts=THREE_TRAINERS)


def is_grown(name: str, _: Path) -> Story:
    """The autoscaler scales the trainers up to three, with one request."""

    async def drive(client: Client, name: str) -> None:
        records = await client.scaled(name, 3)
        assert [(found["actor"], found["fromReplicas"]) for found in records] == [("autoscaler", 1)]
        await client.act("POST", name, "cancel")

    manifest = training_job(name, autoscale=True)
    return Story(name=name, manifest=manifest, phase="Cancelled", attempts=THREE_TRAINERS, drive=drive)


def is_killed(name: str, directory: Path) -> Story:
    """The worker of an MxJob is killed once, and restarted because of its exit code."""
    mark = directory / name
    script = f"test -e {mark} && exit 0; touch {mark}; kill -KILL $$"
    template = task("worker", script)["template"]
    template["spec"]["containers"][0]["name"] = "mxnet"
    manifest = {
        "apiVersion": "mxnet.mlkube.io/v1beta1",
        "kind": "MxJob",
        "metadata": {"name": name},
        "spec": {"jobMode": "local", "replicaSpecs": [{"mxReplicaType": "WORKER", "template": template}]},
    }
    return Story(name=name, manifest=manifest, phase="Succeeded", attempts={("worker", 0): 2}, drive=_only_wait)


def shrinks(name: str, _: Path) -> Story:
    """The job is scaled down to one replica. The highest ranks are deleted, and their records stay."""
    return _resized(name, [3, 1], {0: 1, 1: 1, 2: 1})


def grows_again(name: str, _: Path) -> Story:
    """The job is scaled down and up. A rank that returns continues its count of attempts."""
    return _resized(name, [2, 1, 2], {0: 1, 1: 2})
