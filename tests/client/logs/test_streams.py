"""Following the logs of several replicas. A small gateway of the test answers by path."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from typing_extensions import override

from jobgate.cli.logs import streams as log_streams
from jobgate.cli.logs.lines import Source
from jobgate.cli.logs.streams import LogFollower, Wanted
from jobgate.client import AsyncClient
from tests.client.scripted import ok, problem, replica, state

LIVE = {"Jobgate-Log-Source": "live", "Jobgate-Log-Truncated": "false"}
STORED = {"Jobgate-Log-Source": "stored", "Jobgate-Log-Truncated": "false"}
Logs = Callable[[str, int, int], httpx2.Response | Exception]


class FakeGateway:
    """Answers polls of the status with each given state in turn, each with its replicas, and logs by a function."""

    def __init__(self, *moments: tuple[str, list[dict[str, Any]]], log: Logs) -> None:
        self._moments = list(moments)
        self._at = -1
        self._log = log
        self.log_queries: list[dict[str, str]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        last = request.url.path.rpartition("/")[2]
        if last == "status":
            self._at = min(self._at + 1, len(self._moments) - 1)
            return ok(state(self._moments[self._at][0]), ETag=f'"{self._at}"')
        if last == "replicas":
            return ok({"items": self._moments[self._at][1], "nextPageToken": None})
        assert last == "logs"
        query = dict(request.url.params)
        self.log_queries.append(query)
        answer = self._log(query["task"], int(query["rank"]), int(query["attempt"]))
        if isinstance(answer, Exception):
            raise answer
        return answer


async def follow(gateway: FakeGateway, *, most: int = 10, **wanted: Any) -> tuple[list[tuple[Source, str]], list[str]]:
    lines: list[tuple[Source, str]] = []
    reports: list[str] = []
    async with AsyncClient("http://x", transport=httpx2.MockTransport(gateway)) as client:
        follower = LogFollower(
            client=client,
            wanted=Wanted(**wanted),
            emit=lambda source, line: lines.append((source, line)),
            report=reports.append,
            most=most,
        )
        async with asyncio.timeout(60):
            await follower.run("tour")
    return lines, reports


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_streams, "_AGAIN", 0.0)


def live(*lines: str, at: int | None = None) -> httpx2.Response:
    """A live log with a line for each second, or with all lines in one second."""
    seconds = range(len(lines)) if at is None else [at] * len(lines)
    text = "".join(f"2026-01-31T12:00:{second:02}Z {line}\n" for second, line in zip(seconds, lines, strict=True))
    return httpx2.Response(200, headers=LIVE, content=text.encode())


@pytest.mark.asyncio
async def test_every_attempt_of_a_replica_is_read_in_order() -> None:
    def log(_: str, rank: int, attempt: int) -> httpx2.Response:
        return live(f"{rank} in attempt {attempt}")

    gateway = FakeGateway(
        ("Pending", [replica(0, "Running"), replica(1, "Creating")]),
        ("Running", [replica(0, "Running", attempt=3), replica(1, "Running")]),
        ("Succeeded", [replica(0, "Succeeded", attempt=3), replica(1, "Succeeded")]),
        log=log,
    )
    lines, reports = await follow(gateway)
    assert [line for source, line in lines if source.rank == 0] == [f"0 in attempt {n}" for n in (1, 2, 3)]
    assert [line for source, line in lines if source.rank == 1] == ["1 in attempt 1"]
    assert reports == []


@pytest.mark.asyncio
async def test_a_replica_that_waits_for_its_next_attempt_begins_with_the_log_of_the_last_one() -> None:
    gateway = FakeGateway(
        ("Restarting", [replica(0, "Creating", attempt=3) | {"logAttempt": 2}]),
        ("Succeeded", [replica(0, "Succeeded", attempt=3) | {"logAttempt": 3}]),
        log=lambda _, __, attempt: live(f"attempt {attempt}"),
    )
    lines, reports = await follow(gateway)
    assert ([line for _, line in lines], reports) == (["attempt 2", "attempt 3"], [])


@pytest.mark.asyncio
@pytest.mark.parametrize("at", [None, 7], ids=["one line in each second", "all lines at the same time"])
async def test_a_lost_connection_repeats_no_line(at: int | None) -> None:
    answers: list[httpx2.Response] = [
        live("one", "two", at=at),
        httpx2.Response(200, headers=LIVE, content=b"[jobgate] the log is cut off here: the process stops\n"),
        live("one", "two", "three", at=at),
        httpx2.Response(200, headers=STORED, content=b"zero\none\ntwo\nthree\nfour\n")
        if at is None
        else live("one", "two", "three", "four", at=at),
    ]
    broken = [httpx2.ReadError("reset"), httpx2.ReadError("reset"), httpx2.ReadError("reset"), None]

    class Broken(httpx2.AsyncByteStream):
        """A body that ends with an error."""

        def __init__(self, answer: httpx2.Response, error: Exception | None) -> None:
            self._content, self._error = answer.content, error

        @override
        async def __aiter__(self) -> Any:
            yield self._content
            if self._error is not None:
                raise self._error

    def log(*_: Any) -> httpx2.Response:
        answer = answers.pop(0)
        return httpx2.Response(200, headers=answer.headers, stream=Broken(answer, broken.pop(0)))

    gateway = FakeGateway(("Running", [replica(0, "Running")]), ("Succeeded", [replica(0, "Succeeded")]), log=log)
    lines, reports = await follow(gateway, tail=5)
    assert [line for _, line in lines] == ["one", "two", "three", "four"]
    assert reports == []
    assert "tailLines" in gateway.log_queries[0]
    assert "tailLines" not in gateway.log_queries[-1]
    # Not a duration until now: the lines after the last one may be older than the connection.
    assert gateway.log_queries[-1].get("sinceTime") == f"2026-01-31T12:00:{2 if at is None else at:02}+00:00"
    assert "sinceSeconds" not in gateway.log_queries[-1]


@pytest.mark.asyncio
async def test_a_log_that_is_not_there_yet_is_asked_for_again() -> None:
    answers = [problem(404, "NoLog"), live("one")]
    gateway = FakeGateway(
        ("Running", [replica(0, "Running")]),
        ("Succeeded", [replica(0, "Succeeded")]),
        log=lambda *_: answers.pop(0),
    )
    assert [line for _, line in (await follow(gateway))[0]] == ["one"]


@pytest.mark.asyncio
async def test_a_waiting_job_is_reported_and_too_many_replicas_are_cut() -> None:
    gateway = FakeGateway(
        ("Pending", [replica(rank, "Creating") for rank in range(3)]),
        ("Running", [replica(rank, "Running") for rank in range(3)]),
        ("Failed", [replica(rank, "Failed") for rank in range(3)]),
        log=lambda _, rank, __: live(f"{rank}"),
    )
    lines, reports = await follow(gateway, most=2)
    assert {source.rank for source, _ in lines} == {0, 1}
    assert reports == [
        "no log yet: tour  Pending  2 pending",
        "only 2 replicas are followed; --task and --rank select others",
    ]


@pytest.mark.asyncio
async def test_only_the_wanted_replica_is_followed() -> None:
    replicas = [replica(0, "Running", task="ps"), replica(0, "Running"), replica(1, "Running")]
    gateway = FakeGateway(("Succeeded", replicas), log=lambda task, rank, _: live(f"{task} {rank}"))
    assert [line for _, line in (await follow(gateway, task="worker", rank=1))[0]] == ["worker 1"]


@pytest.mark.asyncio
async def test_a_log_that_does_not_exist_is_reported_and_does_not_stop_the_others() -> None:
    gateway = FakeGateway(
        ("Failed", [replica(0, "Failed"), replica(1, "Failed")]),
        log=lambda _, rank, __: problem(404, "NoLog") if rank == 0 else live("one"),
    )
    lines, reports = await follow(gateway)
    assert [line for _, line in lines] == ["one"]
    assert reports == ["worker[0]: it is NoLog"]
