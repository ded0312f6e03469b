"""The logs of several replicas in one response."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx2
import pytest
import pytest_asyncio
from typing_extensions import override

from app.db.jobs import evidence
from app.db.jobs.evidence import Capture, Log
from app.domain.errors import NotFound, Unavailable
from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, Replica
from app.domain.vocabulary import Evidence, JobPhase, Outcome, ReplicaPhase
from app.services.limits.long_request_limits import LongRequestLimits
from app.services.logs import merged as merged_logs
from app.services.logs.channels import ArrivalOrder, LineChannel, TimeOrder
from app.services.logs.containers import LogReader, LogRequest
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, running_gateway, until_open
from tests.support.waiting import until

LOGS = jobs_path(NAMESPACE, "hello", "logs")
JSONL = {"Accept": "application/jsonl"}
AT = "2026-01-02T03:04:05.{:09}Z"


class Pods(LogReader):
    """The logs of pods by name. A log grows when a test adds lines, and ends when the test ends its pod."""

    def __init__(self) -> None:
        self.lines: dict[str, list[bytes]] = {}
        self.ended: set[str] = set()
        self.broken: set[str] = set()  # followed logs that break off
        self.open = self.passed = 0
        self.asked: list[LogRequest] = []
        self._changed = asyncio.Condition()

    async def write(self, pod: str, *texts: str) -> None:
        lines = self.lines.setdefault(pod, [])
        lines += [f"{AT.format(len(lines) + number)} {text}\n".encode() for number, text in enumerate(texts, 1)]
        await self._notify()

    async def end(self, pod: str) -> None:
        self.ended.add(pod)
        await self._notify()

    async def break_off(self, pod: str) -> None:
        self.broken.add(pod)
        await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    @override
    async def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        self.asked.append(request)
        lines = self.lines.get(request.pod)
        if lines is None:
            raise NotFound("no such pod", code="NoLog")
        self.open += 1
        try:
            sent = max(0, len(lines) - request.tail_lines) if request.tail_lines is not None else 0
            while True:
                for line in lines[sent:]:
                    self.passed += 1
                    yield line
                    sent += 1
                if not request.follow or (request.pod in self.ended and sent == len(lines)):
                    return
                if request.pod in self.broken:
                    self.broken.discard(request.pod)
                    raise Unavailable("the cluster went away", code="ClusterUnreachable")
                async with self._changed:
                    await self._changed.wait()
        finally:
            self.open -= 1


@pytest.fixture
def pods() -> Pods:
    return Pods()


@pytest_asyncio.fixture
async def gateway(database_url: str, pods: Pods) -> AsyncIterator[Gateway]:
    async with running_gateway(database_url, log_reader=pods) as running:
        yield running


def replica(rank: int, *, task: str = "worker", number: int = 1, phase: ReplicaPhase = ReplicaPhase.RUNNING) -> Replica:
    containers = (
        ObservedContainer(name="setup", state="terminated", init=True),
        ObservedContainer(name="main", state="running"),
    )
    attempt = Attempt(number=number, pod_uid=f"{task}-{rank}-{number}", phase=phase, containers=containers)
    return Replica(key=Rank(task, rank), attempt=attempt)


def ended_attempt(one: Replica, outcome: Outcome) -> Attempt:
    """The attempt after its end, with its evidence stored."""
    return replace(one.attempt, outcome=outcome, phase=ReplicaPhase(outcome), evidence=Evidence.CAPTURED)


async def running_job(gateway: Gateway, *replicas: Replica) -> str:
    uid: str = (await gateway.submit())["uid"]
    await gateway.conclude(uid, {"phase": JobPhase.RUNNING}, replicas=replicas)
    return uid


class Follower:
    """A client that follows merged logs, and the lines that it has received."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self.lines: list[dict[str, Any]] = []
        self.is_over = False

    async def read(self) -> None:
        async for line in self.answer.aiter_lines():
            self.lines.append(json.loads(line))
        self.is_over = True

    async def until(self, *texts: str) -> None:
        """Wait until these are the texts of all lines, in any order."""
        await until(lambda: sorted(line["line"] for line in self.lines), lambda found: found == sorted(texts))


@asynccontextmanager
async def following(gateway: Gateway, query: str = "") -> AsyncIterator[Follower]:
    url = f"{LOGS}?merged=true&follow=true{query}"
    async with gateway.client.stream("GET", url, headers=JSONL) as answer, asyncio.TaskGroup() as group:
        assert answer.status_code == 200
        follower = Follower(answer)
        reading = group.create_task(follower.read())
        yield follower
        reading.cancel()


