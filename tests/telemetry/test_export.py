"""Spans that a real gateway exports to a collector on loopback, and a collector that is away."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.domain.cache.made import a_set
from tests.support.cache.sample_secrets import create_storage_secret
from tests.support.clusters.kube import Cluster, connect
from tests.support.gateways.gateway import jobs_path, manifest
from tests.support.gateways.process import gateway_process
from tests.support.telemetry.otlp import Collector, ReceivedSpan, running_collector
from tests.support.waiting import until
from tests.telemetry.lines import events_of, found
from tests.telemetry.proxied import proxied_gateway

PATIENCE = 240.0
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
SUBMIT = "POST /api/v1/namespaces/{namespace}/jobs"
POLL = "GET /api/v1/namespaces/{namespace}/jobs/{name}/status"
INTERNAL, SERVER, CLIENT = 1, 2, 3  # of the protocol
PROCESSES = {"JOBGATE_LOG_FORMAT": "json", "JOBGATE_WORKERS": "2"}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as running:
        yield running


def exporting(url: str, **more: str) -> dict[str, str]:
    return PROCESSES | {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_BSP_SCHEDULE_DELAY": "50"} | more


async def test_a_submission_is_one_trace_from_the_request_to_the_pods(
    collector: Collector, database_url: str, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    environment = exporting(collector.url, OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test")
    async with proxied_gateway(database_url, cluster, tmp_path, **environment) as (gateway, proxy):
        headers = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "vendor=1"}
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=60) as client:
            answer = await client.post(jobs_path(namespace), json=manifest("traced"), headers=headers)
            uid = answer.json()["uid"]
            await client.get(jobs_path(namespace, "traced", "status"), headers=headers)
        creates = await until(
            lambda: collector.named("create pods", TRACE), lambda spans: len(spans) == 2, within=PATIENCE
        )
        assert await gateway.stop() == 0

        (request,) = collector.named(SUBMIT, TRACE)
        assert (request.kind, request.parent_id, request.state) == (SERVER, SPAN, "vendor=1")
        assert request.process in {"worker-0", "worker-1"}
        assert request.attributes["http.response.status_code"] == 201
        assert request.attributes["http.route"] == "/api/v1/namespaces/{namespace}/jobs"
        assert request.resource["service.name"] == "jobgate"
        assert request.resource["deployment.environment.name"] == "test"
        (commit,) = collector.named("commit", TRACE)
        assert (commit.kind, commit.parent_id, commit.attributes) == (
            INTERNAL,
            request.span_id,
            {"jobgate.commit.jobs": 1},
        )
        reconciles = {span.span_id: span for span in collector.named("reconcile", TRACE)}
        assert {span.parent_id for span in reconciles.values()} == {request.span_id}
        assert {span.attributes["jobgate.job.uid"] for span in reconciles.values()} == {uid}
        for create in creates:
            cause = reconciles[create.parent_id]
            assert cause.process == create.process == "controller"
            assert cause.began <= create.began <= create.ended <= cause.ended
            assert (create.kind, create.attributes["http.response.status_code"]) == (CLIENT, 201)
        assert len(collector.named(POLL, TRACE)) == 1
        # The API server gets the span of the request as its parent.
        sent = [head for head in proxy.heads if head.startswith(f"POST /api/v1/namespaces/{namespace}/pods?")]
        assert {span.span_id for span in creates} == {_span_sent(head) for head in sent}
        line = found(gateway, "http.request", job=uid)[0]
        assert (line["trace_id"], line["span_id"]) == (TRACE, request.span_id)


def _span_sent(head: str) -> str:
    (value,) = [line.partition(": ")[2] for line in head.split("\r\n") if line.lower().startswith("traceparent: ")]
    version, trace_id, span_id, flags = value.split("-")
    assert (version, trace_id, flags) == ("00", TRACE, "01")
    return span_id


async def test_a_sample_set_is_one_trace_from_the_request_to_its_objects(
    collector: Collector, database_url: str, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    path = f"/api/v1/namespaces/{namespace}/samplesets"
    async with (
        connect(cluster) as kube,
        gateway_process(database_url, cluster.kubeconfig, tmp_path, **exporting(collector.url)) as gateway,
    ):
        await create_storage_secret(kube, namespace)
        await gateway.start()
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=60) as client:
            headers = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
            uid = (await client.post(path, json=a_set("traced"), headers=headers)).json()["uid"]
            created = await until(
                lambda: collector.named("create persistentvolumeclaims", TRACE), bool, what="a claim", within=PATIENCE
            )
            await client.delete(f"{path}/traced")
            await until(
                lambda: collector.named("delete persistentvolumeclaims", TRACE), bool, what="no claim", within=PATIENCE
            )
        assert await gateway.stop() == 0
    (request,) = collector.named("POST /api/v1/namespaces/{namespace}/samplesets", TRACE)
    reconciles = {span.span_id: span for span in collector.named("reconcile", TRACE)}
    assert {span.parent_id for span in reconciles.values()} == {request.span_id}
    assert {span.attributes["jobgate.sample_set.uid"] for span in reconciles.values()} == {uid}
    assert {span.parent_id for span in created} <= set(reconciles)
    # It is read as long as it lives, so its reads would fill the trace.
    calls = [span for span in collector.spans if (span.trace_id, span.kind) == (TRACE, CLIENT)]
    assert {span.parent_id for span in calls} <= set(reconciles)
    assert "list pods" not in _names(calls)


async def test_the_items_of_a_batch_belong_to_the_trace_of_their_request(
    collector: Collector, database_url: str, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """A request without a traceparent begins a trace. Probes and the controller's own requests are in none."""
    async with gateway_process(database_url, cluster.kubeconfig, tmp_path, **exporting(collector.url)) as gateway:
        await gateway.start()
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=60) as client:
            items = {"apiVersion": "v1", "kind": "List", "items": [manifest(f"item-{n}") for n in range(3)]}
            assert (await client.post(f"{jobs_path(namespace)}/batch", json=items)).status_code == 200
            assert (await client.get("/readyz")).status_code == 200
        assert await gateway.stop() == 0
        (request,) = [span for span in collector.spans if span.name.endswith("/batch")]
        assert (len(request.trace_id), request.parent_id) == (32, "")
        commits = collector.named("commit", request.trace_id)
        assert sum(span.attributes["jobgate.commit.jobs"] for span in commits) == 3
        assert [span.links for span in commits] == [[]] * len(commits)
        assert _names(collector.spans) & {"GET /readyz", "list pods", "watch pods"} == set()


