"""Sample sets for the tests of the dashboard. They have no Secret, so they wait for it."""

from typing import Any

from tests.dashboard.conftest import NAMESPACE
from tests.e2e.user import User

API = f"/api/v1/namespaces/{NAMESPACE}"
VERSION = "batch.paddlepaddle.org/v1alpha1"


async def create(user: User, resource: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    manifest = {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
    answer = await user.http.post(f"{API}/{resource}", json=manifest, headers=user.headers)
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


async def create_set(user: User, name: str) -> dict[str, Any]:
    spec = {"partitions": 2, "noSync": True, "secretRef": {"name": "missing"}}
    return await create(user, "samplesets", "SampleSet", name, spec)
