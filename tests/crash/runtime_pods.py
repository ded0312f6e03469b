"""Nodes whose pods are runtime servers inside the test process: they implement the protocol and count their jobs.

The cluster provides StatefulSets, claims and scheduling. This module replaces the kubelet: it runs each pod that is
scheduled to one of these nodes at its own address, and removes deleted pods.
"""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from aiohttp import web

from tests.support.clusters.kube import KubeClient
from tests.support.waiting import until

PORT = 7716
SET_UID = "jobgate.dev/sample-set-uid"
BUSY = 0.3  # seconds that a job takes
BROKEN = "broken"  # a job whose options contain this fails
SIZE = "1048576"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_LOOK = 0.1
_BEAT = 3.0
_WITHIN = 280.0


class Upload(NamedTuple):
    """A job that was posted to a server, with the incarnation of the server."""

    set_name: str
    pod_uid: str
    server: int
    kind: str
    job: str


@dataclass
class Server:
    """The server of one pod. Its jobs are lost with the pod."""

    pod: Mapping[str, Any]
    address: str
    uploads: Counter[Upload]
    options: dict[tuple[str, str], bytes] = field(default_factory=dict)
    begun: dict[tuple[str, str], float] = field(default_factory=dict)
    ended: dict[tuple[str, str], str] = field(default_factory=dict)
    terminated: int = 0
    runner: web.AppRunner | None = None

    async def start(self) -> None:
        application = web.Application()
        application.router.add_get("/cacheStatus/cacheInfo.json", self._status)
        application.router.add_post("/upload/{kind}Options", self._upload)
        application.router.add_get("/{kind:sync|warmup|rmr|clear}Options/{job}", self._options)
        application.router.add_get("/{kind:sync|warmup|rmr|clear}Result/{job}", self._result)
        self.runner = web.AppRunner(application)
        await self.runner.setup()
        await web.TCPSite(self.runner, self.address, PORT).start()

    async def stop(self) -> None:
        if self.runner is not None:
            await self.runner.cleanup()

    async def _status(self, _: web.Request) -> web.Response:
        disk = {"diskSize": "1000", "diskUsed": "10", "diskAvail": "990"}
        return web.json_response({"totalSize": SIZE, "totalFiles": "7", "cachedSize": SIZE, **disk, "errorMassage": ""})

    async def _upload(self, request: web.Request) -> web.Response:
        assert request.headers["X-Jobgate-Token"]
        key = (request.match_info["kind"], request.headers["filename"])
        if request.query.get("terminate"):
            self.terminated += 1
            self.ended |= dict.fromkeys(self.begun.keys() - self.ended.keys(), "terminated")
        if key[1] == "terminate":
            return web.Response()
        labels = self.pod["metadata"]["labels"]
        name = labels["name"].removesuffix("-runtime")
        index = int(self.pod["metadata"]["name"].rpartition("-")[2])
        self.uploads[Upload(name, self.pod["metadata"]["uid"], index, *key)] += 1
        if key not in self.options:
            self.options[key] = await request.read()
            self.begun[key] = asyncio.get_running_loop().time()
        return web.Response()

    async def _options(self, request: web.Request) -> web.Response:
        body = self.options.get((request.match_info["kind"], request.match_info["job"]))
        return web.Response(status=404) if body is None else web.Response(body=body)

    async def _result(self, request: web.Request) -> web.Response:
        key = (request.match_info["kind"], request.match_info["job"])
        if key not in self.options:
            return web.Response(status=404)
        if key not in self.ended and asyncio.get_running_loop().time() < self.begun[key] + BUSY:
            return web.json_response({"status": "running", "message": ""})
        failed = self.ended.setdefault(key, BROKEN if BROKEN.encode() in self.options[key] else "")
        return web.json_response({"status": "fail" if failed else "success", "message": failed})


