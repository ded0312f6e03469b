"""A gateway requires tokens by default, and a token grants its role in its namespaces only."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from app.demo import run
from app.demo.stories import STORIES
from tests.e2e.user import User, job
from tests.support.clusters.kube import KubeClient
from tests.support.gateways.bearer import bearer
from tests.support.gateways.process import GatewayProcess, answering

OPEN_ROUTES = ("/livez", "/readyz", "/readyz?verbose", "/metrics", "/openapi.json")


@pytest_asyncio.fixture
async def closed(own_gateway: GatewayProcess) -> AsyncIterator[httpx2.AsyncClient]:
    url = await own_gateway.start({"JOBGATE_OPEN_ACCESS": "false"})
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
        yield client


async def test_only_health_routes_work_without_a_token(closed: httpx2.AsyncClient, namespace: str) -> None:
    unauthenticated = User(closed, namespace)
    for method, path in (("GET", ""), ("GET", "/any"), ("POST", ""), ("DELETE", "/any"), ("GET", "/any/logs")):
        refused = await unauthenticated.call(method, path, 401)
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")
        assert refused.json()["status"] == 401
    for path in ("/api/v1/jobs", "/api/v1/jobs/watch", "/api/v1/kinds"):
        assert (await closed.get(path)).status_code == 401, path
    wrong = User(closed, namespace, {"Authorization": "Bearer jg_wrong"})
    assert (await wrong.call("GET", "", 401)).json()["code"] == "InvalidToken"
    for path in OPEN_ROUTES:
        assert (await answering(closed, path)).status_code == 200, path


async def test_a_token_is_restricted_by_role_and_namespaces(
    closed: httpx2.AsyncClient, namespace: str, database_url: str
) -> None:
    submitter = User(closed, namespace, await bearer(database_url, "submitter", namespace))
    viewer = User(closed, namespace, await bearer(database_url, "viewer", namespace))
    elsewhere = User(closed, namespace, await bearer(database_url, "admin", "another-namespace"))
    admin = User(closed, namespace, await bearer(database_url, "admin", "*"))

    made = await submitter.submit(job("mine", "echo done"))
    assert made["createdBy"] == "a submitter"
    await viewer.ended("mine")
    assert (await viewer.call("GET", "/mine/logs")).text == "done\n"
    assert {entry["actor"] for entry in await viewer.history("mine")} >= {"a submitter"}

    await viewer.call("POST", "", 403, json=job("not-mine", "true"))
    for method, path in (("DELETE", "/mine"), ("POST", "/mine/cancel"), ("POST", "/mine/retry")):
        await viewer.call(method, path, 403)

    for method, path in (("GET", ""), ("GET", "/mine"), ("GET", "/mine/watch"), ("DELETE", "/mine"), ("POST", "")):
        await elsewhere.call(method, path, 404)
    for path in (f"/api/v1/jobs/{made['uid']}", f"/api/v1/jobs/{made['uid']}/logs"):
        assert (await closed.get(path, headers=elsewhere.headers)).status_code == 404
    assert (await closed.get("/api/v1/jobs", headers=elsewhere.headers)).json()["items"] == []
    assert [item["name"] for item in (await closed.get("/api/v1/jobs", headers=admin.headers)).json()["items"]] == [
        "mine"
    ]
    await admin.call("POST", "/mine/retry", 201, json={"name": "by-admin"})
    await admin.call("DELETE", "/by-admin", 202)


async def test_served_namespaces_can_be_restricted(own_gateway: GatewayProcess, namespace: str) -> None:
    url = await own_gateway.start({"JOBGATE_NAMESPACES": namespace})
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
        user = User(client, namespace)
        await user.submit(job("here", "true"))
        assert (await user.ended("here"))["phase"] == "Succeeded"
        await User(client, "default").call("POST", "", 404, json=job("there", "true"))


async def test_the_controller_leaves_jobs_of_a_reserved_namespace_alone(
    own_gateway: GatewayProcess, namespace: str, api: KubeClient
) -> None:
    """A job that was accepted before its namespace was reserved gets no objects. A job elsewhere runs to its end."""
    url = await own_gateway.start({"JOBGATE_ROLE": "api"})
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
        await User(client, namespace).submit(job("before", "true"))
    await own_gateway.stop()
    await own_gateway.start({"JOBGATE_RESERVED_NAMESPACES": namespace})
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
        await User(client, namespace).call("POST", "", 404, json=job("after", "true"))
        await User(client, namespace).call("GET", "/before", 404)
        other = User(client, "default")
        try:
            await other.submit(job("elsewhere", "true"))
            assert (await other.ended("elsewhere"))["phase"] == "Succeeded"
        finally:
            await other.call("DELETE", "/elsewhere", 202)
    for objects in ("pods", "services"):
        assert (await api.get(f"/api/v1/namespaces/{namespace}/{objects}")).body["items"] == []


async def test_the_demo_plays_against_a_running_gateway_with_a_token(
    closed: httpx2.AsyncClient,
    namespace: str,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As the service `demo` of docker-compose.yml does. One story is enough; tests/e2e/test_stories.py plays all."""
    monkeypatch.setattr(run, "NAMESPACE", namespace)
    monkeypatch.setattr(run, "STORIES", [story for story in STORIES if story.file == "generic-job/failing.yaml"])
    token = (await bearer(database_url, "submitter", namespace))["Authorization"].removeprefix("Bearer ")
    assert await run.play_against(str(closed.base_url), token, asyncio.Event()) == 0
    assert "ok failing" in capsys.readouterr().out
    assert await run.play_against(str(closed.base_url), None, asyncio.Event()) == 1
    assert "returned 401" in capsys.readouterr().out
