"""A client of the API for tests, and manifests of jobs."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.support.waiting import until

TERMINAL = ("Succeeded", "Failed", "TimedOut", "Cancelled")
DEADLINE = 120.0


def job(name: str, script: str, *, replicas: int = 1, restart: Any = None, **spec: Any) -> dict[str, Any]:
    """Return a GenericJob with one task, `worker`, that runs a shell script."""
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": name},
        "spec": {
            "replicaSpecs": [
                {
                    "type": "worker",
                    "replicas": replicas,
                    "restartPolicy": restart or {"policy": "Never"},
                    "template": {"spec": {"terminationGracePeriodSeconds": 30, "containers": [container]}},
                }
            ],
            **spec,
        },
    }


class User:
    """Sends requests about the jobs of one namespace, and waits for phases."""

    def __init__(self, http: httpx2.AsyncClient, namespace: str, headers: Mapping[str, str] | None = None) -> None:
        self.http = http
        self.namespace = namespace
        self.jobs = f"/api/v1/namespaces/{namespace}/jobs"
        self.headers = dict(headers or {})

    async def call(self, method: str, path: str = "", status: int = 200, **given: Any) -> httpx2.Response:
        """Send a request to a path below the jobs of the namespace, and require the status of the answer."""
        headers = self.headers | dict(given.pop("headers", {}))
        answer = await self.http.request(method, self.jobs + path, headers=headers, **given)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    async def read(self, path: str) -> Any:
        return (await self.call("GET", path)).json()

    async def submit(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        created: dict[str, Any] = (await self.call("POST", status=201, json=manifest)).json()
        return created

    async def until(self, name: str, *phases: str, within: float = DEADLINE) -> dict[str, Any]:
        """Wait until the job is in one of these phases, and return its status. Fail if it ends in another phase."""

        async def status() -> dict[str, Any]:
            found: dict[str, Any] = (await self.read(f"/{name}/status"))["status"]
            assert found["phase"] in phases or found["phase"] not in TERMINAL, f"{name} has ended: {found}"
            return found

        return await until(status, lambda found: found["phase"] in phases, what=f"{name} is {phases}", within=within)

    async def ended(self, name: str) -> dict[str, Any]:
        return await self.until(name, *TERMINAL)

    async def history(self, name: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (await self.read(f"/{name}/history?pageSize=500"))["items"]
        return items


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    id: str
    name: str
    data: Any

    @property
    def phase(self) -> str:
        return str(self.data["object"]["status"]["phase"])

    @property
    def is_end(self) -> bool:
        return self.name == "job" and self.phase in TERMINAL


@asynccontextmanager
async def watching(
    user: User, path: str = "/api/v1/jobs/watch", after: str | None = None
) -> AsyncIterator[AsyncIterator[Event]]:
    """Open a stream of server-sent events."""
    headers = user.headers | ({"Last-Event-ID": after} if after else {})
    params = {"namespace": user.namespace} if path == "/api/v1/jobs/watch" else None
    async with user.http.stream("GET", path, headers=headers, params=params) as response:
        assert response.status_code == 200
        yield _events(response)


async def _events(response: httpx2.Response) -> AsyncIterator[Event]:
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            key, _, value = line.partition(":")
            fields[key] = value.strip()
        elif "event" in fields:
            yield Event(id=fields["id"], name=fields["event"], data=json.loads(fields["data"]))
            fields = {}
