"""No slow or hostile client prevents the gateway from answering other clients."""

import asyncio
import json
import resource
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from tests.attack.victim import BODY_SECONDS, DESCRIPTORS, HEADER_SECONDS, Victim
from tests.support.gateways.gateway import jobs_path, manifest
from tests.support.machine.raw_http import Connection, chunked, request
from tests.support.waiting import until

Prove = Callable[[str], None]

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(280)]

MANIFEST = json.dumps(manifest()).encode()
DRY_RUN = f"{jobs_path()}?dryRun=All"
TYPE = "Content-Type: application/json"


async def each(count: int, attack: Callable[[], Awaitable[int]]) -> Sequence[int]:
    """Run this many attackers at once, and return the status of each answer."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_one(attack)) for _ in range(count)]
    return [task.result() for task in tasks]


async def _one(attack: Callable[[], Awaitable[int]]) -> int:
    return await attack()


async def trickle(connection: Connection, data: bytes, pause: float = 0.1) -> tuple[int, bytes]:
    """Send one byte at a time until the gateway answers."""
    answer = asyncio.ensure_future(connection.answer())  # noqa: TID251 - awaited below
    for place in range(len(data)):
        if answer.done() or not await connection.send(data[place : place + 1]):
            break
        await asyncio.sleep(pause)
    return await answer


async def flood(connection: Connection, piece: bytes, times: int) -> int:
    """Send the piece repeatedly until the gateway stops reading, and return the number of bytes sent."""
    sent = 0
    for _ in range(times):
        if not await connection.send(piece):
            break
        sent += len(piece)
    return sent


async def test_slow_headers_are_answered_408(victim: Victim, prove: Prove) -> None:
    async def attack() -> int:
        async with await victim.connect() as connection:
            status, body = await trickle(connection, request("GET", "/livez", "X-Slow: " + "a" * 10_000))
            assert not status or json.loads(body)["code"] == "RequestTimeout"
            return status

    async with victim.polled("slow headers", prove) as bystander:
        began = time.monotonic()
        answers = await each(60, attack)
        bystander.notes.append(f"60 clients sent a header byte by byte, {answers.count(408)} were answered 408")
        assert time.monotonic() - began >= HEADER_SECONDS
        assert answers.count(408) == 60


async def test_an_endless_header_is_answered_431_and_costs_little(victim: Victim, prove: Prove) -> None:
    async def attack() -> int:
        async with await victim.connect() as connection:
            await connection.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Endless: ")
            sent.append(await flood(connection, b"a" * 2**16, 2000))
            status, _ = await connection.answer()
            return status

    sent: list[int] = []
    async with victim.polled("endless header", prove) as bystander:
        before = victim.cpu_seconds()
        answers = await each(8, attack)
        cpu = victim.cpu_seconds() - before
        bystander.notes.append(
            f"8 clients sent up to 125 MiB each: {sum(sent) >> 20} MiB went out, answers {set(answers)}"
        )
        assert set(answers) <= {431, 0}  # 0: disconnected, because it continued to send
        assert max(sent) < 32 * 2**20
        assert cpu < 10


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "[::1]:80", "a%20b", "", "127.0.0.1:"])
async def test_every_valid_host_reaches_the_application(victim: Victim, host: str) -> None:
    async with await victim.connect() as connection:
        await connection.send(request("GET", "/livez", host=host))
        # 421: this gateway accepts no token, so it accepts only its own names.
        assert (await connection.answer())[0] in (200, 421)
    async with await victim.connect() as connection:
        await connection.send(b"GET /livez HTTP/1.0\r\n\r\n")
        assert (await connection.answer())[0] in (200, 421), "HTTP/1.0 has no Host"


async def test_a_client_whose_header_is_refused_can_read_the_reason(victim: Victim) -> None:
    async with await victim.connect() as connection:
        await connection.send(request("GET", "/livez", "X-Large: " + "a" * 100_000))
        status, body = await connection.answer()
        problem = json.loads(body)
        assert (status, problem["code"]) == (431, "HeadersTooLarge")
        assert problem["errors"][0]["accepted"] == "at most 65536 bytes of request line and headers"
        assert await connection.rest() == b""


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (request("GET", "/livez", *(f"X-{n}: a" for n in range(5000))), 431, "TooManyHeaders"),
        (request("GET", "/livez?" + "a" * 100_000), 414, "TargetTooLong"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100, 400, "MalformedRequest"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "MalformedRequest"),
        *(
            (b"GET /livez HTTP/%b\r\nHost: localhost\r\n\r\n" % version, 400, "MalformedRequest")
            for version in (b"0.9", b"1.2", b"2.0", b"3.0")
        ),
        (b"GET /livez HTTP/1.1\r\n\r\n", 400, "MalformedRequest"),
        *(
            (request("GET", "/livez", host=host), 400, "MalformedRequest")
            for host in ("a\r\nHost: a", "a b", "a, b", "user@a", "a/b", "a:b", "[::1", "http://a")
        ),
        (b"POST /api/v1/x HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", 400, "MalformedRequest"),
        (request("CONNECT", "example.com:443"), 405, "MethodNotAllowed"),
        (b"GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "MalformedRequest"),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            "MalformedRequest",
        ),
        (b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n", 400, "MalformedRequest"),
    ],
)
async def test_bytes_that_are_no_request_are_answered_and_not_logged(
    sent: bytes, status: int, code: str, victim: Victim
) -> None:
    log = victim.log_bytes()
    async with await victim.connect() as connection:
        await connection.send(sent)
        answered, body = await connection.answer()
        assert (answered, json.loads(body)["code"]) == (status, code)
        assert await connection.rest() == b""
    assert victim.log_bytes() == log


async def test_a_slow_body_is_answered_408(victim: Victim, prove: Prove) -> None:
    async def attack() -> int:
        async with await victim.connect() as connection:
            head, body = request("POST", DRY_RUN, TYPE, body=MANIFEST + b" " * 2000).split(b"\r\n\r\n", 1)
            await connection.send(head + b"\r\n\r\n")
            status, _ = await trickle(connection, body)
            return status

    async with victim.polled("slow body", prove) as bystander:
        began = time.monotonic()
        answers = await each(60, attack)
        bystander.notes.append(f"60 clients sent a body byte by byte, {answers.count(408)} were answered 408")
        assert time.monotonic() - began >= BODY_SECONDS
        assert answers.count(408) == 60
    assert "Traceback" not in victim.process.log.read_text()


async def test_idle_connections_do_not_exclude_other_clients(victim: Victim, prove: Prove) -> None:
    async with victim.polled("idle connections", prove) as bystander:
        held = [await victim.connect() for _ in range(2 * DESCRIPTORS)]
        await bystander.answered(20)
        closed = sum(connection.reader.at_eof() for connection in held)
        bystander.notes.append(f"{len(held)} connections at {DESCRIPTORS} descriptors, {closed} were closed meanwhile")
        for connection in held:
            async with connection:
                pass


async def test_without_file_descriptors_the_server_pauses_logs_once_and_continues(victim: Victim, prove: Prove) -> None:
    """Lower the limit of descriptors below the number of open ones, as if a library leaked them."""
    pid, log = victim.process.pid, victim.log_bytes()
    async with await victim.connect() as stream, await victim.connect() as late:
        await stream.send(request("GET", "/api/v1/jobs/watch"))
        assert b" 200 " in await stream.reader.readuntil(b"\r\n\r\n")
        await late.send(request("GET", "/livez"))
        assert (await late.answer())[0] == 200
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (10, DESCRIPTORS))
        try:
            waiting = [await victim.connect() for _ in range(20)]
            cpu, end = victim.cpu_seconds(), time.monotonic() + 2
            await until(lambda: time.monotonic() >= end and b"http.cannot_accept" in victim.log_since(log), every=0.05)
            cpu = victim.cpu_seconds() - cpu
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        await waiting[-1].send(request("GET", "/livez", "Connection: close"))
        answered = await waiting[-1].answer()
        for other in waiting:
            async with other:
                pass
        assert not stream.reader.at_eof()
    lines = victim.log_since(log).count(b"http.cannot_accept")
    prove(f"attack: no descriptors: 20 connections waited for 2 s, {lines} log line, gateway CPU {cpu:.2f} s")
    assert lines == 1
    assert cpu < 0.3
    assert answered[0] == 200


async def test_more_streams_than_an_address_may_hold_are_answered_503(victim: Victim, prove: Prove) -> None:
    allowed = (DESCRIPTORS - 96) // 2
    stream = request("GET", "/api/v1/jobs/watch", host="127.0.0.1")
    async with victim.polled("streams", prove) as bystander:
        held = [await victim.connect("127.0.0.2") for _ in range(allowed)]
        for connection in held:
            await connection.send(stream)
        for connection in held:
            assert b" 200 " in await connection.reader.readuntil(b"\r\n\r\n")
        async with await victim.connect("127.0.0.2") as late:
            status, body = await late.answer()
            assert (status, json.loads(body)["code"]) == (503, "TooManyConnections")
        bystander.notes.append(f"{allowed} streams from one address were served, one more was answered 503")
        await bystander.answered(5)
        for connection in held:
            async with connection:
                pass


@pytest.mark.parametrize("connection_field", ["Upgrade, HTTP2-Settings", "keep-alive, Upgrade"])
async def test_an_h2c_upgrade_is_ignored_and_the_body_is_read(connection_field: str, victim: Victim) -> None:
    upgrade = ("Upgrade: h2c", f"Connection: {connection_field}", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", TYPE)
    async with await victim.connect() as connection:
        for sent in (
            request("POST", DRY_RUN, *upgrade, body=MANIFEST),
            request("POST", DRY_RUN, *upgrade, "Transfer-Encoding: chunked", length=False)
            + chunked(MANIFEST[n : n + 7] for n in range(0, len(MANIFEST), 7)),
            request("GET", "/livez", "Upgrade: websocket", "Connection: Upgrade"),
        ):
            await connection.send(sent)
            status, body = await connection.answer()
            assert status == 200, body


async def test_pipelined_requests_are_answered_in_order_and_in_turn(victim: Victim, prove: Prove) -> None:
    count = 800

    async def attack() -> int:
        async with await victim.connect() as connection:
            sending = asyncio.ensure_future(connection.send(sent))  # noqa: TID251 - awaited below
            statuses = [(await connection.answer())[0] for _ in range(count)]
            await sending
            assert statuses == [200, 404] * (count // 2)
            return count

    # More than the server reads at once, so that it must pause and resume reading.
    padding = f"X-Padding: {'a' * 80}"
    sent = (request("GET", "/livez", padding) + request("GET", "/nowhere", padding)) * (count // 2)
    assert len(sent) > 96 * 1024
    async with victim.polled("pipelining", prove) as bystander:
        answers = await each(2, attack)
        bystander.notes.append(f"2 clients pipelined {count} requests each, {sum(answers)} were answered")


async def test_a_body_of_tiny_chunks_is_read(victim: Victim, prove: Prove) -> None:
    padded = MANIFEST + b" " * 200_000
    async with victim.polled("tiny chunks", prove) as bystander, await victim.connect() as connection:
        head = request("POST", DRY_RUN, TYPE, "Transfer-Encoding: chunked", length=False)
        await connection.send(head + chunked(padded[n : n + 1] for n in range(len(padded))))
        status, body = await connection.answer()
        bystander.notes.append(f"a body of {len(padded)} chunks of one byte was answered {status}")
        assert status == 200, body


@pytest.mark.parametrize(
    "framing", [b"1;" + b"x" * 2**16, b"0\r\nX-Trailer: " + b"x" * 2**16], ids=["extension", "trailer"]
)
async def test_endless_framing_of_a_body_is_refused(framing: bytes, victim: Victim, prove: Prove) -> None:
    async with victim.polled("endless framing", prove) as bystander, await victim.connect() as connection:
        await connection.send(request("POST", DRY_RUN, TYPE, "Transfer-Encoding: chunked", length=False) + framing)
        sent = await flood(connection, b"x" * 2**16, 2000)
        status, _ = await connection.answer()
        bystander.notes.append(f"{sent >> 10} KiB went out, answer {status}")
        assert status in (400, 0)
        assert sent < 32 * 2**20


async def test_a_body_that_is_not_read_ends_with_its_connection(victim: Victim, prove: Prove) -> None:
    async with victim.polled("unread body", prove) as bystander, await victim.connect() as connection:
        await connection.send(request("POST", "/nowhere", "Transfer-Encoding: chunked", length=False))
        assert (await connection.answer())[0] == 404
        sent = await flood(connection, b"10000\r\n" + b"x" * 2**16 + b"\r\n", 2000)
        bystander.notes.append(f"{sent >> 20} MiB of 125 went out after the answer")
        assert sent < 32 * 2**20


async def test_a_client_that_never_reads_is_disconnected(victim: Victim, prove: Prove) -> None:
    async with victim.polled("no reading", prove) as bystander, await victim.connect() as connection:
        connection.writer.transport.pause_reading()  # type: ignore[attr-defined]
        requests = request("GET", "/openapi.json") * 200
        began = time.monotonic()
        await until(lambda: connection.send(requests), lambda sent: not sent, what="the cut", within=100, every=0.1)
        bystander.notes.append(f"cut off after {time.monotonic() - began:.1f} s")


async def test_a_disconnect_within_a_body_logs_nothing(victim: Victim, prove: Prove) -> None:
    async with victim.polled("disconnects", prove) as bystander:
        for path in (jobs_path(), DRY_RUN, jobs_path("team", "a", "pause"), "/api/v1/namespaces/team/samplesets"):
            for _ in range(5):
                async with await victim.connect() as connection:
                    head, body = request("POST", path, TYPE, body=MANIFEST).split(b"\r\n\r\n", 1)
                    await connection.send(head + b"\r\n\r\n" + body[:50])
                    await bystander.answered(1)
        bystander.notes.append("20 clients went away within their body")
    assert "Traceback" not in victim.process.log.read_text()


async def test_the_memory_of_the_process_stayed_small(victim: Victim, prove: Prove) -> None:
    """This test runs last, so it measures all attacks above."""
    prove(f"attack: all: gateway peak {victim.peak_bytes() >> 20} MiB")
    assert victim.peak_bytes() < 400 * 2**20
    assert Path(f"/proc/{victim.process.pid}").exists()
