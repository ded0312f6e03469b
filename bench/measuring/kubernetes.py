"""The side of Kubernetes: a real control plane, which the `controlplane` script starts and stops, and a client."""

import asyncio
import json
import os
import re
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from bench.measuring.client import Target
from bench.measuring.processes import free_ports

SCRIPT = Path(__file__).parents[3] / "shared" / "k8s" / "controlplane"
PARTS = ("etcd", "apiserver")
CONTROLLERS = ("kcm", "scheduler")
_TOKEN = "admin-token"
_STEP_SECONDS = 90.0  # etcd and the API server start slowly on a busy machine
_NODE_SECONDS = 60.0  # until the node agent is ready
_PATCH = "application/merge-patch+json"
_COUNTED = "apiserver_request_total{"
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Unavailable(Exception):  # noqa: N818 - a message for whoever runs this
    """No control plane is available."""


class ControlPlane:
    def __init__(self, script: Path, directory: Path, session: aiohttp.ClientSession) -> None:
        self._script = script
        self._directory = directory
        self._session = session
        port = os.environ.get("K8S_PORT") or str(free_ports(3))
        etcd = os.environ.get("K8S_ETCD_PORT") or str(free_ports(2))
        kueue = os.environ.get("KUEUE_PORT") or str(free_ports(3))
        ports = {"K8S_PORT": port, "K8S_ETCD_PORT": etcd, "KUEUE_PORT": kueue}
        self._environment = {**os.environ, "K8S_DIR": str(directory), **ports}
        self.port = int(port)
        self.url = f"https://127.0.0.1:{port}"
        self.kubeconfig = directory / "admin.kubeconfig"

    def target(self, *parts: str) -> Target:
        pids = {part: int((self._directory / f"{part}.pid").read_text()) for part in (*PARTS, *parts)}
        return Target(name="kube-apiserver", port=self.port, tls=True, token=_TOKEN, pids=pids)

    async def script(self, *arguments: str, name: str = "") -> None:
        """Run the script, or one beside it. The processes that it starts continue after its end."""
        script = self._script.with_name(name) if name else self._script
        log = self._directory / "script.log"
        self._directory.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *(str(script), *arguments), env=self._environment, stdout=output, stderr=output
            )
            async with asyncio.timeout(_STEP_SECONDS):
                status = await process.wait()
        if status:
            said = log.read_text()[-500:] if log.exists() else ""
            raise Unavailable(f"`{script.name} {' '.join(arguments)}` failed: {said}")

    async def start(self) -> None:
        await self.script("start")

    async def stop_controllers(self) -> None:
        for part in CONTROLLERS:
            if (self._directory / f"{part}.pid").exists():
                await self.script("kill", part)

    async def reset(self) -> None:
        await self.script("reset")

    async def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {_TOKEN}", "Content-Type": content_type}
        async with self._session.request(method, self.url + path, data=data, headers=headers, ssl=False) as response:
            answer = await response.json()
            if response.status >= 400:
                raise Unavailable(f"{method} {path}: {response.status} {answer.get('message')}")
            return answer

    async def lines(self, path: str) -> AsyncGenerator[bytes, None]:
        """The lines of a watch, until the server ends it."""
        headers = {"Authorization": f"Bearer {_TOKEN}"}
        endless = aiohttp.ClientTimeout(total=None)
        async with self._session.get(self.url + path, headers=headers, ssl=False, timeout=endless) as response:
            async for line in response.content:
                yield line

    async def requests(self) -> Counter[str]:
        """The number of requests since the API server started, by verb and resource, of all clients."""
        headers = {"Authorization": f"Bearer {_TOKEN}"}
        async with self._session.get(f"{self.url}/metrics", headers=headers, ssl=False) as response:
            return count_requests(await response.text())

    async def patch_status(self, namespace: str, pod: str, status: Mapping[str, Any]) -> None:
        await self.call("PATCH", f"/api/v1/namespaces/{namespace}/pods/{pod}/status", {"status": status}, _PATCH)

    async def ready_node(self, name: str) -> None:
        await self.call("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        await self.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}}, _PATCH)

    async def bind(self, namespace: str, pod: str, node: str) -> None:
        body = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
        await self.call("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", body)

    async def namespace(self, name: str) -> None:
        """Create a namespace, and wait for its service account, which pods need."""
        await self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        async with asyncio.timeout(30):
            while not (await self.call("GET", f"/api/v1/namespaces/{name}/serviceaccounts"))["items"]:  # noqa: ASYNC110 - the state of another program
                await asyncio.sleep(0.1)


def count_requests(metrics: str) -> Counter[str]:
    """Return how many requests an API server has counted in its metrics, by verb and resource."""
    found: Counter[str] = Counter()
    for line in metrics.splitlines():
        if line.startswith(_COUNTED):
            labels, _, value = line.removeprefix(_COUNTED).rpartition("} ")
            about = dict(_LABEL.findall(labels))
            subresource = f"/{about['subresource']}" if about["subresource"] else ""
            found[f"{about['verb']} {about['resource']}{subresource}"] += int(float(value))
    return found


def _check(script: Path) -> None:
    if not script.exists():
        raise Unavailable(f"there is no {script}: give another with --controlplane")


@asynccontextmanager
async def control_plane(script: Path, directory: Path) -> AsyncIterator[ControlPlane]:
    """Run a complete control plane during the block, and delete its state afterwards."""
    _check(script)
    timeout = aiohttp.ClientTimeout(total=20)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=64)) as session:
        plane = ControlPlane(script, directory, session)
        try:
            await plane.start()
            yield plane
        finally:
            await plane.reset()


@asynccontextmanager
async def kueue(plane: ControlPlane) -> AsyncIterator[None]:
    """Run Kueue on the control plane during the block."""
    try:
        try:
            await plane.script("start", name="kueue")
        except Unavailable:
            await plane.script("start", name="kueue")  # on a busy machine, its definitions have no status at first
        yield
    finally:
        await plane.script("kill", name="kueue")


@asynccontextmanager
async def node_agent(kubeconfig: Path, directory: Path, *, pods: int) -> AsyncIterator[int]:
    """Run a node agent that has room for so many pods. Yields its process id."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "devcluster.node", "--kubeconfig", str(kubeconfig), "--name", "node-1"),
        *("--data-dir", str(directory), "--pods", str(pods), "--cpu", "1000", "--memory", "1000Gi"),
        *("--pod-addresses", "loopback", "--parent", str(os.getpid())),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_NODE_SECONDS):
            if await process.stdout.readline() != b"NODE=node-1\n":
                raise Unavailable("the node agent did not start")
        yield process.pid
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
