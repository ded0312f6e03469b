"""One line for each request when it ends: what it contains, and which requests have none."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import ip_network

import pytest
import pytest_asyncio
import structlog

from app.api.http_settings import HttpSettings
from app.http_server.forwarding import TrustedProxies
from app.services.access import Principal
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest, running_gateway
from tests.support.machine.raw_http import Connection, request
from tests.support.telemetry.log_lines import Logged
from tests.support.waiting import until

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ON = HttpSettings(access_log=True)


@pytest_asyncio.fixture
async def gateway(database_url: str, logged: Logged) -> AsyncIterator[Gateway]:
    async with running_gateway(database_url, settings=ON) as running:
        await running.submit("hello")
        logged.events.clear()
        yield running


async def line_of(logged: Logged, request_id: str) -> dict[str, object]:
    """The line of a request, which is written after its answer was sent."""
    lines = await until(lambda: [line for line in logged.named("http.request") if line["request_id"] == request_id])
    (line,) = lines
    return dict(line)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", jobs_path(NAMESPACE, "hello"), (200, "/api/v1/namespaces/{namespace}/jobs/{name}")),
        (
            "GET",
            jobs_path(NAMESPACE, "hello", "status"),
            (200, "/api/v1/namespaces/{namespace}/jobs/{name}/status"),
        ),
        ("HEAD", jobs_path(NAMESPACE, "hello"), (200, "/api/v1/namespaces/{namespace}/jobs/{name}")),
        ("GET", f"{jobs_path()}?access_token=secret", (400, "/api/v1/namespaces/{namespace}/jobs")),
        ("GET", jobs_path(NAMESPACE, "nobody"), (404, "/api/v1/namespaces/{namespace}/jobs/{name}")),
        ("GET", "/nowhere", (404, None)),
        ("PROPFIND", "/api/v1/jobs", (405, "/api/v1/jobs")),
        ("DELETE", jobs_path(NAMESPACE, "hello"), (202, "/api/v1/namespaces/{namespace}/jobs/{name}")),
    ],
)
async def test_a_line_describes_the_request_and_its_answer(
    method: str, path: str, expected: tuple[int, str | None], gateway: Gateway, logged: Logged
) -> None:
    sent = {"X-Request-Id": "it", "traceparent": TRACEPARENT}
    answer = await gateway.client.request(method, path, headers=sent)
    line = await line_of(logged, "it")
    assert (line["status"], line["route"]) == (answer.status_code, line["route"]) == expected
    assert (line["method"], line["path"]) == (method, path.partition("?")[0])
    assert (line["bytes"], line["client"], line["log_level"]) == (len(answer.content), "127.0.0.1", "info")
    assert line["trace_id"] == TRACEPARENT[3:35]
    assert "incomplete" not in line
    duration = line["duration"]
    assert isinstance(duration, float)
    assert duration > 0


@pytest.mark.parametrize("network", ["127.0.0.0/8", "192.0.2.0/24"])
async def test_only_a_trusted_proxy_names_the_client(network: str, database_url: str, logged: Logged) -> None:
    settings = replace(ON, proxies=TrustedProxies((ip_network(network),)))
    async with running_gateway(database_url, settings=settings) as gateway:
        await gateway.submit("hello")
        forwarded = {"X-Forwarded-For": "203.0.113.9, 198.51.100.7"}
        for name, path in (("poll", jobs_path(NAMESPACE, "hello", "status")), ("list", jobs_path())):
            await gateway.client.get(path, headers=forwarded | {"X-Request-Id": name})
        clients = {(await line_of(logged, name))["client"] for name in ("poll", "list")}
    assert clients == {"198.51.100.7" if network == "127.0.0.0/8" else "127.0.0.1"}


async def test_the_bytes_of_a_line_are_those_that_are_sent(gateway: Gateway, logged: Logged) -> None:
    answer = await gateway.client.get("/openapi.json", headers={"X-Request-Id": "it", "Accept-Encoding": "gzip"})
    line = await line_of(logged, "it")
    assert line["bytes"] == int(answer.headers["content-length"]) < len(answer.content)


async def test_a_caller_is_named_once_it_is_authenticated(database_url: str, logged: Logged) -> None:
    async with running_gateway(database_url, settings=ON, closed=True) as gateway:
        token = await gateway.token("submitter", NAMESPACE)
        for name, headers, path in (
            ("nobody", {}, jobs_path()),
            ("poll", token, jobs_path(NAMESPACE, "none", "status")),
            ("list", token, jobs_path()),
        ):
            await gateway.client.get(path, headers=headers | {"X-Request-Id": name})
        await gateway.client.post(jobs_path(), json=manifest(), headers=token | {"X-Request-Id": "post"})
        lines = {name: await line_of(logged, name) for name in ("nobody", "poll", "list", "post")}
    actors = {name: line.get("actor") for name, line in lines.items()}
    assert actors == {"nobody": None, "poll": "a submitter", "list": "a submitter", "post": "a submitter"}
    assert token["Authorization"].removeprefix("Bearer ") not in repr(logged.events)


async def test_probes_are_logged_only_if_they_fail(gateway: Gateway, logged: Logged) -> None:
    for path in ("/livez", "/readyz", "/metrics"):
        assert (await gateway.client.get(path)).status_code == 200
    await gateway.client.post("/readyz", headers={"X-Request-Id": "wrong"})
    await line_of(logged, "wrong")
    assert [(line["path"], line["status"]) for line in logged.named("http.request")] == [("/readyz", 405)]


async def test_a_stream_is_logged_when_it_ends(gateway: Gateway, logged: Logged) -> None:
    async with gateway.client.stream("GET", "/api/v1/jobs/watch", headers={"X-Request-Id": "it"}) as stream:
        assert stream.status_code == 200
        await anext(stream.aiter_bytes())
        assert logged.named("http.request") == []
    line = await line_of(logged, "it")
    assert (line["status"], line["incomplete"], line["route"]) == (200, True, "/api/v1/jobs/watch")


async def test_a_client_that_leaves_before_its_answer_has_the_status_499(gateway: Gateway, logged: Logged) -> None:
    tag = (await gateway.client.get(jobs_path(NAMESPACE, "hello", "status"))).headers["etag"]
    headers = (f"If-None-Match: {tag}", "Prefer: wait=60", "X-Request-Id: it")
    host, _, port = gateway.url.removeprefix("http://").partition(":")
    async with await Connection.open((host, int(port))) as connection:
        await connection.send(request("GET", jobs_path(NAMESPACE, "hello", "status"), *headers))
        await until(lambda: gateway.services.long_requests.count)
    line = await line_of(logged, "it")
    assert (line["status"], line["bytes"], line["incomplete"]) == (499, 0, True)
    assert await recorded(gateway, "/api/v1/namespaces/{namespace}/jobs/{name}/status") == {"200", "499"}


async def test_metrics_have_the_status_of_an_answer_that_a_layer_has_changed(gateway: Gateway, logged: Logged) -> None:
    answer = await gateway.client.request("PUT", "/v2alpha1/job/none/replicas", headers={"X-Request-Id": "it"})
    line = await line_of(logged, "it")
    assert line["status"] == answer.status_code
    assert await recorded(gateway, str(line["route"])) == {str(answer.status_code)}


async def recorded(gateway: Gateway, route: str) -> set[str]:
    """The statuses that the metrics have for a route."""
    text = (await gateway.client.get("/metrics")).text
    series = re.compile(r'jobgate_http_request_duration_seconds_count\{.*route="(.*)",status="(.*)"\}')
    return {status for found, status in series.findall(text) if found == route}


async def test_an_unexpected_exception_is_logged_with_its_request(gateway: Gateway, logged: Logged) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("secret")

    gateway.services.reading.version = broken  # type: ignore[assignment, method-assign]
    gateway.services.reading.row = broken  # type: ignore[assignment, method-assign]
    headers = {"X-Request-Id": "failing", "traceparent": TRACEPARENT}
    await gateway.client.get(jobs_path(NAMESPACE, "hello", "status"), headers=headers)
    assert (await line_of(logged, "failing"))["status"] == 500
    failures = [(line["request_id"], line["exc_info"], line["trace_id"]) for line in logged.named("request.failed")]
    assert failures == [("failing", True, TRACEPARENT[3:35])]


async def test_a_pipelined_request_inherits_nothing(database_url: str, logged: Logged) -> None:
    """uvicorn starts the task of a pipelined request within the task of the one before."""
    async with running_gateway(database_url) as gateway:
        await gateway.submit("hello")
        access = gateway.services.access
        authenticate = access.authenticate

        async def authenticate_and_log(authorization: str | None) -> Principal:
            structlog.get_logger().info("authenticated")
            return await authenticate(authorization)

        access.authenticate = authenticate_and_log  # type: ignore[method-assign]
        host, _, port = gateway.url.removeprefix("http://").partition(":")
        async with await Connection.open((host, int(port))) as connection:
            first = request("GET", jobs_path(), f"traceparent: {TRACEPARENT}", "X-Request-Id: first")
            await connection.send(first + request("GET", jobs_path(NAMESPACE, "hello", "status")))
            events = await until(lambda: logged.named("authenticated"), lambda found: len(found) == 2)
        assert (events[0]["request_id"], events[0]["trace_id"]) == ("first", TRACEPARENT[3:35])
        assert events[1]["request_id"] not in ("", "first")
        assert not events[1].keys() & {"actor", "trace_id"}


async def test_concurrent_requests_keep_their_fields(gateway: Gateway, logged: Logged) -> None:
    await asyncio.gather(
        *(gateway.client.get(jobs_path(NAMESPACE, f"job-{n}"), headers={"X-Request-Id": f"id-{n}"}) for n in range(20))
    )
    for number in range(20):
        assert (await line_of(logged, f"id-{number}"))["path"] == jobs_path(NAMESPACE, f"job-{number}")