def _names(spans: list[ReceivedSpan]) -> set[str]:
    return {span.name for span in spans}


async def test_the_sampler_and_the_name_of_the_service_are_those_of_the_environment(
    collector: Collector, database_url: str, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    environment = exporting(
        collector.url, OTEL_TRACES_SAMPLER="parentbased_always_off", OTEL_SERVICE_NAME="queue", JOBGATE_WORKERS="1"
    )
    async with gateway_process(database_url, cluster.kubeconfig, tmp_path, **environment) as gateway:
        await gateway.start()
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=60) as client:
            await client.get("/api/v1/jobs")
            assert (await client.post(jobs_path(namespace), json=manifest("unsampled"))).status_code == 201
            await client.get("/api/v1/kinds", headers={"traceparent": f"00-{TRACE}-{SPAN}-01"})
        assert await gateway.stop() == 0
    assert [(span.name, span.resource["service.name"]) for span in collector.spans] == [("GET /api/v1/kinds", "queue")]


async def test_a_dead_collector_harms_no_request_and_no_shutdown(
    database_url: str, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    environment = exporting("http://127.0.0.1:1", JOBGATE_WORKERS="1")
    async with gateway_process(database_url, cluster.kubeconfig, tmp_path, **environment) as gateway:
        await gateway.start()
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=60) as client:
            for number in range(20):
                assert (await client.post(jobs_path(namespace), json=manifest(f"job-{number}"))).status_code == 201
        assert await gateway.stop() == 0  # the watchdog would end it with 70
        assert found(gateway, "tracing.exported")
        assert len(found(gateway, "http.request", status=201)) == 20
        assert events_of(gateway)
