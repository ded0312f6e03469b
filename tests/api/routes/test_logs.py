"""The log of one replica: the attempt and the container that it is of, and why there is none."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from typing_extensions import override

from app.db.jobs import evidence
from app.db.jobs.evidence import Capture, Log
from app.domain.errors import NotFound
from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, Replica
from app.domain.vocabulary import Evidence, JobPhase, Outcome, ReplicaPhase, StopReason
from app.services.logs.containers import LogReader, LogRequest
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, running_gateway

LOGS = jobs_path(NAMESPACE, "hello", "logs")
KEY = Rank("worker", 0)
RAN = (ObservedContainer(name="main", state="terminated", exit_code=1, restart_count=1),)
NO_SETUP = (
    ObservedContainer(name="setup", state="terminated", exit_code=3, restart_count=1, init=True),
    ObservedContainer(name="main", state="waiting"),
)
WAITING = Attempt(number=3)
GONE = {"outcome": Outcome.STOPPED, "phase": ReplicaPhase.DELETED, "evidence": Evidence.UNAVAILABLE}
CANCELLED = Attempt(number=3, stopping=StopReason.CANCEL, evidence_reason="the attempt had no pod", **GONE)  # type: ignore[arg-type]
VANISHED = Attempt(number=3, pod_uid="3", containers=RAN, evidence_reason="the pod was gone", **GONE)  # type: ignore[arg-type]


class NoPods(LogReader):
    """A cluster without pods."""

    pods = frozenset[str]()

    @override
    async def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        if request.pod not in self.pods:
            raise NotFound("no such pod", code="NoLog")
        yield b""


@pytest_asyncio.fixture
async def gateway(database_url: str) -> AsyncIterator[Gateway]:
    async with running_gateway(database_url, log_reader=NoPods()) as running:
        yield running


def crashed(number: int, containers: tuple[ObservedContainer, ...] = RAN) -> Attempt:
    return Attempt(
        number=number, pod_uid=str(number), outcome=Outcome.FAILED, phase=ReplicaPhase.FAILED, containers=containers
    )


async def crashed_job(
    gateway: Gateway,
    current: Attempt,
    containers: tuple[ObservedContainer, ...] = RAN,
    ended: Sequence[int] = (1, 2),
    phase: JobPhase = JobPhase.RESTARTING,
) -> None:
    """A job whose earlier attempts have logs; each line names attempt and container."""
    uid = (await gateway.submit())["uid"]
    former = [(KEY, crashed(number, containers)) for number in ended]
    await gateway.conclude(uid, {"phase": phase}, replicas=[Replica(key=KEY, attempt=current)], ended=former)
    captures = [
        Capture(
            key=KEY,
            attempt=number,
            state=Evidence.CAPTURED,
            logs={
                container.name: Log(tail=f"{container.name} {number}\n".encode())
                for container in containers
                if container.restart_count
            },
        )
        for number in ended
    ]
    for capture in captures:
        assert await evidence.store(gateway.db, await gateway.lease(), UUID(uid), [capture])


@pytest.mark.parametrize(
    ("current", "phase"),
    [
        (WAITING, JobPhase.RESTARTING),
        (CANCELLED, JobPhase.CANCELLED),
        (VANISHED, JobPhase.FAILED),
        (Attempt(number=3, pod_uid="3", phase=ReplicaPhase.PENDING), JobPhase.PENDING),
    ],
)
async def test_the_newest_attempt_with_a_log_is_shown_and_named(
    gateway: Gateway, current: Attempt, phase: JobPhase
) -> None:
    await crashed_job(gateway, current, phase=phase)
    answer = await gateway.client.get(LOGS)
    assert (answer.status_code, answer.text) == (200, "main 2\n")
    assert answer.headers["jobgate-log-attempt"] == "2"
    assert answer.headers["jobgate-log-container"] == "main"
    replica = (await gateway.client.get(jobs_path(NAMESPACE, "hello", "replicas"))).json()["items"][0]
    assert (replica["attempt"], replica["logAttempt"]) == (3, 2)
    merged = await gateway.client.get(LOGS, params={"merged": True}, headers={"Accept": "application/jsonl"})
    assert merged.json() == {"task": "worker", "rank": 0, "attempt": 2, "at": None, "line": "main 2"}


@pytest.mark.parametrize(
    ("current", "reason"),
    [
        (WAITING, "attempt 3 has not started: there is no log yet"),
        (CANCELLED, "attempt 3 has no log: the attempt had no pod"),
    ],
)
async def test_a_requested_attempt_without_a_log_names_those_with_one(
    gateway: Gateway, current: Attempt, reason: str
) -> None:
    await crashed_job(gateway, current)
    answer = await gateway.client.get(f"{LOGS}?attempt=3")
    assert (answer.status_code, answer.json()["code"]) == (404, "NoLog")
    assert answer.json()["detail"] == f"worker[0]: {reason}; accepted: attempt 1 or 2"


async def test_a_container_without_a_log_names_those_with_one(gateway: Gateway) -> None:
    setup = ObservedContainer(name="setup", state="running", init=True)
    main = ObservedContainer(name="main", state="waiting", default=True)
    current = Attempt(number=3, pod_uid="3", phase=ReplicaPhase.PENDING, containers=(setup, main))
    await crashed_job(gateway, current)
    answer = await gateway.client.get(f"{LOGS}?attempt=3")
    assert (answer.status_code, answer.json()["code"]) == (404, "NoLog")
    assert answer.json()["detail"] == "worker[0]: no such pod; accepted: container setup, or attempt 1 or 2"


async def test_a_replica_without_any_log_says_so(gateway: Gateway) -> None:
    await crashed_job(gateway, Attempt(number=1), ended=())
    answer = await gateway.client.get(LOGS)
    assert answer.json()["detail"] == "worker[0]: attempt 1 has not started: there is no log yet"
    replica = (await gateway.client.get(jobs_path(NAMESPACE, "hello", "replicas"))).json()["items"][0]
    assert replica["logAttempt"] is None


@pytest.mark.parametrize(
    ("params", "status", "text"),
    [
        ({}, 200, "setup 2\n"),
        ({"container": "setup", "attempt": 1}, 200, "setup 1\n"),
        ({"container": "main"}, 404, ""),
    ],
)
async def test_the_init_container_that_failed_has_the_default_log(
    gateway: Gateway, params: dict[str, Any], status: int, text: str
) -> None:
    await crashed_job(gateway, WAITING, NO_SETUP)
    answer = await gateway.client.get(LOGS, params=params)
    assert answer.status_code == status
    if text:
        assert (answer.text, answer.headers["jobgate-log-container"]) == (text, "setup")
