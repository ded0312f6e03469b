"""Jobs of more pod sets than the Kueue of the cluster accepts, as the controller has recorded it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.db import queues
from app.db.queues import KueueRecord, QueueRow
from app.domain.queueing.queue_status import QueueStatus
from app.domain.status.observed import KueueState
from tests.support.gateways.gateway import Gateway, jobs_path

AT = datetime(2026, 3, 1, tzinfo=UTC)
LISTED = KueueRecord(state=KueueState.LISTED, most_pod_sets=10)


def a_job(count: int, queue: str | None, *, equal: bool = False) -> Any:
    """A job of so many tasks, which differ in what they request."""
    tasks = []
    for number in range(count):
        resources = {"requests": {"cpu": "1m" if equal else f"{number + 1}m"}}
        container = {"name": "main", "image": "busybox", "command": ["true"], "resources": resources}
        template = {"spec": {"containers": [container]}}
        tasks.append({"type": f"t{number}", "replicas": 1, "restartPolicy": {"policy": "Never"}, "template": template})
    labels = {} if queue is None else {"kueue.x-k8s.io/queue-name": queue}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"generateName": "many-", "labels": labels},
        "spec": {"replicaSpecs": tasks},
    }


async def recorded(gateway: Gateway, known: KueueRecord, *names: str) -> None:
    rows = [
        QueueRow(namespace="team", name=name, observed_at=AT, status=QueueStatus(cluster_queue="q")) for name in names
    ]
    await queues.write(gateway.db, await gateway.lease(), known, rows)


async def refusals(gateway: Gateway, job: Any, **params: str) -> list[tuple[str, str]]:
    answer = await gateway.client.post(jobs_path("team"), json=job, params=params)
    assert answer.status_code in (200, 201, 422), answer.text
    return [(error["code"], error["accepted"]) for error in answer.json().get("errors", ())]


TOO_MANY = [("TooManyPodSets", "10 or fewer in a job with a queue")]


@pytest.mark.parametrize(
    ("job", "known", "names", "refused"),
    [
        (a_job(11, "one"), LISTED, (), TOO_MANY),
        (a_job(10, "one"), LISTED, (), []),
        (a_job(11, "one", equal=True), LISTED, (), []),
        # The default queue of the namespace counts, too.
        (a_job(11, None), LISTED, ("default",), TOO_MANY),
        (a_job(11, None), LISTED, ("other",), []),
        # The last known limit counts while a controller starts; without Kueue there is none.
        (a_job(11, "one"), KueueRecord(state=KueueState.UNKNOWN, most_pod_sets=10), (), TOO_MANY),
        (a_job(11, "one"), KueueRecord(state=KueueState.ABSENT, most_pod_sets=10), (), []),
        (a_job(11, "one"), KueueRecord(state=KueueState.LISTED), (), []),
        (
            a_job(19, "one"),
            KueueRecord(state=KueueState.LISTED),
            (),
            [("TooManyPodSets", "18 or fewer in a job with a queue")],
        ),
    ],
)
async def test_kueue_limits_the_pod_sets_of_a_job_with_a_queue(
    gateway: Gateway, job: Any, known: KueueRecord, names: tuple[str, ...], refused: list[tuple[str, str]]
) -> None:
    await recorded(gateway, known, *names)
    assert await refusals(gateway, job, dryRun="All") == refused
    assert await refusals(gateway, job) == refused


async def test_a_limit_stays_known_until_another_one_is(gateway: Gateway) -> None:
    for known, most in ((LISTED, 10), (KueueRecord(state=KueueState.UNKNOWN), 10)):
        await recorded(gateway, known)
        found = await queues.read_kueue(gateway.db)
        assert found is not None
        assert (found.state, found.most_pod_sets) == (known.state, most)
