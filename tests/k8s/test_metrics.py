"""Every request to the API server is counted by its verb and the status of its answer."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

import pytest
from aiohttp import web

from app.k8s import resources
from app.k8s.api import KubeApi, PodRequest
from app.k8s.codec import OBJECT, POD
from app.k8s.errors import KubeError
from app.k8s.logs import read_log
from tests.k8s.support import api_of, pod_manifest
from tests.support.telemetry.metrics import value


async def get(api: KubeApi) -> None:
    await api.get(resources.POD, "a", "ns", codec=OBJECT)


async def list_(api: KubeApi) -> None:
    await api.list_page(resources.POD, codec=POD)


async def create(api: KubeApi) -> None:
    await api.create(pod_manifest("a", "ns"))


async def check(api: KubeApi) -> None:
    await api.check_create(pod_manifest("a", "ns"))


async def patch(api: KubeApi) -> None:
    await api.merge_patch(resources.POD, "a", "ns", patch={})


async def delete(api: KubeApi) -> None:
    await api.delete(resources.POD, "a", "ns", uid="u")


async def watch(api: KubeApi) -> None:
    stream = api.watch(resources.POD, codec=POD, resource_version="5", timeout_seconds=300, idle=60)
    async with aclosing(stream):
        async for _ in stream:
            pass


async def log(api: KubeApi) -> None:
    pieces = read_log(api, "ns", "a", "main", tail_lines=5)
    async with aclosing(pieces):
        async for _ in pieces:
            pass


async def proxy(api: KubeApi) -> None:
    request = PodRequest(method="POST", namespace="ns", pod="a", port=80, path="x")
    await api.ask_pod(request, most=10, timeout=60)


@pytest.mark.parametrize(
    ("call", "verb"),
    [
        (get, "get"),
        (list_, "list"),
        (create, "create"),
        (check, "create"),
        (patch, "patch"),
        (delete, "delete"),
        (watch, "watch"),
        (log, "log"),
        (proxy, "proxy"),
    ],
)
@pytest.mark.parametrize(("status", "code"), [(200, "200"), (404, "404"), (599, "other"), (None, "none")])
async def test_a_request_is_counted(
    call: Callable[[KubeApi], Awaitable[None]], verb: str, status: int | None, code: str
) -> None:
    async def handler(request: web.Request) -> web.Response:
        await request.read()
        if status is None:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response({"metadata": {"uid": "u"}, "items": []}, status=status or 200)

    counted, measured = {"verb": verb, "code": code}, "jobgate_cluster_request_duration_seconds_count"
    before = value("jobgate_cluster_requests_total", **counted), value(measured, verb=verb)
    async with api_of(handler) as api:
        # A stream of objects without a type, and an answer that is not of its resource, end with an error after it.
        with suppress(KubeError):
            await call(api)
    assert value("jobgate_cluster_requests_total", **counted) == before[0] + 1
    assert value(measured, verb=verb) == before[1] + 1