async def test_the_logs_of_all_replicas(gateway: Gateway, pods: Pods) -> None:
    await running_job(gateway, replica(0), replica(1), replica(0, task="chief"))
    await pods.write("hello-worker-0", "one", 'two \\ "quoted"')
    await pods.write("hello-worker-1", "three")
    await pods.write("hello-chief-0", "four")
    answer = await gateway.client.get(f"{LOGS}?merged=true", headers=JSONL)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/jsonl")
    lines = sorted(map(json.loads, answer.text.splitlines()), key=lambda line: (line["task"], line["rank"], line["at"]))
    expected = [
        ("chief", 0, 1, "four"),
        ("worker", 0, 1, "one"),
        ("worker", 0, 2, 'two \\ "quoted"'),
        ("worker", 1, 1, "three"),
    ]
    assert lines == [
        {"task": task, "rank": rank, "attempt": 1, "at": AT.format(nano), "line": text}
        for task, rank, nano, text in expected
    ]
    assert "jobgate-log-left-out" not in answer.headers
    assert {request.container for request in pods.asked} == {"main"}
    text = await gateway.client.get(f"{LOGS}?merged=true&task=worker&tailLines=1")
    assert sorted(text.text.splitlines()) == ['worker[0] two \\ "quoted"', "worker[1] three"]
    timestamped = await gateway.client.get(f"{LOGS}?merged=true&task=chief&timestamps=true")
    assert timestamped.text == f"chief[0] {AT.format(1)} four\n"
    assert pods.open == 0


async def test_the_same_by_uid(gateway: Gateway, pods: Pods) -> None:
    uid = await running_job(gateway, replica(0))
    await pods.write("hello-worker-0", "one")
    assert (await gateway.client.get(f"/api/v1/jobs/{uid}/logs?merged=true")).text == "worker[0] one\n"


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("rank=0", 400, "InvalidParameter"),
        ("attempt=1", 400, "InvalidParameter"),
        ("previous=true", 400, "InvalidParameter"),
        ("task=nothing", 400, "UnknownTask"),
    ],
)
async def test_refused_parameters(gateway: Gateway, query: str, status: int, code: str) -> None:
    await running_job(gateway, replica(0))
    answer = await gateway.client.get(f"{LOGS}?merged=true&{query}")
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (status, code)


async def test_a_job_without_replicas_has_no_log(gateway: Gateway) -> None:
    await gateway.submit()
    answer = await gateway.client.get(f"{LOGS}?merged=true")
    assert (answer.status_code, answer.json()["code"]) == (404, "NoLog")


async def test_the_log_of_a_pod_that_is_gone_is_the_stored_one(gateway: Gateway, pods: Pods) -> None:
    uid = await running_job(gateway, replica(0), replica(1))
    await pods.write("hello-worker-1", "live")
    logs = {"main": Log(tail=b"kept\nlast words", truncated=True)}
    capture = Capture(key=Rank("worker", 0), attempt=1, state=Evidence.CAPTURED, logs=logs, events=[])
    assert await evidence.store(gateway.db, await gateway.lease(), UUID(uid), [capture])
    answer = await gateway.client.get(f"{LOGS}?merged=true", headers=JSONL)
    stored = [line for line in map(json.loads, answer.text.splitlines()) if line["rank"] == 0]
    assert [(line["at"], line["line"]) for line in stored] == [(None, "kept"), (None, "last words")]


async def test_replicas_and_attempts_join_until_the_job_ends(gateway: Gateway, pods: Pods) -> None:
    uid = await running_job(gateway, replica(0))
    await pods.write("hello-worker-0", "first")
    async with following(gateway) as follower:
        await follower.until("first")
        await pods.write("hello-worker-1", "joined")
        await gateway.conclude(uid, {}, replicas=[replica(1)])
        await follower.until("first", "joined")
        # The first replica is restarted.
        ended = ended_attempt(replica(0), Outcome.FAILED)
        await pods.end("hello-worker-0")
        await until(lambda: pods.open, lambda found: found == 1)
        pods.ended.clear()
        pods.lines["hello-worker-0"] = []
        await pods.write("hello-worker-0", "again")
        await gateway.conclude(uid, {}, replicas=[replica(0, number=2)], ended=[(Rank("worker", 0), ended)])
        await follower.until("first", "joined", "again")
        assert {(line["rank"], line["attempt"]) for line in follower.lines} == {(0, 1), (1, 1), (0, 2)}
        over = [
            replace(live, attempt=ended_attempt(live, Outcome.SUCCEEDED)) for live in (replica(0, number=2), replica(1))
        ]
        await gateway.conclude(uid, {"phase": JobPhase.SUCCEEDED}, replicas=over)
        await pods.write("hello-worker-1", "last words")
        await pods.end("hello-worker-0")
        await pods.end("hello-worker-1")
        await until(lambda: follower.is_over)
        assert follower.lines[-1]["line"] == "last words"
    await until_open(gateway, 0)
    assert pods.open == 0


