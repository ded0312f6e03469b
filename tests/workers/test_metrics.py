"""Metrics of other processes over internal sockets."""

import asyncio

from app.workers.metrics import MetricsExchange

OWN = "# HELP a A.\n# TYPE a gauge\na 1.0\n"


async def test_the_metrics_of_all_processes_that_answer_are_collected() -> None:
    with MetricsExchange(["worker-0", "worker-1", "silent"]) as exchange:
        async with exchange.served("worker-1", lambda: OWN.replace("1.0", "2.0")), asyncio.timeout(120):
            text = await exchange.collect("worker-0", OWN)
    assert text == '# HELP a A.\n# TYPE a gauge\na{process="worker-0"} 1.0\na{process="worker-1"} 2.0\n'


async def test_a_long_exposition_arrives_completely() -> None:
    lines = "".join(f'many{{number="{number}"}} 1.0\n' for number in range(50_000))
    with MetricsExchange(["worker-0", "controller"]) as exchange:
        async with exchange.served("controller", lambda: f"# HELP many M.\n{lines}"), asyncio.timeout(120):
            text = await exchange.collect("worker-0", OWN)
    assert text.count('many{process="controller"') == 50_000
