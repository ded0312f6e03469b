"""The CSV of usage has all groups in pages that are read as its client takes them, and is cut off where one fails."""

import asyncio
import csv
import inspect
import tracemalloc
from collections.abc import Callable
from datetime import date
from typing import Any

import httpx2
import pytest

from app.api.long_requests import usage_csv
from app.api.long_requests.usage_csv import csv_lines
from app.db.postgres.errors import DatabaseUnavailable
from app.db.postgres.timeouts import DatabaseTimeouts
from app.db.usage import reads as usage_reads
from app.domain.errors import DomainError
from app.domain.usage.pages import before_all
from app.domain.usage.query import UsageQuery
from app.domain.usage.report import ShownUsage
from app.fairness import fair_memory, share
from app.fairness.answer_memory import MAX_BYTES, HeldAnswer
from app.services.limits.turns import Overloaded
from app.services.reading import objects
from app.services.reading import usage as reading
from jobgate.client.asynchronous import usage as client
from tests.api.routes.test_usage import USAGE, pages, some_usage
from tests.support.gateways.gateway import Gateway
from tests.support.waiting import until

BY = "namespace,user,day"
CSV = {"by": BY, "format": "csv"}


@pytest.fixture
def one_group_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_csv, "PAGE", 1)


@pytest.mark.usefixtures("one_group_at_once")
async def test_it_has_the_groups_of_all_pages(gateway: Gateway) -> None:
    await some_usage(gateway)
    expected = [
        [item["namespace"], item["user"], item["day"], resource]
        for item in await pages(gateway, by=BY)
        for resource in item["resources"]
    ]
    answer = await gateway.client.get(USAGE, params=CSV, headers={"Accept-Encoding": "gzip"})
    header, *lines = csv.reader(answer.text.splitlines())
    assert header[:5] == ["namespace", "user", "day", "queued_seconds", "resource"]
    assert [[namespace, user.removeprefix("'"), day, resource] for namespace, user, day, _, resource, *_ in lines] == (
        expected
    )
    # As with other streams: a compressor would hold memory for as long as its client reads.
    assert "content-encoding" not in answer.headers
    assert "content-length" not in answer.headers
    assert answer.headers["cache-control"] == "no-store"
    head = await gateway.client.head(USAGE, params=CSV)
    assert (head.status_code, head.content, head.headers["content-type"]) == (200, b"", "text/csv; charset=utf-8")


async def test_it_has_a_header_without_groups(gateway: Gateway) -> None:
    answer = await gateway.client.get(USAGE, params={"format": "csv"})
    assert answer.text.splitlines() == [
        "queued_seconds,resource,useful_seconds,repeated_seconds,disrupted_seconds,idle_seconds"
    ]


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_no_text_is_a_formula(begin: str) -> None:
    [line] = csv_lines(ShownUsage(key=(f"{begin}cmd()", "a=b")))
    assert line[:2] == [f"'{begin}cmd()", "a=b"]


