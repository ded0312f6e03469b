"""Pods that Kueue queues one by one: those of a job that ran before its namespace had the LocalQueue `default`."""

from pathlib import Path

import pytest

from tests.behaviour.manifests import job, until_marked
from tests.behaviour.queues.kueue import API, GROUP, Queues, requesting

pytestmark = pytest.mark.timeout(600)


async def test_a_captured_pod_names_the_remedy_which_helps(queues: Queues, tmp_path: Path) -> None:
    jobs, mark = queues.jobs, tmp_path / "fail"
    # The embedded cluster has no controller that releases these pods.
    if (await jobs.kube.get(f"{API}/topologies")).status != 200:
        pytest.skip("the cluster plays only a part of Kueue: run `make test-cluster`")
    script = f"test -e {mark} && exec sleep 600; {until_marked(mark, 'exit 1')}"
    uid = (await jobs.submit(job("captured", requesting(script, policy="OnFailure", limit=5))))["uid"]
    await jobs.until("captured", "Running")
    await queues.add_local("default")
    await queues.submit("first", replicas=2)
    await jobs.until("first", "Running")
    mark.touch()
    reason = await jobs.pending("captured", "SchedulingGated")
    assert f"{GROUP}/admission" in reason["message"]
    assert "Kueue queues this pod by itself" in reason["message"]
    assert reason["message"].endswith("A job that has run gets its queue after a pause")

    await jobs.pause("captured")
    await jobs.until("captured", "Paused")
    await jobs.resume("captured")
    await jobs.pending("captured", "WaitingForQuota")
    await jobs.cancel("first")
    await jobs.until("captured", "Running")
    for name in ("first", "captured"):
        await jobs.delete(name)
    await jobs.until_objects("pods", uid, lambda pods: not pods)
    await queues.until_no_workload()
