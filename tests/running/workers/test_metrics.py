"""Metrics of other processes over internal sockets."""

import asyncio
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from app.running.workers.metrics import MetricsExchange
from tests.support.waiting import until

OWN = "# HELP a A.\n# TYPE a gauge\na 1.0\n"


async def test_the_metrics_of_all_processes_that_answer_are_collected() -> None:
    with MetricsExchange(["worker-0", "worker-1", "silent"]) as exchange:
        async with exchange.serve("worker-1", lambda: OWN.replace("1.0", "2.0")), asyncio.timeout(120):
            text = await exchange.collect("worker-0", OWN)
    assert text == '# HELP a A.\n# TYPE a gauge\na{process="worker-0"} 1.0\na{process="worker-1"} 2.0\n'


async def test_a_long_exposition_arrives_completely() -> None:
    lines = "".join(f'many{{number="{number}"}} 1.0\n' for number in range(50_000))
    with MetricsExchange(["worker-0", "controller"]) as exchange:
        async with exchange.serve("controller", lambda: f"# HELP many M.\n{lines}"), asyncio.timeout(120):
            text = await exchange.collect("worker-0", OWN)
    assert text.count('many{process="controller"') == 50_000


@contextmanager
def no_free_descriptor() -> Iterator[None]:
    """Lower the limit of this process to the descriptors that it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_without_descriptors_a_process_logs_once_and_answers_later(caplog: pytest.LogCaptureFixture) -> None:
    with MetricsExchange(["worker-0", "controller"]) as exchange, capture_logs() as lines:
        internal = exchange._sockets["controller"]
        async with exchange.serve("controller", lambda: OWN), asyncio.timeout(120):
            with socket.socket(internal.family) as waiting:
                waiting.settimeout(0)
                with no_free_descriptor():
                    await asyncio.get_running_loop().sock_connect(waiting, internal.getsockname())
                    await until(lambda: lines or caplog.records)
                # It continues by itself once there is a descriptor.
                assert await asyncio.get_running_loop().sock_recv(waiting, 1024) == OWN.encode()
    assert [line["event"] for line in lines] == ["metrics.cannot_accept"]
    assert caplog.records == [], "asyncio has accepted the connection, and logs each failure"


async def test_a_process_that_does_not_answer_is_logged_once_per_minute() -> None:
    with MetricsExchange(["worker-0", "gone"]) as exchange, capture_logs() as lines:
        exchange._sockets["gone"].close()
        for _ in range(3):
            assert 'process="worker-0"' in await exchange.collect("worker-0", OWN)
    assert [(line["event"], line["name"]) for line in lines] == [("metrics.process_missing", "gone")]