async def test_a_log_that_breaks_off_continues_without_repeated_lines(gateway: Gateway, pods: Pods) -> None:
    await running_job(gateway, replica(0))
    await pods.write("hello-worker-0", "one", "two")
    async with following(gateway) as follower:
        await follower.until("one", "two")
        await pods.break_off("hello-worker-0")
        notice = "[jobgate] the log is cut off here: the cluster went away"
        await follower.until("one", "two", notice)
        await pods.write("hello-worker-0", "three")
        await follower.until("one", "two", notice, "three")


async def test_the_lowest_ranks_are_read_and_the_others_named(
    gateway: Gateway, pods: Pods, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merged_logs, "MOST_REPLICAS", 5)
    replicas = [*(replica(rank) for rank in range(6)), *(replica(rank, task="chief") for rank in range(2))]
    await running_job(gateway, *replicas)
    for live in replicas:
        await pods.write(f"hello-{live.key.task}-{live.key.rank}", str(live.key))
    answer = await gateway.client.get(f"{LOGS}?merged=true", headers=JSONL)
    found = sorted(json.loads(line)["line"] for line in answer.text.splitlines())
    assert found == ["chief[0]", "chief[1]", "worker[0]", "worker[1]", "worker[2]"]
    assert answer.headers["jobgate-log-left-out"] == "worker[3-5]"


async def test_a_merged_log_counts_for_each_replica(database_url: str, pods: Pods) -> None:
    limits = LongRequestLimits(logs=6)  # three of them for one token
    async with running_gateway(database_url, log_reader=pods, long_requests=limits) as gateway:
        await running_job(gateway, *(replica(rank) for rank in range(4)))
        for rank in range(4):
            await pods.write(f"hello-worker-{rank}", str(rank))
        async with following(gateway) as follower:
            assert follower.answer.headers["jobgate-log-left-out"] == "worker[3]"
            await follower.until("0", "1", "2")
            refused = await gateway.client.get(f"{LOGS}?rank=3")
            assert (refused.status_code, refused.json()["code"]) == (429, "TooManyOpen")
        await until_open(gateway, 0)
        assert (await gateway.client.get(f"{LOGS}?merged=true")).status_code == 200


async def test_the_lines_of_all_replicas_are_in_the_order_of_their_times(gateway: Gateway, pods: Pods) -> None:
    replicas, number = 20, 30
    await running_job(gateway, *(replica(rank) for rank in range(replicas)))
    for rank in range(replicas):
        pod = f"hello-worker-{rank}"
        times = [AT.format(replicas * line + rank) for line in range(number)]
        pods.lines[pod] = [f"{at} {rank}\n".encode() for at in times]
    answer = await gateway.client.get(f"{LOGS}?merged=true&timestamps=true")
    found = [line.split()[1] for line in answer.text.splitlines()]
    assert found == [AT.format(place) for place in range(replicas * number)]


@pytest.mark.parametrize("follow", [False, True])
async def test_a_client_that_does_not_read_slows_down_the_reading(
    gateway: Gateway, pods: Pods, *, follow: bool
) -> None:
    replicas, number = 3, 100
    uid = await running_job(gateway, *(replica(rank) for rank in range(replicas)))
    for rank in range(replicas):
        await pods.write(f"hello-worker-{rank}", *map(str, range(number)))
    request = merged_logs.MergedRequest(uid=UUID(uid), namespace=NAMESPACE, follow=follow)
    merged = await gateway.services.merged_logs.open(request, lambda _: True)
    async with aclosing(merged.batches()) as batches:
        lines = list(await anext(batches))
        most = await until_full(merged.channel)
        # Each reader has at most one line that waits for room in the channel, and has tried its log with one line.
        assert pods.passed <= len(lines) + most + 2 * replicas
        while len(lines) < replicas * number:
            lines += await anext(batches)
    for rank in range(replicas):
        assert [line.text for line in lines if line.key.rank == rank] == [str(n).encode() for n in range(number)]


async def until_full(channel: LineChannel) -> int:
    """Wait until the channel has no room, and return how many lines may wait in it."""
    if isinstance(channel, ArrivalOrder):
        await until(channel.waiting.full)
        return channel.waiting.maxsize
    assert isinstance(channel, TimeOrder)
    rooms = channel.room.values()
    await until(lambda: all(room.locked() for room in rooms))
    return 2 * len(rooms)  # beside the one in the queue, one of each log may be known already


async def test_a_token_reads_only_the_logs_that_it_reaches(database_url: str, pods: Pods) -> None:
    async with running_gateway(database_url, closed=True, log_reader=pods) as gateway:
        submitter = await gateway.token("submitter", "*")
        gateway.client.headers.update(submitter)
        await running_job(gateway, replica(0))
        await pods.write("hello-worker-0", "one")
        for namespace, status in ((NAMESPACE, 200), ("other", 404)):
            viewer = await gateway.token("viewer", namespace)
            assert (await gateway.client.get(f"{LOGS}?merged=true", headers=viewer)).status_code == status
