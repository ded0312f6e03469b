"""Streams, long polls and logs end with their token, their client or the process, and their number is limited."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
import pytest_asyncio
from typing_extensions import override

from app.api.long_requests import responses
from app.db.installation import tokens
from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, Replica
from app.services.limits.long_request_limits import LongRequestLimits
from app.services.logs.containers import LogReader, LogRequest
from tests.support.documents.openapi import committed_document
from tests.support.gateways.gateway import (
    NAMESPACE,
    Gateway,
    jobs_path,
    manifest,
    running_gateway,
    until_followed,
    until_open,
)
from tests.support.kinds.samples import JOBS, SETS, path, sample
from tests.support.postgres import fresh_database

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).parents[3]
QUICK = LongRequestLimits(total=8, per_token=5, logs=3, recheck=0.05)
JSON = {"Content-Type": "application/json"}


class EndlessLog(LogReader):
    """A log that sends one line to a follower, and then nothing more."""

    def __init__(self) -> None:
        self.followers = 0

    @override
    async def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        yield b"begin\n"
        if request.follow:
            self.followers += 1
            try:
                await asyncio.Event().wait()
            finally:
                self.followers -= 1


LOG = EndlessLog()

Uids = dict[str, str]
"""The uid of one object of each resource, by the name of the resource."""


@dataclass(frozen=True)
class Route:
    """A route of long-running requests; `kind` is `stream`, `poll` or `log`."""

    kind: str
    path: str

    def url(self, uids: Uids) -> str:
        """Return the URL of the object that `served` has created in the resource of this route."""
        (resource,) = re.findall(r"/(jobs|samplesets|samplejobs)\b", self.path)[:1]
        name = "hello" if resource == "jobs" else "one"
        return self.path.format(namespace=NAMESPACE, name=name, uid=uids.get(resource))


def long_routes() -> list[Route]:
    """Return every route of the OpenAPI document that sends events, or has the parameter Prefer or follow."""
    found = []
    for path_, item in committed_document()["paths"].items():
        operation = item.get("get", {})
        parameters = {parameter["name"].lower() for parameter in operation.get("parameters", ())}
        if "text/event-stream" in operation.get("responses", {}).get("200", {}).get("content", {}):
            found.append(Route("stream", path_))
        if "prefer" in parameters:
            found.append(Route("poll", path_))
        if "follow" in parameters:
            found.append(Route("log", path_))
    return found


ROUTES = long_routes()


async def test_the_openapi_document_shows_every_long_running_route() -> None:
    assert {kind: len([r for r in ROUTES if r.kind == kind]) for kind in ("stream", "poll", "log")} == {
        "stream": 9,
        "poll": 21,
        "log": 2,
    }


async def test_all_long_running_responses_use_the_common_mechanism() -> None:
    """Other streams and waits in the API would not be counted, rechecked or ended."""
    bypass = re.compile(r"StreamingResponse|FileResponse|EventSourceResponse|\.waiting\(|asyncio\.sleep\((?!0\))")
    allowed = {"long_requests/responses.py", "long_requests/streams.py", "shared/polls.py"}
    folder = ROOT / "app" / "api"
    files = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*.py")}
    assert {name for name, text in files.items() if bypass.search(text)} <= allowed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(postgres_server_url: str, database_template: str) -> AsyncIterator[tuple[Gateway, Uids]]:
    """Run a gateway that rechecks tokens often, with a job `hello`, and a SampleSet and a SampleJob `one`.

    Yields the gateway and the uids of the objects.
    """
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url, closed=True, long_requests=QUICK, log_reader=LOG) as gateway,
    ):
        admin = await gateway.token("admin", "*")
        uids = {}
        for resource, where, body in (
            ("jobs", jobs_path(), manifest("hello", replicas=1)),
            ("samplesets", path(SETS), sample(SETS)),
            ("samplejobs", path(JOBS), sample(JOBS)),
        ):
            answer = await gateway.client.post(where, json=body, headers=admin)
            assert answer.status_code == 201, answer.text
            uids[resource] = answer.json()["uid"]
        attempt = Attempt(number=1, pod_uid="pod", containers=(ObservedContainer(name="main", state="running"),))
        await gateway.conclude(uids["jobs"], {}, replicas=[Replica(key=Rank("worker", 0), attempt=attempt)])
        await until_followed(gateway)
        yield gateway, uids


@dataclass
class Ended:
    """The end of a long-running request."""

    status: int
    text: str
    cut_short: bool


@asynccontextmanager
async def waiting_request(
    gateway: Gateway, route: Route, uids: Uids, headers: dict[str, str]
) -> AsyncIterator["asyncio.Task[Ended]"]:
    """Send a request that lasts during the block. The task that it yields returns how the request ended."""
    url = route.url(uids)
    sent = dict(headers)
    if route.kind == "poll":
        first = await gateway.client.get(url, headers=headers)
        sent |= {"If-None-Match": first.headers["etag"], "Prefer": "wait=60"}
    if route.kind == "log":
        url += "?follow=true"

    begun = asyncio.Event()

    async def request() -> Ended:
        body = b""
        async with gateway.client.stream("GET", url, headers=sent) as answer:
            try:
                async for piece in answer.aiter_raw():
                    body += piece
                    begun.set()
            except httpx2.RemoteProtocolError:
                return Ended(answer.status_code, body.decode(), cut_short=True)
        return Ended(answer.status_code, body.decode(), cut_short=False)

    before = gateway.services.long_requests.count
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(request())
        await until_open(gateway, before + 1)
        if route.kind != "poll":
            await begun.wait()
        yield task


def assert_denied(route: Route, ended: Ended, code: str, status: int) -> None:
    match route.kind:
        case "poll":
            assert (ended.status, json.loads(ended.text)["code"]) == (status, code)
        case "stream":
            fields = dict(line.split(": ", 1) for line in ended.text.strip().split("\n\n")[-1].splitlines())
            assert (fields["event"], json.loads(fields["data"])["code"]) == ("denied", code)
            assert not ended.cut_short
        case _:
            assert ended.text.startswith("begin\n")
            assert "[jobgate] the log is cut off here: " in ended.text.splitlines()[-1]
            assert ended.cut_short


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
async def test_a_revoked_token_ends_the_request(route: Route, served: tuple[Gateway, Uids]) -> None:
    gateway, uids = served
    token, text = await tokens.create(
        gateway.db, name=f"t {uuid4()}", role="viewer", namespaces=[NAMESPACE], now=gateway.services.clock.now()
    )
    async with waiting_request(gateway, route, uids, {"Authorization": f"Bearer {text}"}) as request:
        assert await tokens.revoke(gateway.db, token.id, gateway.services.clock.now())
    assert_denied(route, request.result(), "InvalidToken", 401)
    assert LOG.followers == 0


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
async def test_a_narrowed_token_ends_the_request(route: Route, served: tuple[Gateway, Uids]) -> None:
    gateway, uids = served
    token, text = await tokens.create(
        gateway.db, name=f"t {uuid4()}", role="viewer", namespaces=[NAMESPACE], now=gateway.services.clock.now()
    )
    async with (
        waiting_request(gateway, route, uids, {"Authorization": f"Bearer {text}"}) as request,
        gateway.db.begin() as connection,
    ):
        await connection.execute("UPDATE api_tokens SET namespaces = '{other}' WHERE id = $1", token.id)
    assert_denied(route, request.result(), "AccessChanged", 403)


@pytest.mark.parametrize("kind", ["stream", "poll", "log"])
async def test_a_disconnect_ends_the_request(kind: str, served: tuple[Gateway, Uids]) -> None:
    gateway, uids = served
    headers = await gateway.token("viewer", NAMESPACE)
    route = next(route for route in ROUTES if route.kind == kind)
    async with waiting_request(gateway, route, uids, headers) as request:
        request.cancel()
        await until_open(gateway, 0)
    assert LOG.followers == 0


async def test_one_token_has_a_limit_of_open_requests(served: tuple[Gateway, Uids]) -> None:
    gateway, uids = served
    greedy, other = await gateway.token("viewer", NAMESPACE), await gateway.token("viewer", NAMESPACE)
    stream = next(route for route in ROUTES if route.kind == "stream")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        held = [group.create_task(_hold(gateway, stream, uids, greedy)) for _ in range(QUICK.per_token)]
        await until_open(gateway, QUICK.per_token)
        for route in ROUTES:
            refused = await _send_refused(gateway, route, uids, greedy)
            assert (refused.status_code, refused.json()["code"]) == (429, "TooManyOpen"), route
            assert int(refused.headers["retry-after"]) >= 1
        assert gateway.services.long_requests.count == QUICK.per_token
        held += [group.create_task(_hold(gateway, stream, uids, other)) for _ in range(QUICK.total - QUICK.per_token)]
        await until_open(gateway, QUICK.total)
        assert f'jobgate_long_requests{{kind="stream"}} {QUICK.total}.0' in (await gateway.client.get("/metrics")).text
        assert (await _send_refused(gateway, stream, uids, other)).status_code == 429
        assert (await gateway.client.get(jobs_path(), headers=greedy)).status_code == 200
        for task in held:
            task.cancel()
    await until_open(gateway, 0)


async def test_logs_have_their_own_limit_and_a_token_may_use_half_of_it(served: tuple[Gateway, Uids]) -> None:
    gateway, uids = served
    first, second = [await gateway.token("viewer", NAMESPACE) for _ in range(2)]
    log, share = next(route for route in ROUTES if route.kind == "log"), QUICK.logs // 2
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        held = [group.create_task(_hold(gateway, log, uids, first)) for _ in range(share)]
        await until_open(gateway, share)
        assert (await _send_refused(gateway, log, uids, first)).status_code == 429
        held += [group.create_task(_hold(gateway, log, uids, second)) for _ in range(share)]
        await until_open(gateway, 2 * share)
        assert (await _send_refused(gateway, log, uids, second)).status_code == 429
        for task in held:
            task.cancel()
    await until_open(gateway, 0)
    assert LOG.followers == 0


async def _hold(gateway: Gateway, route: Route, uids: Uids, headers: dict[str, str]) -> None:
    suffix = "?follow=true" if route.kind == "log" else ""
    async with gateway.client.stream("GET", route.url(uids) + suffix, headers=headers) as answer:
        assert answer.status_code == 200
        await answer.aread()


async def _send_refused(gateway: Gateway, route: Route, uids: Uids, headers: dict[str, str]) -> Any:
    """Send a long-running request that is refused. A poll has the current tag, so that it would wait."""
    if route.kind == "poll":
        tag = (await gateway.client.get(route.url(uids), headers=headers)).headers["etag"]
        headers = headers | {"If-None-Match": tag, "Prefer": "wait=60"}
    suffix = "?follow=true" if route.kind == "log" else ""
    return await gateway.client.get(route.url(uids) + suffix, headers=headers)


async def test_a_shutdown_ends_a_followed_log(database_url: str) -> None:
    async with running_gateway(database_url, log_reader=LOG, long_requests=replace(QUICK, recheck=60)) as gateway:
        uid = (await gateway.submit("hello", replicas=1))["uid"]
        attempt = Attempt(number=1, pod_uid="pod", containers=(ObservedContainer(name="main", state="running"),))
        await gateway.conclude(uid, {}, replicas=[Replica(key=Rank("worker", 0), attempt=attempt)])
        log = next(route for route in ROUTES if route.kind == "log")
        async with waiting_request(gateway, log, {"jobs": uid}, {}) as request:
            gateway.services.close()
        ended = request.result()
        assert "the process is about to stop" in ended.text
        assert ended.cut_short
        assert LOG.followers == 0


class Firehose(LogReader):
    """A log that sends as much as its client reads, without an end."""

    def __init__(self) -> None:
        self.read_bytes = 0
        self.open = 0

    @override
    async def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        self.open += 1
        try:
            while True:
                self.read_bytes += 65536
                yield b"x" * 65536
        finally:
            self.open -= 1


async def test_a_log_client_that_does_not_read_is_disconnected(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "WRITE_SECONDS", 0.5)
    log = Firehose()
    async with running_gateway(database_url, log_reader=log) as gateway:
        uid = (await gateway.submit("hello", replicas=1))["uid"]
        attempt = Attempt(number=1, pod_uid="pod", containers=(ObservedContainer(name="main", state="running"),))
        await gateway.conclude(uid, {}, replicas=[Replica(key=Rank("worker", 0), attempt=attempt)])
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            client.connect(("127.0.0.1", int(gateway.url.rpartition(":")[2])))
            client.sendall(f"GET /api/v1/jobs/{uid}/logs?follow=true HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await until_open(gateway, 1)
            await until_open(gateway, 0)
        assert log.open == 0
        assert log.read_bytes < 16 * 1024 * 1024  # the socket buffers of the kernel, and the server's write buffer
