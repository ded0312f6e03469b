"""Whether Kueue captures new pods of a namespace: by its LocalQueues, and by dry runs that are seldom repeated."""

import asyncio
from typing import Any

from app.domain.status.observed import KueueState
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