@dataclass
class RuntimeNodes:
    """Runs the pods of all SampleSets of a namespace. `servers` are the running servers by pod uid."""

    api: KubeClient
    namespace: str
    names: list[str]
    servers: dict[str, Server] = field(default_factory=dict)
    uploads: Counter[Upload] = field(default_factory=Counter)
    block: str = field(default_factory=lambda: f"127.{50 + secrets.randbelow(150)}.{secrets.randbelow(256)}")
    given: int = 0

    @property
    def spec(self) -> dict[str, Any]:
        """The fields of a spec that place the servers of a set on these nodes."""
        term = {"matchExpressions": [{"key": "crash-nodes", "operator": "In", "values": [self.namespace]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        return {"nodeAffinity": required, "tolerations": [{"operator": "Exists"}]}

    def jobs_of(self, set_name: str, kind: str) -> set[str]:
        """Return the names of the jobs of this kind that were posted to the servers of the set."""
        return {upload.job for upload in self.uploads if (upload.set_name, upload.kind) == (set_name, kind)}

    async def until_given(self, kind: str) -> None:
        """Wait until a server has a job of this kind."""
        await until(lambda: any(upload.kind == kind for upload in self.uploads), what=f"a {kind}", within=_WITHIN)

    async def open(self) -> None:
        taint = {"key": "crash-nodes", "value": "theirs", "effect": "NoSchedule"}
        for name in self.names:
            labels = {"crash-nodes": self.namespace, "kubernetes.io/hostname": name}
            node = {"metadata": {"name": name, "labels": labels}, "spec": {"taints": [taint]}}
            (await self.api.post("/api/v1/nodes", node)).ok()
        await self._beat()

    async def close(self) -> None:
        for server in self.servers.values():
            await server.stop()
        for name in self.names:
            await self.api.delete(f"/api/v1/nodes/{name}")
            await self.api.delete(f"{_LEASES}/{name}")

    async def run(self) -> None:
        """Run the nodes until cancelled."""
        beaten = asyncio.get_running_loop().time()
        while True:
            if asyncio.get_running_loop().time() > beaten + _BEAT:
                beaten = asyncio.get_running_loop().time()
                await self._beat()
            await self._look()
            await asyncio.sleep(_LOOK)

    async def _beat(self) -> None:
        now = _now()
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "as far as this test goes"}
        size = {"cpu": "4", "memory": "8Gi", "pods": "50"}
        status = {
            "conditions": [{**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}],
            "capacity": size,
            "allocatable": size,
        }
        for name in self.names:
            (await self.api.patch(f"/api/v1/nodes/{name}/status", {"status": status})).ok()
            lease = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now.replace("Z", ".000000Z")}
            answer = await self.api.post(_LEASES, {"metadata": {"name": name}, "spec": lease})
            if answer.status == 409:
                answer = await self.api.patch(f"{_LEASES}/{name}", {"spec": lease})
            answer.ok()

    async def _look(self) -> None:
        page = (await self.api.get(f"/api/v1/namespaces/{self.namespace}/pods", labelSelector=SET_UID)).ok()
        seen = {pod["metadata"]["uid"]: pod for pod in page["items"] if pod["spec"].get("nodeName") in self.names}
        for uid in self.servers.keys() - seen.keys():
            await self.servers.pop(uid).stop()
        for uid, pod in seen.items():
            if "deletionTimestamp" in pod["metadata"]:
                await self._end(uid, pod)
            elif uid not in self.servers:
                await self._begin(uid, pod)

    async def _begin(self, uid: str, pod: Mapping[str, Any]) -> None:
        self.given += 1
        server = self.servers[uid] = Server(pod, f"{self.block}.{self.given}", self.uploads)
        await server.start()
        now = _now()
        container = pod["spec"]["containers"][0]
        running = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "test",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        kinds = ("Initialized", "ContainersReady", "Ready", "PodScheduled")
        status = {
            "phase": "Running",
            "podIP": server.address,
            "podIPs": [{"ip": server.address}],
            "startTime": now,
            "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in kinds],
            "containerStatuses": [running],
        }
        answer = await self.api.patch(f"{self._path(pod)}/status", {"metadata": {"uid": uid}, "status": status})
        assert answer.status in (200, 404, 409), answer

    async def _end(self, uid: str, pod: Mapping[str, Any]) -> None:
        if (server := self.servers.pop(uid, None)) is not None:
            await server.stop()
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        answer = await self.api.delete(self._path(pod), options)
        assert answer.status in (200, 404, 409), answer

    def _path(self, pod: Mapping[str, Any]) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - the cluster's clock is this one


@asynccontextmanager
async def runtime_nodes(api: KubeClient, namespace: str, count: int = 2) -> AsyncIterator[RuntimeNodes]:
    nodes = RuntimeNodes(api, namespace, [f"{namespace}-{number}" for number in range(count)])
    await nodes.open()
    try:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(nodes.run())
            yield nodes
            running.cancel()
    finally:
        await nodes.close()


async def volume_secret(api: KubeClient, namespace: str, **keys: str) -> str:
    """Create the Secret of a volume that is never mounted, and return its name."""
    data = {"name": "vol", "storage": "s3", "metaurl": "redis://nowhere/1", "bucket": "https://nowhere", **keys}
    secret = {"metadata": {"name": "volume"}, "stringData": data}
    (await api.post(f"/api/v1/namespaces/{namespace}/secrets", json.loads(json.dumps(secret)))).ok()
    return "volume"
