"""A manifest of every registered kind, and the requests that all of them answer alike."""

from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from app.domain.kinds.base import JOBS
from app.domain.kinds.registry import SAMPLE_KINDS, all_kinds
from tests.support.gateways.gateway import Gateway
from tests.support.kinds import samples

EXAMPLES = Path(__file__).parents[3] / "examples"
PATCH = {"Content-Type": "application/merge-patch+json"}


@cache
def example(kind: str) -> dict[str, Any]:
    """The first shipped manifest of the kind, otherwise the example of its class."""
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if document and document.get("kind") == kind:
                found: dict[str, Any] = document
                return found
    return dict(SAMPLE_KINDS[kind].example)


class Collection:
    """The resource of one kind, in a namespace that no other test uses."""

    def __init__(self, gateway: Gateway, kind: str, document: dict[str, Any] | None = None) -> None:
        self.gateway = gateway
        self.kind = kind
        self.resource = all_kinds()[kind].resource
        self.namespace = f"ns-{uuid4().hex[:12]}"
        self._document = document or example(kind)

    def manifest(self, name: str = "one", **labels: str) -> dict[str, Any]:
        metadata = {"name": name} | ({"labels": labels} if labels else {})
        return {**self._document, "metadata": metadata}

    def path(self, *more: str) -> str:
        return "/".join([f"/api/v1/namespaces/{self.namespace}/{self.resource}", *more])

    def by_uid(self, uid: str, *more: str) -> str:
        return "/".join([f"/api/v1/{self.resource}/{uid}", *more])

    async def post(self, body: Any, query: str = "", **headers: str) -> Any:
        return await self.gateway.client.post(self.path() + query, json=body, headers=headers)

    async def submit(self, name: str = "one", **labels: str) -> dict[str, Any]:
        answer = await self.post(self.manifest(name, **labels))
        assert answer.status_code == 201, answer.text
        created: dict[str, Any] = answer.json()
        return created

    async def get(self, *more: str, query: str = "", **headers: str) -> Any:
        return await self.gateway.client.get(self.path(*more) + query, headers=headers)

    async def names(self, query: str = "") -> list[str]:
        answer = await self.get(query=query)
        assert answer.status_code == 200, answer.text
        return [item["name"] for item in answer.json()["items"]]

    async def patch(self, patch: Any, name: str = "one", **headers: str) -> Any:
        return await self.gateway.client.patch(self.path(name), json=patch, headers=PATCH | headers)

    async def conclude(self, uid: str, message: str) -> None:
        """Store another message in the status, as the controller does."""
        if self.resource == JOBS:
            await self.gateway.conclude(uid, {"message": message})
        else:
            await samples.conclude(self.gateway, uid, message=message)

    async def delete(self, name: str = "one", query: str = "", **headers: str) -> Any:
        return await self.gateway.client.delete(self.path(name) + query, headers=headers)


def list_of(*items: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}