class Reads:
    """Reads of pages, of which some fail, by their numbers, and the one with the number `waits` waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail: dict[int, DomainError], *, waits: int = 0) -> None:
        self.count = 0
        self._fail, self._waits, self._read = fail, waits, usage_reads.read_page
        monkeypatch.setattr(usage_reads, "read_page", self)

    async def __call__(self, *arguments: Any) -> usage_reads.UsagePart:
        self.count += 1
        if (error := self._fail.get(self.count)) is not None:
            raise error
        if self.count == self._waits:
            await asyncio.Event().wait()
        return await self._read(*arguments)


async def cut_off(gateway: Gateway, meanwhile: Callable[[], Any]) -> list[str]:
    """Return the lines of a CSV that is cut off, during which something else happens."""
    received = b""
    async with asyncio.timeout(60), gateway.client.stream("GET", USAGE, params=CSV) as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx2.RemoteProtocolError):  # noqa: PT012  what was received before is kept
            async for piece in answer.aiter_raw():
                received += piece
                await meanwhile()
    return received.decode().splitlines()


@pytest.mark.usefixtures("one_group_at_once")
@pytest.mark.parametrize("error", [DatabaseUnavailable("the server has ended"), Overloaded("too many lists")])
async def test_it_is_cut_off_where_a_page_fails(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, error: DomainError
) -> None:
    await some_usage(gateway)
    monkeypatch.setattr(usage_csv, "_PATIENCE", 0)
    Reads(monkeypatch, {2: error})

    async def nothing() -> None: ...

    lines = await cut_off(gateway, nothing)
    assert len(lines) == 3, "the header and the resources of the first group"
    assert gateway.services.long_requests.count == 0


@pytest.mark.usefixtures("one_group_at_once")
async def test_it_is_cut_off_where_the_process_stops(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    await some_usage(gateway)
    reads = Reads(monkeypatch, {}, waits=2)

    async def stop() -> None:
        await until(lambda: reads.count, (2).__eq__, what="the second page is read")
        gateway.services.long_requests.close()

    assert len(await cut_off(gateway, stop)) == 3


async def test_a_failure_before_its_first_page_is_an_answer(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads(monkeypatch, {1: DatabaseUnavailable("the server has ended"), 2: Overloaded("too many lists")})
    for code in ("DatabaseUnavailable", "Overloaded"):
        answer = await gateway.client.get(USAGE, params=CSV)
        assert (answer.status_code, answer.json()["code"]) == (503, code)
    assert reads.count == 2, "the client asks again"


@pytest.mark.usefixtures("one_group_at_once")
async def test_an_overload_between_its_pages_does_not_end_it(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    await some_usage(gateway)
    whole = (await gateway.client.get(USAGE, params=CSV)).text
    monkeypatch.setattr(reading, "_AGAIN", 0)
    reads = Reads(monkeypatch, dict.fromkeys((2, 3, 5), Overloaded("too many lists")))
    assert (await gateway.client.get(USAGE, params=CSV)).text == whole
    assert reads.count == 6


@pytest.mark.usefixtures("one_group_at_once")
async def test_it_holds_no_more_than_it_sends(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    await some_usage(gateway)
    held: list[int] = []
    kept: list[bytes] = []
    resize = HeldAnswer.resize

    def recorded(self: HeldAnswer, count: int) -> None:
        held.append(count)
        resize(self, count)

    def release() -> None:
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        kept.append(frame.f_back.f_locals["text"])
        share.release()

    monkeypatch.setattr(HeldAnswer, "resize", recorded)
    monkeypatch.setattr(usage_csv, "release", release)
    answer = await gateway.client.get(USAGE, params=CSV)
    header, text = answer.text.split("\r\n", 1)
    assert header
    assert (len(held), sum(held)) == (3, len(text.encode())), "the bytes of each page"
    assert kept == [b"", b""], "nothing of a page while the next one waits for room"


def test_clients_wait_for_a_page_for_longer_than_it_may_take() -> None:
    timeouts = DatabaseTimeouts()
    waits = usage_csv._PATIENCE + objects._LIST_WAIT + fair_memory.WAIT_SECONDS + timeouts.acquire
    statements = 3 * (timeouts.statement + timeouts.silence)
    assert waits + statements < client._SILENCE


FILL = """
WITH made AS (
    INSERT INTO usage_groups (namespace, user_id, user_name, queue, kind, labels)
    SELECT 'team-a', 'user:' || n, 'user-' || n, '', 'GenericJob', '{}' FROM generate_series(1, 80) AS n RETURNING id
) INSERT INTO usage_days (group_id, day, resource, useful, repeated, disrupted, idle)
SELECT id, '2026-01-01', 'example.com/device-' || n, 86400000001, 8640000001, 864000001, 86400001
FROM made, generate_series(1, 30) AS n
"""


async def test_the_room_of_a_page_suffices(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The groups have more sums than a page. More than the share of a caller, which is half, counts as the share."""
    assert usage_reads.MOST_SUMS * reading._SUM_BYTES < MAX_BYTES // 2
    monkeypatch.setattr(usage_reads, "MOST_SUMS", 2000)
    rooms: list[int] = []

    async def recorded(count: int) -> None:
        rooms.append(count)

    monkeypatch.setattr(reading, "room_for", recorded)
    async with gateway.db.begin() as connection:
        await connection.execute(FILL)
    query = UsageQuery(first=date(2026, 1, 1), last=date(2026, 1, 2), by=("user",))
    tracemalloc.start()
    try:
        found, end = await gateway.services.usage.page(query, before_all(query), usage_csv.PAGE, "alice")
        assert usage_csv.csv_text(line for usage in found for line in csv_lines(usage))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert end is not None
    assert rooms == [pytest.approx(peak, rel=0.5)]
    assert peak < rooms[0]
