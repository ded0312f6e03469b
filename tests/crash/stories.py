"""Jobs with a story: what is submitted, what a client then does to it, and how it must end whatever dies meanwhile."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2

from tests.support.gateway_process import insist
from tests.support.kube import KubeClient

LAST_WORDS = "these are my last words"
DEADLINE = 600.0  # a story begun early lives through all the kills that come after
FOREVER = "exec sleep 600"


@dataclass(slots=True, kw_only=True)
class Client:
    """A patient one: what is not answered is asked again."""

    http: httpx2.AsyncClient
    api: KubeClient
    namespace: str

    def path(self, name: str, *more: str) -> str:
        return "/".join([f"/api/v1/namespaces/{self.namespace}/jobs", name, *more])

    async def submit(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """A submission under one idempotency key, however often it must be sent."""
        key = {"Idempotency-Key": secrets.token_hex(8)}
        path = f"/api/v1/namespaces/{self.namespace}/jobs"
        answer = await insist(self.http, "POST", path, json=manifest, headers=key)
        assert answer.status_code in (200, 201), answer.text
        job: dict[str, Any] = answer.json()
        return job

    async def act(self, method: str, name: str, *action: str) -> None:
        """Ask until there is an answer; the job may have ended since an ask whose answer was lost."""
        answer = await insist(self.http, method, self.path(name, *action))
        ended = answer.status_code == 409 and answer.json()["code"] == "AlreadyFinished"
        assert answer.status_code < 300 or ended, answer.text

    async def scale(self, name: str, replicas: int) -> None:
        """Ask for another size, and wait until it is reached."""
        answer = await insist(self.http, "POST", self.path(name, "scale"), json={"replicas": replicas})
        assert answer.status_code < 300, answer.text
        await self.scaled(name, replicas)

    async def scaled(self, name: str, replicas: int) -> list[dict[str, Any]]:
        """Wait until the last size that somebody asked for is this one, and reached; all records."""
        records: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(DEADLINE):
                while not records or records[-1]["toReplicas"] != replicas or records[-1]["outcome"] is None:
                    await asyncio.sleep(0.25)
                    records = (await insist(self.http, "GET", self.path(name, "scale-records"))).json()["items"]
        except TimeoutError:
            raise AssertionError(f"{name} never had {replicas} replicas; last: {records}") from None
        assert records[-1]["outcome"] == "Reached", records
        return records

    async def status(self, name: str) -> dict[str, Any]:
        answer = await insist(self.http, "GET", self.path(name, "status"))
        assert answer.status_code == 200, answer.text
        status: dict[str, Any] = answer.json()["status"]
        return status

    async def until(self, name: str, *phases: str, within: float = DEADLINE) -> dict[str, Any]:
        status: dict[str, Any] = {}
        try:
            async with asyncio.timeout(within):
                while (status := await self.status(name))["phase"] not in phases:
                    await asyncio.sleep(0.25)
        except TimeoutError:
            raise AssertionError(f"{name} never became {phases}; last: {status}") from None
        return status


@dataclass(slots=True, kw_only=True)
class Story:
    """`attempts` is how many each rank must have, exactly; a story that `is_deleted` leaves nothing behind."""

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
    """The job needs nobody."""


def serves(name: str, _: Path) -> Story:
    """Succeeds, with a Service for each replica."""
    manifest = generic_job(name, task("worker", "echo served", replicas=2), service={"ports": [{"port": 2222}]})
    attempts = {("worker", 0): 1, ("worker", 1): 1}
    return Story(name=name, manifest=manifest, phase="Succeeded", attempts=attempts, drive=_only_wait)


def recovers(name: str, directory: Path) -> Story:
    """Fails once, is restarted, succeeds."""
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
    """Is paused while it runs, and ends once it is resumed."""
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
    """Is cancelled while it runs."""

    async def drive(client: Client, name: str) -> None:
        await client.until(name, "Running")
        await client.act("POST", name, "cancel")

    manifest = generic_job(name, task("worker", FOREVER, replicas=2))
    attempts = {("worker", 0): 1, ("worker", 1): 1}
    return Story(name=name, manifest=manifest, phase="Cancelled", attempts=attempts, drive=drive)


def deletes(name: str, _: Path) -> Story:
    """Is deleted as soon as it has begun: no pod of it may be left, even one that was on its way."""

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
    """Succeeds by one replica's success; the others are stopped, and all pods removed."""
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
    """Somebody else deletes its pod: it is replaced, and no restart is charged."""
    mark = directory / name
    manifest = generic_job(name, task("worker", f"test -e {mark} && exit 0; touch {mark}; {FOREVER}"))

    async def drive(client: Client, name: str) -> None:
        await client.until(name, "Running")
        await _made(mark)
        await client.api.delete(f"/api/v1/namespaces/{client.namespace}/pods/{name}-worker-0")

    return Story(name=name, manifest=manifest, phase="Succeeded", attempts={("worker", 0): 2}, drive=drive)


def di_job(name: str, workers: int) -> dict[str, Any]:
    """Workers that run until they are told to go, and may become more or fewer."""
    spec = task("worker", FOREVER)["template"]
    return {
        "apiVersion": "diengine.opendilab.org/v2alpha1",
        "kind": "DIJob",
        "metadata": {"name": name},
        "spec": {"tasks": [{"name": "worker", "replicas": workers, "template": spec}]},
    }


def _resized(name: str, sizes: Sequence[int], attempts: Mapping[int, int]) -> Story:
    """Runs, has each of the sizes after the first in turn, and is cancelled."""

    async def drive(client: Client, name: str) -> None:
        await client.until(name, "Running")
        for size in sizes[1:]:
            await client.scale(name, size)
        await client.act("POST", name, "cancel")

    numbers = {("worker", rank): number for rank, number in attempts.items()}
    return Story(name=name, manifest=di_job(name, sizes[0]), phase="Cancelled", attempts=numbers, drive=drive)


def grows(name: str, _: Path) -> Story:
    """Becomes three; nobody who was there starts anew."""
    return _resized(name, [1, 3], {0: 1, 1: 1, 2: 1})


def training_job(name: str, *, autoscale: bool) -> dict[str, Any]:
    """A trainer that may become three, with a list of hosts, beside a master and a pserver."""
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
    """Becomes three trainers by hand; master and pserver are left as they are."""
    manifest = training_job(name, autoscale=False)
    return replace(_resized(name, [1, 3], {}), manifest=manifest, attempts=THREE_TRAINERS)


def is_grown(name: str, _: Path) -> Story:
    """Becomes three trainers by the autoscaler, which asks for that once."""

    async def drive(client: Client, name: str) -> None:
        records = await client.scaled(name, 3)
        assert [(found["actor"], found["fromReplicas"]) for found in records] == [("autoscaler", 1)]
        await client.act("POST", name, "cancel")

    manifest = training_job(name, autoscale=True)
    return Story(name=name, manifest=manifest, phase="Cancelled", attempts=THREE_TRAINERS, drive=drive)


def is_killed(name: str, directory: Path) -> Story:
    """An MxJob whose worker is killed once; that exit is retried."""
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
    """Becomes one; the highest ranks go, and stay on record."""
    return _resized(name, [3, 1], {0: 1, 1: 1, 2: 1})


def grows_again(name: str, _: Path) -> Story:
    """Shrinks and grows; a rank that comes back goes on counting its attempts."""
    return _resized(name, [2, 1, 2], {0: 1, 1: 2})


async def _made(mark: Path) -> None:
    async with asyncio.timeout(DEADLINE):
        while not mark.exists():
            await asyncio.sleep(0.05)
