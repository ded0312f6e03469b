"""Queues as the controller has recorded them, limited to the namespaces that the caller may see."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from app.db import queues
from app.db.installation import heartbeats
from app.db.queues import KueueRecord, QueueKey, QueueRow
from app.domain.kinds.job_kind import Limits
from app.domain.queueing.queue_status import FlavorQuota, QueuedJob, QueueStatus
from app.domain.reservations.pod_limits import PodLimits
from app.domain.status.observed import KueueState
from app.domain.vocabulary import PendingCode
from tests.support.gateways.gateway import Gateway, jobs_path, manifest, running_gateway

QUEUES = "/api/v1/queues"
AT = datetime(2026, 3, 1, tzinfo=UTC)
STATUS = QueueStatus(
    cluster_queue="research",
    active=True,
    quotas=(FlavorQuota(flavor="big", resource="cpu", nominal="4", used="3", used_by_queue="1"),),
    pending=7,
    admitted=2,
)


def a_job(name: str, number: int = 1, position: int | None = None) -> QueuedJob:
    return QueuedJob(
        uid=str(UUID(int=number)),
        kind="GenericJob",
        name=name,
        priority=5,
        since=AT,
        code=PendingCode.WAITING_FOR_QUOTA,
        message="insufficient unused quota",
        position=position,
    )


def a_queue(namespace: str, name: str = "team", jobs: Sequence[QueuedJob] = (), more: int = 0) -> QueueRow:
    status = QueueStatus(cluster_queue="research", active=True, jobs=tuple(jobs), queued=len(jobs) + more)
    return QueueRow(namespace=namespace, name=name, observed_at=AT, status=status)


async def recorded(
    gateway: Gateway,
    *rows: QueueRow,
    gone: Sequence[QueueKey] = (),
    state: KueueState = KueueState.LISTED,
    message: str = "",
    observed_at: datetime | None = None,
) -> None:
    known = KueueRecord(state=state, message=message, observed_at=observed_at)
    await queues.write(gateway.db, await gateway.lease(), known, rows, gone)


async def listed(gateway: Gateway, headers: dict[str, str] | None = None, **params: Any) -> list[tuple[str, str]]:
    """The namespaces and names of all pages."""
    found: list[tuple[str, str]] = []
    token: str | None = ""
    while token is not None:
        page = (
            await gateway.client.get(QUEUES, headers=headers, params=params | ({"pageToken": token} if token else {}))
        ).json()
        found += [(queue["namespace"], queue["name"]) for queue in page["items"]]
        token = page["nextPageToken"]
    return found


async def test_a_queue_has_its_quota_and_its_jobs_in_order(gateway: Gateway) -> None:
    lent = FlavorQuota(flavor="lent", resource="cpu", cohort_free="6", cohort_most="10")
    status = QueueStatus(
        cluster_queue="research",
        cohort="ml",
        active=False,
        message="stopped",
        quotas=(*STATUS.quotas, lent),
        pending=7,
        admitted=2,
        queued=5,
        jobs=(a_job("first", 1, 3), a_job("second", 2)),
    )
    await recorded(gateway, QueueRow(namespace="team-a", name="team", observed_at=AT, status=status))
    answer = await gateway.client.get("/api/v1/namespaces/team-a/queues/team")
    alone = {"resource": "cpu", "cohortFree": None, "cohortMost": None}
    in_cohort = {"resource": "cpu", "cohortFree": "6", "cohortMost": "10"}
    waiting = {
        "kind": "GenericJob",
        "priority": 5,
        "since": "2026-03-01T00:00:00Z",
        "code": "WaitingForQuota",
        "message": "insufficient unused quota",
    }
    assert answer.json() == {
        "namespace": "team-a",
        "name": "team",
        "clusterQueue": "research",
        "cohort": "ml",
        "active": False,
        "message": "stopped",
        "resources": [
            {"flavor": "big", "nominalQuota": "4", "used": "3", "usedByQueue": "1", **alone},
            {"flavor": "lent", "nominalQuota": None, "used": None, "usedByQueue": None, **in_cohort},
        ],
        "pending": 7,
        "admitted": 2,
        "pendingJobs": [
            {"position": 3, "name": "first", "uid": str(UUID(int=1)), **waiting},
            {"position": None, "name": "second", "uid": str(UUID(int=2)), **waiting},
        ],
        "pendingJobsOmitted": 3,
        "observedAt": "2026-03-01T00:00:00Z",
    }


async def test_a_list_has_the_first_jobs_of_each_queue(gateway: Gateway) -> None:
    jobs = [a_job(f"job-{number}", number) for number in range(15)]
    await recorded(gateway, a_queue("team-a", jobs=jobs, more=100), a_queue("team-b"))
    first, second = (await gateway.client.get(QUEUES)).json()["items"]
    assert [job["name"] for job in first["pendingJobs"]] == [f"job-{number}" for number in range(10)]
    assert (first["pendingJobsOmitted"], second["pendingJobs"], second["pendingJobsOmitted"]) == (105, [], 0)


async def test_queues_are_listed_by_name_in_pages(gateway: Gateway) -> None:
    names = [("a", "x"), ("a", "y"), ("a-b", "x"), ("b", "a"), ("b", "z")]
    await recorded(gateway, *(a_queue(*name) for name in reversed(names)))
    assert await listed(gateway) == names
    assert await listed(gateway, pageSize=2) == names
    assert await listed(gateway, pageSize=5) == names
    assert await listed(gateway, namespace=["b", "a-b"], pageSize=1) == [("a-b", "x"), ("b", "a"), ("b", "z")]
    page = (await gateway.client.get(QUEUES, params={"pageSize": 2})).json()
    other = await gateway.client.get(QUEUES, params={"pageToken": page["nextPageToken"], "namespace": "b"})
    assert (other.status_code, other.json()["code"]) == (400, "InvalidPageToken")
    await recorded(gateway, gone=[QueueKey("a", "y"), QueueKey("b", "a")])
    assert await listed(gateway) == [("a", "x"), ("a-b", "x"), ("b", "z")]


async def test_a_token_sees_only_queues_of_its_namespaces(closed_gateway: Gateway) -> None:
    await recorded(closed_gateway, a_queue("team-a", jobs=[a_job("own")]), a_queue("team-b", jobs=[a_job("foreign")]))
    client, headers = closed_gateway.client, await closed_gateway.token("viewer", "team-a")
    page = await client.get(QUEUES, headers=headers)
    assert [queue["namespace"] for queue in page.json()["items"]] == ["team-a"]
    assert "foreign" not in page.text
    refused = await client.get(QUEUES, params={"namespace": "team-b"}, headers=headers)
    by_name = await client.get("/api/v1/namespaces/team-b/queues/team", headers=headers)
    absent = await client.get("/api/v1/namespaces/team-c/queues/team", headers=headers)
    assert [answer.status_code for answer in (refused, by_name, absent)] == [404, 404, 404]
    assert by_name.json()["detail"] == absent.json()["detail"]
    # A token of the page of an admin opens nothing.
    everything = await closed_gateway.token("admin", "*")
    token = (await client.get(QUEUES, params={"pageSize": 1}, headers=everything)).json()["nextPageToken"]
    assert (await client.get(QUEUES, params={"pageToken": token}, headers=headers)).status_code == 400
    assert (await client.get(QUEUES)).status_code == 401


@pytest.mark.parametrize("path", [QUEUES, "/api/v1/namespaces/team-a/queues/team"])
async def test_an_unchanged_queue_is_not_sent_again(gateway: Gateway, path: str) -> None:
    await recorded(gateway, a_queue("team-a"))
    known = {"If-None-Match": (await gateway.client.get(path)).headers["etag"]}
    again = await gateway.client.get(path, headers=known)
    assert (again.status_code, again.content) == (304, b"")
    # Another time of the observation alone changes nothing.
    await recorded(gateway, observed_at=AT)
    assert (await gateway.client.get(path, headers=known)).status_code == 304
    await recorded(gateway, a_queue("team-a", jobs=[a_job("new")]))
    assert (await gateway.client.get(path, headers=known)).status_code == 200


@pytest.mark.parametrize(
    ("beaten", "observed", "stale", "shown"),
    [
        (timedelta(), timedelta(), "false", True),
        (timedelta(), -timedelta(minutes=5), "true", True),
        (-timedelta(minutes=5), timedelta(), "true", True),
        (timedelta(), None, "true", False),
    ],
)
async def test_queues_are_as_fresh_as_the_older_of_both_observations(
    gateway: Gateway, beaten: timedelta, observed: timedelta | None, stale: str, *, shown: bool
) -> None:
    now = gateway.services.clock.now()
    await heartbeats.beat(gateway.db, await gateway.lease(), now + beaten, "Running")
    time = None if observed is None else now + observed
    await recorded(gateway, a_queue("team-a"), observed_at=time)
    headers = (await gateway.client.get(QUEUES)).headers
    assert headers["jobgate-stale"] == stale
    assert ("jobgate-observed-at" in headers) == shown
    if time is not None:
        assert datetime.fromisoformat(headers["jobgate-observed-at"]) == min(time, now + beaten)


async def test_an_empty_list_says_whether_kueue_was_read(gateway: Gateway) -> None:
    path = "/api/v1/namespaces/team-a/queues/team"
    page = (await gateway.client.get(QUEUES)).json()
    assert (page["items"], page["kueue"]["state"]) == ([], "unknown")
    await recorded(gateway, state=KueueState.DENIED, message="localqueues is forbidden")
    page = (await gateway.client.get(QUEUES)).json()
    assert (page["items"], page["kueue"]) == ([], {"state": "denied", "message": "localqueues is forbidden"})
    missing = await gateway.client.get(path)
    assert (missing.status_code, missing.json()["detail"]) == (
        404,
        "there is no such queue in this namespace: localqueues is forbidden",
    )
    await recorded(gateway)
    assert (await gateway.client.get(QUEUES)).json()["kueue"] == {"state": "listed", "message": ""}
    assert (await gateway.client.get(path)).json()["detail"] == "there is no such queue in this namespace"


async def test_queues_that_cannot_be_read_any_more_keep_their_time(gateway: Gateway) -> None:
    await recorded(gateway, a_queue("team-a"), observed_at=AT)
    await recorded(gateway, state=KueueState.UNKNOWN, message="no answer")
    found = await queues.read_kueue(gateway.db)
    assert found == KueueRecord(state=KueueState.UNKNOWN, message="no answer", observed_at=AT)
    assert await listed(gateway) == [("team-a", "team")]


async def dry_run(gateway: Gateway, queue: str | None = "team", cpu: str = "1", **spec: Any) -> Any:
    """What a dry run says of the queue of a job of two replicas."""
    labels = {} if queue is None else {"kueue.x-k8s.io/queue-name": queue}
    body = manifest(labels=labels, **spec)
    for task in body["spec"]["replicaSpecs"]:
        for container in task["template"]["spec"]["containers"]:
            container["resources"] = {"requests": {"cpu": cpu}}
    answer = await gateway.client.post(jobs_path("team-a", "dry-run"), params={"dryRun": "Local"}, json=body)
    assert answer.status_code == 200, answer.text
    (item,) = answer.json()["items"]
    return item["queue"]


async def test_a_dry_run_says_whether_the_job_would_wait_now(gateway: Gateway) -> None:
    now = gateway.services.clock.now()
    await heartbeats.beat(gateway.db, await gateway.lease(), now, "Running")
    quota = FlavorQuota(flavor="big", resource="cpu", nominal="4", used="2")
    row = a_queue("team-a")
    await recorded(gateway, replace(row, status=replace(row.status, quotas=(quota,))), observed_at=now)
    fits = await dry_run(gateway)
    assert {**fits, "observedAt": datetime.fromisoformat(fits["observedAt"])} == {
        "name": "team",
        "outcome": "HasRoom",
        "code": None,
        "detail": "",
        "observedAt": now,
        "stale": False,
    }
    waits = await dry_run(gateway, cpu="1500m")
    assert (waits["outcome"], waits["code"]) == ("WouldWait", "WaitingForQuota")
    assert waits["detail"] == "cpu: 3 requested, 2 free in flavor big"
    missing = await dry_run(gateway, queue="other")
    assert (missing["name"], missing["outcome"], missing["code"]) == ("other", "WouldWait", "QueueMissing")
    assert await dry_run(gateway, queue=None) is None
    # A queue of this name makes a job wait that names none.
    await recorded(gateway, replace(row, name="default", status=replace(row.status, active=False, message="stopped")))
    stopped = await dry_run(gateway, queue=None)
    assert (stopped["name"], stopped["code"], stopped["detail"]) == ("default", "QueueStopped", "stopped")


async def test_a_dry_run_says_whether_the_limit_of_live_pods_has_room(database_url: str) -> None:
    limits = Limits(pods=PodLimits(namespace=5, waiting=1))
    async with running_gateway(database_url, limits=limits) as gateway:

        async def shown(replicas: int, queue: str | None = "team") -> Any:
            found = await dry_run(gateway, queue, replicas=replicas)
            return found and (found["name"], found["outcome"], found["code"], found["detail"])

        async def submit(name: str) -> None:
            answer = await gateway.client.post(jobs_path("team-a"), json=manifest(name, replicas=3))
            assert answer.status_code == 201, answer.text

        await recorded(gateway, a_queue("team-a"))
        await submit("first")
        assert await shown(2, queue=None) is None
        assert (await shown(2))[:3] == ("team", "WouldWait", "NoMatchingFlavor")
        full = "3 more pods do not fit: the jobs of the namespace team-a that have not ended have 3 of 5"
        assert await shown(3) == ("team", "WouldWait", "WaitingForPodLimit", full)
        assert await shown(3, queue=None) == (None, "WouldWait", "WaitingForPodLimit", full)
        never = "6 pods never fit: the jobs of the namespace team-a may have 5 together"
        assert await shown(6) == ("team", "WouldBeRefused", None, never)
        await submit("second")
        assert await shown(3) == ("team", "WouldBeRefused", None, f"{full}, and 1 job waits for room before")


@pytest.mark.parametrize(
    ("state", "outcome", "code", "unnamed"),
    [
        (KueueState.ABSENT, "NoKueue", None, None),
        (KueueState.DENIED, "WouldWait", "WaitingForKueue", None),
        (KueueState.UNKNOWN, "Unknown", None, "Unknown"),
    ],
)
async def test_a_dry_run_claims_nothing_without_kueue(
    gateway: Gateway, state: KueueState, outcome: str, code: str | None, unnamed: str | None
) -> None:
    await recorded(gateway, state=state, message="the reason")
    found = await dry_run(gateway)
    assert (found["outcome"], found["code"], found["stale"]) == (outcome, code, True)
    assert "the reason" in found["detail"]
    without = await dry_run(gateway, queue=None)
    assert (without and (without["name"], without["outcome"])) == (unnamed and (None, unnamed))
