"""SIGKILL at every step between persisting and acting, under load. Each job still ends as expected, once.

stories: submit ─▶ pause, cancel, delete, … ─▶ end      clients that repeat unanswered requests
kills:   start, armed ─▶ dies at its fault point ─▶ start, armed with the next ─▶ …
watcher: every pod uid of each (job, task, rank, attempt), from before the first kill
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx2
import pytest

from app.base.faultpoints import FaultPoint as At
from tests.crash.ledger import ledger
from tests.crash.pods import pod_watcher
from tests.crash.sample_stories import OF_SAMPLES
from tests.crash.stories import (
    Client,
    Story,
    cancels,
    cleans,
    deletes,
    grows,
    grows_again,
    is_disrupted,
    is_grown,
    is_killed,
    pauses,
    recovers,
    serves,
    shrinks,
    trains,
)
from tests.crash.test_queues import OF_QUEUES
from tests.crash.test_recovery import OF_RECOVERY
from tests.crash.test_room_turns import POINT
from tests.crash.test_whole_logs import OF_LOGS
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.gateways.process import GatewayProcess, gateway_process

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1200)]

Telling = Callable[[str, Path], Story]

# Fault point, at which of its occurrences the gateway dies, and the stories that reach it.
Kill = tuple[At, int, Sequence[Telling]]
KILLS: Sequence[Kill] = (
    (At.SUBMISSION_ARRIVED, 1, (serves,)),
    (At.SUBMISSION_STORED, 1, (recovers, cancels)),
    (At.DECIDED, 2, (serves, recovers)),
    (At.PERSISTED, 1, (pauses, deletes)),
    (At.PERSISTED, 3, (cancels,)),
    (At.ANCHOR_CREATED, 1, (cleans, serves)),
    (At.SERVICE_CREATED, 2, (serves,)),
    (At.POD_BEFORE_CREATE, 1, (recovers,)),
    (At.POD_CREATED, 1, (deletes, pauses)),
    (At.POD_CREATED, 2, (serves, cancels)),
    (At.EVIDENCE_READ, 1, (recovers,)),
    (At.EVIDENCE_STORED, 1, (recovers, is_disrupted)),
    (At.EVIDENCE_STORED, 2, (cleans,)),
    (At.POD_BEFORE_DELETE, 1, (cancels, pauses)),
    (At.POD_DELETED, 1, (pauses,)),
    (At.POD_DELETED, 2, (cleans, cancels)),
    (At.POD_RELEASED, 1, (recovers, is_disrupted)),
    (At.POD_RELEASED, 2, (serves,)),
    (At.ANCHOR_MARKED, 1, (serves,)),
    (At.OBJECTS_REMOVED, 1, (deletes,)),
    (At.OBJECTS_REMOVED, 2, (deletes,)),
    (At.LEASE_ACQUIRED, 1, (recovers,)),
    (At.LEASE_RENEWED, 3, (pauses, is_disrupted)),
    (At.DECIDED, 5, (cleans,)),
    (At.PERSISTED, 4, (is_killed,)),
    (At.EDIT_STORED, 1, (grows, shrinks)),
    (At.DECIDED, 7, (grows,)),
    (At.HOSTS_WRITTEN, 1, (trains,)),
    (At.HOSTS_WRITTEN, 2, (trains,)),
    (At.PERSISTED, 8, (shrinks,)),
    (At.POD_BEFORE_CREATE, 2, (grows,)),
    (At.POD_CREATED, 3, (grows, grows_again)),
    (At.POD_BEFORE_DELETE, 2, (shrinks,)),
    (At.POD_DELETED, 1, (shrinks, grows_again)),
    (At.EVIDENCE_STORED, 1, (shrinks,)),
    (At.POD_RELEASED, 1, (grows_again,)),
    (At.RESIZE_STORED, 1, (is_grown,)),
)
# Only commands reach them: tests/running/operations/test_purging.py, tests/exports/test_interruptions.py.
OF_COMMANDS = frozenset({At.BATCH_PURGED, At.SEGMENT_WRITTEN, At.SEGMENT_STORED, At.JOB_IMPORTED})
# Each half takes minutes, so two processes share them.
HALVES = (KILLS[: len(KILLS) // 2], KILLS[len(KILLS) // 2 :])
KILL_SECONDS = 280.0
SIGKILLED = -9
AUTOSCALED = {"JOBGATE_AUTOSCALER": "on", "JOBGATE_AUTOSCALER_PERIOD": "1"}


def test_every_fault_point_has_a_round() -> None:
    elsewhere = {POINT, *OF_SAMPLES, *OF_QUEUES, *OF_RECOVERY, *OF_LOGS, *OF_COMMANDS}
    assert {point for point, _, _ in KILLS} == set(At) - elsewhere
    assert len(KILLS) >= 20


@pytest.mark.parametrize("kills", HALVES, ids=["first half", "second half"])
async def test_no_job_is_lost_and_no_pod_is_created_twice(
    kills: Sequence[Kill],
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    database_url: str,
    tmp_path: Path,
    prove: Callable[[str], None],
) -> None:
    stories = [
        [tell(f"{tell.__name__.replace('_', '-')}-{number}", tmp_path) for tell in tellings]
        for number, (_, _, tellings) in enumerate(kills)
    ]
    everyone = [story for some in stories for story in some]
    with pod_watcher(busy_cluster, crash_namespace) as pods:
        async with gateway_process(
            database_url, busy_cluster.kubeconfig, tmp_path / "gateway", **AUTOSCALED
        ) as gateway:
            await gateway.start()
            async with httpx2.AsyncClient(base_url=gateway.url, timeout=30) as http, asyncio.TaskGroup() as group:
                client = Client(http=http, api=crash_api, namespace=crash_namespace)
                await _kill_at_each(gateway, kills, stories, lambda story: group.create_task(story.run(client)))
                await gateway.start()
            async with ledger(database_url, busy_cluster) as book:
                await book.settled()
                assert await gateway.stop() == 0
                await book.check(everyone, pods, crash_api, crash_namespace)
        assert not pods.doubles()
    prove(f"crash suite: kills {len(kills) + 1}, jobs {len(everyone)}, pods {len(pods.uids)}, losses 0, doubles 0")


async def _kill_at_each(
    gateway: GatewayProcess,
    kills: Sequence[Kill],
    stories: Sequence[Sequence[Story]],
    begin: Callable[[Story], object],
) -> None:
    """Start the stories of each round and let the gateway die at its fault point."""
    await gateway.kill()
    for number, (point, passing, _) in enumerate(kills):
        gateway.launch({"JOBGATE_FAULT_POINTS": f"{point}:{passing}"})
        for story in stories[number]:
            begin(story)
        status = await gateway.ended(within=KILL_SECONDS, what=f"{point}:{passing} is reached")
        assert status == SIGKILLED, gateway.log.read_text()
