"""A server that misbehaves over real HTTP, and what comes of it."""

import asyncio
import json
import time
from contextlib import aclosing
from dataclasses import replace

import pytest
from aiohttp import web

from app.base.clock import SystemClock
from app.domain.kubernetes.objects import Pod
from app.k8s import resources
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT, POD
from app.k8s.errors import (
    AmbiguousResult,
    BrokenAnswer,
    KubeError,
    KubeGone,
    KubeServerError,
    KubeStatusError,
    KubeTooManyRequests,
    KubeUnauthorized,
    SilentStream,
    Unreachable,
)
from app.k8s.logs import read_log
from app.k8s.session.transport import ClusterEndpoint
from app.k8s.session.watch_events import WatchEvent, WatchEventType
from app.k8s.watching.reflector import Reflector, ResourceSource
from app.k8s.watching.store import ReflectorStore, by_label
from tests.k8s.support import LIMITS, api_of, pod_manifest, serve
from tests.support.waiting import until

HASTY = replace(LIMITS, request=0.5)


def line(event_type: str, uid: str, version: int, **status: str) -> bytes:
    metadata = {"name": uid, "namespace": "ns", "uid": uid, "resourceVersion": str(version), "labels": {"job": "j"}}
    return json.dumps({"type": event_type, "object": {"metadata": metadata, "status": status}}).encode() + b"\n"


async def send(request: web.Request, *pieces: bytes) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece)
    return response


def cut(request: web.Request) -> None:
    """Drops the connection as a crash does."""
    assert request.transport is not None
    request.transport.abort()


async def watched(api: KubeApi, idle: float = 60.0) -> tuple[list[WatchEvent[Pod]], KubeError | None]:
    """The events of one watch, and how it ended."""
    events: list[WatchEvent[Pod]] = []
    stream = api.watch(resources.POD, codec=POD, resource_version="5", timeout_seconds=300, idle=idle)
    try:
        async with aclosing(stream):
            async for event in stream:
                events.append(event)  # noqa: PERF401 - those before the error are wanted
    except KubeError as error:
        return events, error
    return events, None


async def create(api: KubeApi) -> None:
    await api.create(pod_manifest("a", "ns"))


async def test_requests_have_the_required_headers_and_parameters() -> None:
    seen: list[tuple[str, str, dict[str, str], bytes]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.method, request.raw_path.split("?")[0], dict(request.query), await request.read()))
        return web.json_response({"metadata": {"uid": "u"}, "items": []})

    async with api_of(handler) as api:
        await api.create(pod_manifest("a", "ns"), dry_run=True)
        await api.delete(resources.POD, "a/../b", "ns", uid="u", grace_period=0)
        await api.list_page(resources.POD, codec=POD, label_selector="a=b,c in (d,e+f)", limit=7, continue_token="t&")
    method, path, query, _ = seen[0]
    assert (method, path, query) == (
        "POST",
        "/api/v1/namespaces/ns/pods",
        {"fieldValidation": "Strict", "dryRun": "All"},
    )
    method, path, _, body = seen[1]
    assert (method, path) == ("DELETE", "/api/v1/namespaces/ns/pods/a%2F..%2Fb")
    assert json.loads(body)["preconditions"] == {"uid": "u"}
    assert json.loads(body)["gracePeriodSeconds"] == 0
    assert seen[2][2] == {"labelSelector": "a=b,c in (d,e+f)", "limit": "7", "continue": "t&"}


async def test_429_carries_retry_after() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=429, text="Too many requests, please try again later.", headers={"Retry-After": "3"})

    async with api_of(handler) as api:
        with pytest.raises(KubeTooManyRequests) as refused:
            await create(api)
    assert refused.value.retry_after == 3.0


async def test_a_lost_answer_to_a_write_is_ambiguous_and_to_a_read_is_not() -> None:
    async def handler(request: web.Request) -> web.Response:
        await request.read()
        cut(request)
        return web.Response()

    async with api_of(handler) as api:
        with pytest.raises(AmbiguousResult):
            await create(api)
        with pytest.raises(Unreachable) as read:
            await api.get(resources.POD, "a", "ns", codec=POD)
    assert not isinstance(read.value, AmbiguousResult)


