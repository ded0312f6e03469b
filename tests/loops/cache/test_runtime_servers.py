"""The client of runtime servers, by both ways and with any answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from app.domain.cache.manifests import service
from app.domain.cache.reconcile.cache_status import ServerReport
from app.domain.cache.reconcile.progress import ServerProgress
from app.domain.cache.reconcile.values import ServerAnswer
from app.domain.cache.vocabulary import JobType, ServerJobState
from app.k8s.api import KubeApi
from app.k8s.session.transport import ClusterEndpoint
from app.loops.cache import runtime_servers
from app.loops.cache.runtime_servers import (
    NoAnswer,
    PodAccess,
    PodAddressAccess,
    PodProxyAccess,
    RuntimeServer,
    RuntimeServers,
)

R = ServerJobState
SILENT = "no answer comes"
IMPATIENCE = 0.5  # seconds for a server that does not answer
PATIENCE = 60.0  # seconds for these on a busy machine
PROXY = "/api/v1/namespaces/team/pods/s-runtime-1:7716/proxy"
SERVER = RuntimeServer(index=1, namespace="team", pod="s-runtime-1", node="n1", address="127.0.0.1", token="t0k3n")


@dataclass
class World:
    """One port that serves both as the pod and as the API server's proxy to it."""

    answers: dict[str, Any] = field(default_factory=dict)
    seen: list[tuple[str, str, str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        path = request.path_qs.removeprefix(PROXY)
        header = request.headers.get
        self.seen.append((request.method, path, header("X-Jobgate-Token", ""), header("filename", "")))
        self.bodies.append(await request.read())
        answer = self.answers.get(f"{request.method} {path}", self.answers.get("*", 404))
        if answer == SILENT:
            await self.over.wait()
            answer = 200
        if isinstance(answer, int):
            return web.Response(status=answer, text="there is no such file\n")
        if isinstance(answer, tuple):
            return web.json_response(answer[1], status=answer[0])
        if isinstance(answer, bytes):
            return web.Response(body=answer)
        return web.json_response(answer)


@pytest.fixture
def world() -> World:
    return World()


@pytest_asyncio.fixture(params=["pod-proxy", "pod-address"])
async def servers(
    request: pytest.FixtureRequest, world: World, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RuntimeServers]:
    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", world.serve)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    access: PodAccess
    api = KubeApi(ClusterEndpoint(url=f"http://127.0.0.1:{port}"))
    if request.param == "pod-proxy":
        access = PodProxyAccess(api)
    else:
        access = PodAddressAccess()
        monkeypatch.setattr(runtime_servers, "PORT", port)
    yield RuntimeServers(access, timeout=PATIENCE)
    world.over.set()
    await access.close()
    await api.close()
    await runner.cleanup()


def status(kind: int, reason: str) -> tuple[int, dict[str, Any]]:
    """Return an error of the API server itself."""
    return kind, {"kind": "Status", "apiVersion": "v1", "code": kind, "reason": reason, "message": "no such pod"}


RESULT, OPTIONS = "GET /warmupResult/j", "GET /warmupOptions/j"
ANSWERS: list[tuple[dict[str, Any], ServerJobState, str]] = [
    ({RESULT: {"status": "running", "message": ""}}, R.RUNNING, ""),
    ({RESULT: {"status": "success", "message": "3 left out"}}, R.SUCCESS, "3 left out"),
    ({RESULT: {"status": "fail", "message": "a\x00b"}}, R.FAIL, "a\N{REPLACEMENT CHARACTER}b"),
    ({OPTIONS: {"paths": []}}, R.WAITING, ""),
    ({}, R.NOT_POSTED, ""),
    ({RESULT: {"status": "odd"}}, R.UNKNOWN, ""),
    ({RESULT: [1]}, R.UNKNOWN, ""),
    ({RESULT: b"{"}, R.UNKNOWN, ""),
    ({RESULT: 500}, R.UNKNOWN, ""),
    ({RESULT: 401}, R.UNKNOWN, ""),
    ({RESULT: 302}, R.UNKNOWN, ""),
    ({OPTIONS: 503}, R.UNKNOWN, ""),
    ({RESULT: SILENT}, R.UNKNOWN, ""),
    ({RESULT: b'{"status": "fail", "message": "' + b"x" * 2**21 + b'"}'}, R.UNKNOWN, ""),
]


@pytest.mark.parametrize(("answers", "expected", "message"), ANSWERS)
async def test_the_state_of_a_job_on_a_server(
    servers: RuntimeServers, world: World, answers: dict[str, Any], expected: ServerJobState, message: str
) -> None:
    world.answers = answers
    servers.timeout = IMPATIENCE if SILENT in answers.values() else PATIENCE
    found = await servers.answers([SERVER], JobType.WARMUP, "j")
    assert found == (ServerAnswer(index=1, status=expected, message=message),)
    assert {token for _, _, token, _ in world.seen} == {"t0k3n"}


PROGRESS: list[tuple[Any, ServerProgress | None]] = [
    ({"filesDone": 3, "filesTotal": 5, "bytesDone": 7}, ServerProgress(files_done=3, files_total=5, bytes_done=7)),
    ({"filesDone": 3, "filesTotal": None, "later": 1}, ServerProgress(files_done=3)),
    ({"filesDone": -1}, None),
    ({"filesDone": 2**60}, None),
    ({"filesDone": "3"}, None),
    ([3], None),
    (None, None),
]


@pytest.mark.parametrize(("reported", "wanted"), PROGRESS)
async def test_the_progress_of_a_job_on_a_server_never_spoils_its_state(
    servers: RuntimeServers, world: World, reported: Any, wanted: ServerProgress | None
) -> None:
    world.answers = {RESULT: {"status": "running", "message": "", "progress": reported}}
    found = await servers.answers([SERVER], JobType.WARMUP, "j")
    assert found == (ServerAnswer(index=1, status=R.RUNNING, progress=wanted),)


@pytest.mark.parametrize("servers", ["pod-proxy"], indirect=True)
async def test_a_missing_pod_is_not_a_server_without_the_job(world: World, servers: RuntimeServers) -> None:
    """Only the API server, which is the proxy, knows that a pod is missing."""
    for answer in (status(404, "NotFound"), status(503, "ServiceUnavailable"), status(403, "Forbidden")):
        world.answers = {"*": answer}
        found = await servers.answers([SERVER], JobType.WARMUP, "j")
        assert found[0].status is R.UNKNOWN
        with pytest.raises(NoAnswer, match="no such pod"):
            await servers.post(SERVER, JobType.WARMUP, "j", b"{}")


async def test_a_pod_without_an_address_does_not_answer() -> None:
    servers = RuntimeServers(PodAddressAccess(), timeout=PATIENCE)
    found = await servers.answers([replace(SERVER, address="")], JobType.WARMUP, "j")
    assert found[0].status is R.UNKNOWN


REPORTED: list[tuple[Any, Callable[[ServerReport | None], bool]]] = [
    (
        {"totalSize": "10", "totalFiles": "2", "cachedSize": "5", "diskUsed": 7, "errorMassage": "x"},
        lambda found: (
            found == ServerReport(node="n1", total_size="10", total_files="2", cached_size="5", error_message="x")
        ),
    ),
    ({}, lambda found: found == ServerReport(node="n1")),
    (404, lambda found: found is None),
    (500, lambda found: found is None),
    (b"[]", lambda found: found is None),
    (SILENT, lambda found: found is None),
]


@pytest.mark.parametrize(("answer", "holds"), REPORTED)
async def test_the_cache_report_of_a_server(servers: RuntimeServers, world: World, answer: Any, holds: Any) -> None:
    world.answers = {"GET /cacheStatus/cacheInfo.json": answer}
    servers.timeout = IMPATIENCE if answer == SILENT else PATIENCE
    (found,) = await servers.reports([SERVER])
    assert holds(found)


async def test_a_job_is_posted_once(servers: RuntimeServers, world: World) -> None:
    world.answers = {"POST /upload/syncOptions": 200}
    await servers.post(SERVER, JobType.SYNC, "j", b'{"source": "s3://ak:sk@b"}')
    assert world.seen[-1] == ("POST", "/upload/syncOptions", "t0k3n", "j")
    assert world.bodies[-1] == b'{"source": "s3://ak:sk@b"}'
    world.answers = {"GET /syncOptions/j": {}}
    await servers.post(SERVER, JobType.SYNC, "j", b"{}")
    assert world.seen[-1][0] == "GET"


@pytest.mark.parametrize("answer", [400, 401, 409, 500, SILENT, status(503, "ServiceUnavailable")])
async def test_a_refused_post_is_reported_without_its_body(servers: RuntimeServers, world: World, answer: Any) -> None:
    world.answers = {"POST /upload/syncOptions": answer, "POST /upload/clearOptions?terminate=true": answer}
    servers.timeout = IMPATIENCE if answer == SILENT else PATIENCE
    with pytest.raises(NoAnswer) as failure:
        await servers.post(SERVER, JobType.SYNC, "j", b'{"source": "s3://ak:sk@b"}')
    assert "sk@" not in str(failure.value)
    with pytest.raises(NoAnswer):
        await servers.terminate(SERVER)


async def test_terminate_is_one_request(servers: RuntimeServers, world: World) -> None:
    world.answers = {"POST /upload/clearOptions?terminate=true": 200}
    await servers.terminate(SERVER)
    assert world.seen == [("POST", "/upload/clearOptions?terminate=true", "t0k3n", "terminate")]


def test_secrets_are_not_shown() -> None:
    assert "t0k3n" not in repr(SERVER)
    assert service.PORT == 7716
