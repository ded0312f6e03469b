"""When spans are exported, and what remains without an exporter."""

import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from app.telemetry import tracing
from app.telemetry.otlp import OccasionalLines
from app.telemetry.trace_context import TraceContext, continue_trace, current
from tests.support.telemetry.log_lines import Logged
from tests.support.telemetry.otlp import running_collector

ROOT = Path(__file__).parents[2]
TRACE = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", 1)
ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.mark.parametrize(
    ("environment", "configured"),
    [
        ({}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:4318/v1/metrics"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "TRUE"}, False),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "false"}, True),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, False),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "otlp"}, True),
    ],
)
def test_an_endpoint_enables_the_export(environment: Mapping[str, str], *, configured: bool) -> None:
    assert tracing.is_configured(environment) is configured


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, None),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "zipkin"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "grpc"),
        ({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, None),
    ],
)
def test_an_exporter_that_jobgate_lacks_is_named(environment: Mapping[str, str], named: str | None) -> None:
    hindrance = tracing.hindrance_of(environment)
    assert (hindrance is None) if named is None else (hindrance is not None and named in hindrance)


async def test_without_an_endpoint_nothing_is_exported(logged: Logged) -> None:
    async with tracing.export({}):
        assert not tracing.is_on()
    assert logged.events == []


@pytest.mark.parametrize(
    ("package", "reason"),
    [("no_such_package", "the extra `otel` is not installed"), ("no_such_package.sdk", "the extra `otel`")],
)
async def test_without_the_extra_the_log_says_so(
    package: str, reason: str, logged: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "_PACKAGES", (package,))
    async with tracing.export(ENDPOINT):
        assert not tracing.is_on()
    (event,) = logged.events
    assert (event["event"], event["log_level"]) == ("tracing.not_exported", "warning")
    assert reason in event["reason"]


async def test_spans_are_exported_during_the_block_only() -> None:
    async with tracing.export(ENDPOINT):
        assert tracing.is_on()
    assert not tracing.is_on()


def test_a_dead_collector_is_logged_once_in_a_minute() -> None:
    lines = OccasionalLines()
    record = logging.makeLogRecord({"msg": "the collector does not answer"})

    def passes(at: float) -> bool:
        record.created = at
        return bool(lines.filter(record))

    assert [passes(1000.0 + seconds) for seconds in (0, 1, 59, 61, 62, 200)] == [True, False, False, True, False, True]


def test_without_an_exporter_a_span_is_the_context_that_it_continues() -> None:
    with tracing.span("work", parent=TRACE) as span:
        assert (span.trace, current()) == (TRACE, TRACE)
        with tracing.span("inner", parent=None) as inner:
            assert (inner.trace, current()) == (None, None)
    assert current() is None


def test_without_an_exporter_shared_work_belongs_to_no_trace() -> None:
    with tracing.shared_span("commit", [TRACE], {}):
        assert current() is None


async def test_a_span_has_an_id_of_its_own_and_keeps_the_decision_of_its_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unsampled = TraceContext(TRACE.trace_id, TRACE.span_id, 0)
    with running_collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        async with tracing.export(os.environ):
            _spans_below(TRACE, unsampled)
    assert [span.name for span in collector.spans] == ["work", "root"]


def _spans_below(*parents: TraceContext) -> None:
    for parent in parents:
        with tracing.span("work", parent=parent) as span:
            assert span.trace is not None
            assert (span.trace.trace_id, span.trace.is_sampled) == (TRACE.trace_id, parent.is_sampled)
            assert span.trace.span_id != TRACE.span_id
    # Without a parent, it is a root, whatever the current context is.
    with continue_trace(TRACE), tracing.span("root", parent=None) as root:
        assert root.trace is not None
        assert root.trace.trace_id != TRACE.trace_id


def test_the_sdk_is_imported_only_for_an_export() -> None:
    program = "import sys, app.running.supervised, app.cli; sys.exit('opentelemetry.sdk' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=120)
