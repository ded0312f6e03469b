"""Runs the node agent as a process of its own and pods on it."""

import json
import os
import secrets
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.waiting import until

QUICK = ("--backoff-base", "1", "--retry", "0.2", "--configmap-refresh", "0.5", "--lease-interval", "1", "--cordoned")
SCRIPT = "devcluster.jobgate.dev/script"


class Node:
    def __init__(self, cluster: Cluster, data_dir: Path, *arguments: str, path: str | None = None) -> None:
        self.name = f"node-{secrets.token_hex(4)}"
        self._environment = None if path is None else os.environ | {"PATH": path}
        self.data_dir = data_dir
        self._command = [sys.executable, "-m", "devcluster.node", "--kubeconfig", str(cluster.kubeconfig)]
        self._command += ["--name", self.name, "--data-dir", str(data_dir), *QUICK, *arguments]
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> "Node":
        self.process = subprocess.Popen(self._command, env=self._environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], 120)
        line = self.process.stdout.readline() if ready else ""
        assert line == f"NODE={self.name}\n", line
        return self

    def stop(self, *, kill: bool = False) -> None:
        if self.process is None:
            return
        (self.process.kill if kill else self.process.terminate)()
        self.process.wait(120)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None

    async def remove(self, api: KubeClient) -> None:
        """End the agent and take its Node away, so that a cluster that outlives the tests stays clean."""
        self.stop()
        await api.delete(f"/api/v1/nodes/{self.name}")


class Pods:
    """Makes pods on one node in one namespace, and waits for what becomes of them."""

    def __init__(self, api: KubeClient, namespace: str, node: Node) -> None:
        self.api = api
        self.base = f"/api/v1/namespaces/{namespace}"
        self.namespace = namespace
        self.node = node

    async def create(self, name: str, *containers: dict[str, Any], script: Any = None, **spec: Any) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": name, "labels": {"app": name, "group": "test"}}
        if script is not None:
            metadata["annotations"] = {SCRIPT: json.dumps(script)}
        body = {
            "metadata": metadata,
            "spec": {
                "nodeName": self.node.name,
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "containers": list(containers),
                **spec,
            },
        }
        created: dict[str, Any] = (await self.api.post(f"{self.base}/pods", body)).ok()
        return created

    async def until(self, name: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        found: dict[str, Any] = await self.api.eventually(f"{self.base}/pods/{name}", wanted)
        return found

    async def ended(self, name: str) -> dict[str, Any]:
        return await self.until(name, lambda pod: pod["status"]["phase"] in ("Succeeded", "Failed"))

    async def running(self, name: str) -> dict[str, Any]:
        return await self.until(name, lambda pod: "running" in state(pod) and pod["status"]["phase"] == "Running")

    async def begun(self, name: str) -> dict[str, Any]:
        """Running, or ended already."""
        return await self.until(name, lambda pod: bool({"running", "terminated"} & state(pod).keys()))

    async def logged(self, name: str, words: str, **params: str) -> None:
        await until(
            lambda: self.api.get(f"{self.base}/pods/{name}/log", **params),
            lambda answer: words in str(answer.body),
            what=f"{words!r} in the log of {name}",
            within=120,
        )

    async def log(self, name: str, **params: str) -> str:
        return str((await self.api.get(f"{self.base}/pods/{name}/log", **params)).ok())

    async def delete(self, name: str, **options: Any) -> None:
        (await self.api.delete(f"{self.base}/pods/{name}", options or None)).ok()

    async def gone(self, name: str) -> None:
        await self.api.gone(f"{self.base}/pods/{name}")


def shell(script: str, name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "busybox", "command": ["sh", "-c", script], **more}


def python(program: str, name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "python:3.11", "command": ["python3", "-c", program], **more}


def status_of(pod: dict[str, Any], container: str = "main") -> dict[str, Any]:
    status = pod.get("status") or {}
    everyone = (status.get("containerStatuses") or []) + (status.get("initContainerStatuses") or [])
    return next((entry for entry in everyone if entry["name"] == container), {"state": {}})


def state(pod: dict[str, Any], container: str = "main") -> dict[str, Any]:
    found: dict[str, Any] = status_of(pod, container)["state"]
    return found


def condition(pod: dict[str, Any], kind: str) -> dict[str, Any]:
    return next((c for c in pod["status"].get("conditions") or [] if c["type"] == kind), {"status": "Missing"})


async def events(pods: Pods, pod: dict[str, Any], reason: str) -> list[str]:
    """Messages of the pod's events with this reason, once there is one."""

    def matching(found: Any) -> list[str]:
        uid = pod["metadata"]["uid"]
        mine = (e for e in found["items"] if e["involvedObject"].get("uid") == uid and e["reason"] == reason)
        return [event["message"] for event in mine]

    return matching(await pods.api.eventually(f"{pods.base}/events", lambda found: bool(matching(found))))
