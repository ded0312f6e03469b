"""Which new pods Kueue captures: by LocalQueues, and by dry runs that are seldom repeated."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from app.domain.plan import Manifest, Rank
from app.domain.queueing.admission import PodSetAdmission, Queueing, TaskAdmission
from app.domain.queueing.workload import GATES
from app.domain.reconcile.actions import CreatePod
from app.domain.status.observed import KueueState
from app.domain.status.pods.observation import is_captured
from app.k8s.watching.reflector import Reflector
from app.loops.controller_settings import QueueMode
from app.loops.jobs.actions.captures import PROBE_TTL, SEEN_TTL, Captures
from app.loops.jobs.queues import QueueMirror
from tests.loops.harness import WITHIN, Harness, ignore
from tests.support.clusters.kueue import queues_of
from tests.support.telemetry.metrics import value
from tests.support.waiting import until


def probed() -> float:
    return value("jobgate_cluster_requests_total", verb="create", code="201")


async def test_kueue_captures_pods_where_a_dry_run_or_the_default_queue_says_so(harness: Harness) -> None:
    container = {"name": "main", "image": "busybox"}
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": harness.namespace},
        "spec": {"containers": [container]},
    }
    mirror = QueueMirror(
        harness.context.api,
        harness.installation,
        harness.clock,
        mode=QueueMode.AUTO,
        namespaces=(harness.namespace,),
        reflect=lambda source, sink: Reflector(source, sink, harness.clock),
        on_change=ignore,
        on_state=lambda: None,
    )
    captures = Captures(harness.context.api, mirror, harness.clock, timeout=5.0)
    assert await captures.would_capture(pod), "nothing is known of Kueue yet"
    async with queues_of(harness.kube, harness.namespace) as made, asyncio.TaskGroup() as group:
        task = group.create_task(mirror.run())
        await until(lambda: mirror.state is KueueState.LISTED, within=WITHIN)
        before = probed()
        assert await asyncio.gather(*(captures.would_capture(pod) for _ in range(5))) == [False] * 5
        assert (probed() - before, await harness.pods()) == (1, {})

        harness.clock.skip(PROBE_TTL + 1)
        await harness.inject(verb="create", resource="pods", status=500)
        assert await captures.would_capture(pod), "the create would fail, too"
        await harness.heal()
        harness.clock.skip(PROBE_TTL + 1)
        assert not await captures.would_capture(pod)
        # A pod was captured that a dry run did not foretell.
        captures.note(harness.namespace)
        harness.clock.skip(SEEN_TTL - 1)
        assert await captures.would_capture(pod)
        harness.clock.skip(2)
        assert not await captures.would_capture(pod)

        await made.add_local_queue("default", "none")
        await until(lambda: mirror.has_local_queue(harness.namespace, "default"), within=WITHIN)
        before = probed()
        assert await captures.would_capture(pod)
        assert probed() == before
        task.cancel()


async def test_a_captured_pod_keeps_its_gates(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next reconcile replaces it. Without its gates, it would run beside the Workload that Kueue made for it."""
    action = CreatePod(key=Rank("worker", 0), attempt=1)
    admission = {"worker": TaskAdmission(pod_set="worker", size=1, pods=PodSetAdmission())}
    work = replace(
        await harness.work(await harness.submit(replicas=1), action),
        queueing=Queueing(name="team", admission=admission),
    )
    anchor = await harness.creator.ensure_objects(work)
    assert anchor is not None

    async def is_too_early(_self: Captures, _pod: Manifest) -> bool:
        return False

    async with queues_of(harness.kube, harness.namespace) as made:
        await made.add_local_queue("default", "none")
        monkeypatch.setattr(Captures, "would_capture", is_too_early)
        noted: list[str] = []
        monkeypatch.setattr(Captures, "note", lambda _self, namespace: noted.append(namespace))
        assert await harness.creator.create_pod(work, action, anchor)
    (pod,) = harness.mirror.pods()
    assert is_captured(pod)
    assert noted == [harness.namespace]
    assert {gate.name for gate in pod.spec.scheduling_gates} == GATES
