"""A node whose kubelet is the test: pods change when the test says so, and logs are the bytes that the test wrote."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from devcluster.certificates import Certificates
from tests.support.clusters.kube import KubeClient

HOST = "127.0.0.1"


@dataclass(slots=True, kw_only=True)
class Kubelet:
    """`logs` holds the log of each pod. A `log_status` other than 200 makes every read of a log fail.

    Lines have times if they are read with times, or since one.

    With `stays_open`, a log that is followed has no end until its reader leaves. `opened` are the pods whose logs were
    read.
    """

    kube: KubeClient
    namespace: str
    node: str
    logs: dict[str, bytes] = field(default_factory=dict)
    log_status: int = 200
    stays_open: bool = False
    opened: set[str] = field(default_factory=set)

    def _path(self, pod: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{pod}"

    async def run(self, *pods: str) -> None:
        """Bind the pods to the node and start their containers."""
        for name in pods:
            target = {"apiVersion": "v1", "kind": "Node", "name": self.node}
            binding = {"metadata": {"name": name}, "target": target}
            (await self.kube.post(f"{self._path(name)}/binding", binding)).ok()
            await self._report(name, "Running", {"running": {"startedAt": _now()}})

    async def finish(self, *pods: str, exit_code: int = 0) -> None:
        """End the containers of running pods."""
        for name in pods:
            ended = {"exitCode": exit_code, "startedAt": _now(), "finishedAt": _now(), "reason": "Completed"}
            await self._report(name, "Failed" if exit_code else "Succeeded", {"terminated": ended})

    async def terminate(self, *pods: str) -> None:
        """Confirm the deletion of pods that are being deleted, as when their containers have stopped."""
        for name in pods:
            await self.kube.delete(self._path(name), {"gracePeriodSeconds": 0})

    async def _report(self, pod: str, phase: str, state: dict[str, Any]) -> None:
        container = {"name": "main", "image": "busybox", "imageID": "", "restartCount": 0, "ready": False}
        status = {"phase": phase, "startTime": _now(), "containerStatuses": [container | {"state": state}]}
        (await self.kube.patch(f"{self._path(pod)}/status", {"status": status})).ok()

    async def _serve_log(self, request: web.Request) -> web.StreamResponse:
        pod = request.match_info["pod"]
        self.opened.add(pod)
        if self.log_status != 200:
            return web.Response(status=self.log_status, text="the kubelet is unwell")
        text = self.logs.get(pod, b"")
        if request.query.get("timestamps") != "true" and "sinceTime" in request.query:
            text = _since(text, datetime.fromisoformat(request.query["sinceTime"]))
        if not self.stays_open or request.query.get("follow") != "true":
            return web.Response(body=text)
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(text)
        await asyncio.get_running_loop().create_future()  # cancelled when the reader leaves
        return answer

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._serve_log)
        return application


@asynccontextmanager
async def a_kubelet(
    kube: KubeClient, namespace: str, directory: Path, *, stays_open: bool = False
) -> AsyncIterator[Kubelet]:
    """A kubelet with a Node of its own. The Node is unschedulable: the test decides which pod runs."""
    kubelet = Kubelet(kube=kube, namespace=namespace, node=f"node-{secrets.token_hex(5)}", stays_open=stays_open)
    certificates = Certificates(directory / "kubelet", HOST)
    certificates.renew(datetime.now(UTC))  # noqa: TID251 - a test is its own clock
    runner = web.AppRunner(kubelet.application(), handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, 0, ssl_context=certificates.server_context())
        await site.start()
        await _register(kube, kubelet.node, runner.addresses[0][1])
        yield kubelet
        await kube.delete(f"/api/v1/nodes/{kubelet.node}")
    finally:
        await runner.cleanup()


async def _register(kube: KubeClient, name: str, port: int) -> None:
    (await kube.post("/api/v1/nodes", {"metadata": {"name": name}, "spec": {"unschedulable": True}})).ok()
    status = {
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": _now()}],
        "addresses": [{"type": "InternalIP", "address": HOST}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    (await kube.patch(f"/api/v1/nodes/{name}/status", {"status": status})).ok()


def _since(log: bytes, begin: datetime) -> bytes:
    """Return the lines from a time on, without their times."""
    lines = [line.split(b" ", 1) for line in log.splitlines(keepends=True)]
    return b"".join(text for at, text in lines if datetime.fromisoformat(at.decode()) >= begin)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - a test is its own clock