async def test_a_slow_answer_times_out_and_a_write_is_ambiguous() -> None:
    never = asyncio.Event()

    async def handler(_: web.Request) -> web.Response:
        await never.wait()
        return web.Response()

    async with api_of(handler, HASTY) as api:
        with pytest.raises(AmbiguousResult):
            await create(api)
        with pytest.raises(Unreachable):
            await api.get(resources.POD, "a", "ns", codec=POD, timeout=0.05)


class Freezing:
    """Credentials whose reader is frozen for longer than a request of `HASTY` may take."""

    async def authorization(self) -> str | None:
        _freeze()
        return None

    async def renew(self) -> bool:
        return False


def _freeze() -> None:
    time.sleep(HASTY.request + 0.1)


async def test_a_write_that_is_late_because_the_process_was_frozen_is_not_sent() -> None:
    received: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        received.append(request.method)
        return web.Response()

    async with serve(handler) as url, KubeApi(ClusterEndpoint(url=url, credentials=Freezing()), HASTY) as api:
        with pytest.raises(AmbiguousResult, match="not sent within its timeout"):
            await create(api)
        with pytest.raises(AmbiguousResult, match="not sent within its timeout"):
            await api.delete(resources.POD, "a", "ns", uid="u")
    assert not received


async def test_a_write_that_waited_for_a_connection_is_not_sent_late() -> None:
    received: list[str] = []
    release = asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        received.append(request.method)
        await release.wait()
        return web.json_response({})

    async def freeze_once_free() -> None:
        await api.get_raw("/version")
        _freeze()

    async def write_late() -> None:
        with pytest.raises(AmbiguousResult):
            await create(api)

    async with api_of(handler, replace(HASTY, connections=1)) as api, asyncio.TaskGroup() as group:
        group.create_task(freeze_once_free())
        await until(lambda: received)
        group.create_task(write_late())
        await asyncio.sleep(0)
        release.set()
    assert received == ["GET"]


async def test_a_truncated_body_is_no_answer() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"metadata":')
        cut(request)
        return response

    async with api_of(handler) as api:
        with pytest.raises(AmbiguousResult):
            await create(api)


async def test_a_refused_connection_is_unreachable_and_not_ambiguous() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response()

    async with serve(handler) as url:
        pass
    async with KubeApi(ClusterEndpoint(url=url), LIMITS) as api:
        with pytest.raises(Unreachable) as refused:
            await create(api)
    assert not isinstance(refused.value, AmbiguousResult)


@pytest.mark.parametrize("status", [200, 502])
async def test_the_page_of_a_proxy_is_a_broken_answer(status: int) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=status, text="<html>sign in</html>", content_type="text/html")

    async with api_of(handler) as api:
        with pytest.raises(BrokenAnswer if status == 200 else KubeServerError):
            await api.get(resources.POD, "a", "ns", codec=OBJECT)


async def test_redirects_are_not_followed() -> None:
    async def handler(_: web.Request) -> web.Response:
        raise web.HTTPFound("http://127.0.0.1:1/")

    async with api_of(handler) as api:
        with pytest.raises(KubeStatusError) as moved:
            await api.get_raw("/version")
    assert moved.value.status == 302


async def test_a_line_of_two_megabytes_and_lines_in_pieces() -> None:
    big = line("ADDED", "a", 6, message="x" * 2_000_000)
    rest = line("MODIFIED", "a", 7, phase="Running") + line("BOOKMARK", "", 9)

    async def handler(request: web.Request) -> web.StreamResponse:
        return await send(request, big, rest[:10], rest[10:150], rest[150:])

    async with api_of(handler) as api:
        events, error = await watched(api)
    assert error is None
    assert [event.type for event in events] == [WatchEventType.ADDED, WatchEventType.MODIFIED, WatchEventType.BOOKMARK]
    assert len(events[0].object.status.message) == 2_000_000
    assert events[1].object.status.phase == "Running"


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (line("MODIFIED", "a", 7)[:40], BrokenAnswer),
        (b"<html>bad gateway</html>\n", BrokenAnswer),
        (b'{"type":"SURPRISE","object":{}}\n', BrokenAnswer),
        (b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n', KubeGone),
        (b'{"type":"ERROR","object":{"kind":"Status","code":500,"reason":"InternalError"}}\n', KubeServerError),
        (b'{"type":"ERROR","object":null}\n', KubeServerError),
        (b"x" * (2**23 + 1), BrokenAnswer),
    ],
)
async def test_the_error_at_the_end_of_a_watch(last: bytes, expected: type[KubeError]) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return await send(request, line("ADDED", "a", 6), last)

    async with api_of(handler) as api:
        events, error = await watched(api)
    assert [event.object.metadata.uid for event in events] == ["a"]
    assert type(error) is expected


