"""After SIGTERM, readiness ends first, then the listener, then open requests, and no request is lost."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

from tests.attack.victim import running_victim
from tests.support.machine.raw_http import PATIENCE, request

READY = request("GET", "/readyz", "Connection: close")


async def test_requests_are_served_while_the_process_drains(
    database_url: str, tmp_path: Path, prove: Callable[[str], None]
) -> None:
    statuses = []
    async with running_victim(database_url, tmp_path, JOBGATE_DRAIN_SECONDS="3") as victim:
        async with await victim.connect() as kept, await victim.connect() as stream:
            await kept.send(request("GET", "/livez"))
            assert (await kept.answer())[0] == 200
            await stream.send(request("GET", "/api/v1/jobs/watch"))
            assert b" 200 " in await stream.reader.readuntil(b"\r\n\r\n")
            os.kill(victim.process.pid, signal.SIGTERM)
            async with asyncio.timeout(PATIENCE):
                while True:
                    try:
                        async with await victim.connect() as poll:
                            await poll.send(READY)
                            status, body = await poll.answer()
                    except OSError:
                        break
                    if status == 503:
                        assert b"shutdown" in body
                        if 503 not in statuses:
                            await kept.send(request("GET", "/api/v1/jobs"))
                            assert (await kept.answer())[0] == 200
                            assert await kept.rest() == b"", "its last answer closes a connection"
                    statuses.append(status)
            assert b"event: shutdown" in await stream.rest()
        assert await victim.process.ended(PATIENCE) == 0
    assert set(statuses) <= {200, 503, 0}
    assert 503 in statuses
    assert statuses == sorted(statuses, key=[200, 503, 0].index), "never ready again"
    prove(f"stopping: {statuses.count(503)} polls were answered 503 after SIGTERM, then connections were refused")