async def test_silence_ends_a_watch_and_a_log() -> None:
    never = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = await send(request, line("ADDED", "a", 6))
        await never.wait()
        return response

    async with api_of(handler) as api:
        events, error = await watched(api, idle=1.0)
    assert len(events) == 1
    assert isinstance(error, SilentStream)


async def test_a_reset_in_a_watch() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = await send(request, line("ADDED", "a", 6))
        cut(request)
        return response

    async with api_of(handler) as api:
        _, error = await watched(api)
    assert isinstance(error, Unreachable)


async def test_a_log_is_bytes_as_written() -> None:
    asked: dict[str, str] = {}

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.update(request.query)
        return await send(request, b"a\x00b\xff", b"\n")

    async with api_of(handler) as api:
        log = read_log(api, "ns", "p", "c", previous=True, tail_lines=5, limit_bytes=9, timestamps=True)
        assert b"".join([piece async for piece in log]) == b"a\x00b\xff\n"
    expected = {"container": "c", "previous": "true", "timestamps": "true", "tailLines": "5", "limitBytes": "9"}
    assert asked == {**expected, "follow": "false"}


class Rotating:
    """Credentials of which only the newest are valid."""

    def __init__(self, newest: int) -> None:
        self.current = 0
        self.newest = newest

    async def authorization(self) -> str:
        return f"Bearer {self.current}"

    async def renew(self) -> bool:
        if self.current == self.newest:
            return False
        self.current += 1
        return True


@pytest.mark.parametrize(("newest", "valid"), [(1, True), (0, False)])
async def test_refused_credentials_are_renewed_once(newest: int, valid: bool) -> None:  # noqa: FBT001 - a table
    async def handler(request: web.Request) -> web.Response:
        if request.headers["Authorization"] != "Bearer 1":
            return web.json_response({"kind": "Status", "code": 401, "reason": "Unauthorized"}, status=401)
        return web.json_response({"major": "1"})

    async with serve(handler) as url, KubeApi(ClusterEndpoint(url=url, credentials=Rotating(newest)), LIMITS) as api:
        if valid:
            assert await api.get_raw("/version") == {"major": "1"}
        else:
            with pytest.raises(KubeUnauthorized):
                await api.get_raw("/version")


async def test_a_reflector_recovers_from_every_fault() -> None:
    """A list, a cut watch, a 429, a watch that goes on where the first was cut, a 410 and the list after it."""
    watches: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            pods = [json.loads(line("", uid, 5 + len(watches)))["object"] for uid in ("a", "b")[len(watches) // 3 :]]
            return web.json_response({"metadata": {"resourceVersion": str(10 + len(watches))}, "items": pods})
        watches.append(request.query["resourceVersion"])
        match len(watches):
            case 1:
                return await send(request, line("ADDED", "c", 11), line("ADDED", "d", 12)[:30])
            case 2:
                return web.Response(status=429, headers={"Retry-After": "0"})
            case 3:
                expired = b'{"type":"ERROR","object":{"code":410,"reason":"Expired"}}\n'
                return await send(request, line("DELETED", "c", 12), expired)
            case _:
                response = await send(request, line("ADDED", "e", 20))
                await over.wait()
                return response

    over = asyncio.Event()
    store = ReflectorStore[Pod](by_label("job"), lambda _: None)
    async with api_of(handler) as api:
        reflector = Reflector[Pod](
            ResourceSource(api, resources.POD, POD), store, SystemClock(), sleep=lambda _: asyncio.sleep(0)
        )
        async with asyncio.TaskGroup() as group:
            running = group.create_task(reflector.run())
            await until(lambda: store.get("e") is not None)
            running.cancel()
        over.set()
    assert watches == ["10", "11", "11", "13"]
    assert {pod.metadata.uid for pod in store.all()} == {"b", "e"}
    assert reflector.stats.relists == 2
