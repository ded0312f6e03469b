"""A disruption is no failure of the job: its pod is replaced, and no restart limit counts it."""

from typing import Any

import pytest

from tests.behaviour.client import Jobs, first_of
from tests.behaviour.conftest import OtherGateway
from tests.behaviour.manifests import job, task
from tests.support.gateways.process import GatewayProcess


def runs_again(replica: dict[str, Any]) -> bool:
    return bool(replica["attempt"] == 2 and replica["phase"] == "Running")


def is_replaced(replica: dict[str, Any]) -> bool:
    """Whatever has become of the successor: it may be disrupted as the first one was."""
    return bool(replica["attempt"] >= 2 and replica["disruptions"] >= 1)


async def test_a_pod_that_somebody_deleted_is_replaced_at_once(jobs: Jobs) -> None:
    script = "trap 'echo asked to go; exit 1' TERM; echo begun; while true; do sleep 0.1; done"
    await jobs.submit(job("hit", task(script, terminationGracePeriodSeconds=20)))
    await jobs.until("hit", "Running")
    await jobs.until_log("hit", "begun")
    (await jobs.kube.delete(jobs.objects("pods", "hit-worker-0"))).ok()
    replica = await jobs.until_replica("hit", runs_again)
    assert (replica["restartCount"], replica["disruptions"]) == (0, 1)
    first = first_of(replica)
    assert (first["outcome"], first["reason"], first["evidence"]) == ("Disrupted", "PodDeleted", "Captured")
    assert (await jobs.log("hit", attempt="1")).text.endswith("asked to go\n")
    await jobs.until("hit", "Running")
    reasons = await jobs.reasons("hit")
    assert "Disrupted" in reasons
    assert (await jobs.conditions("hit")).get("ReplicaFailure") is None


async def test_a_pod_that_was_deleted_and_still_succeeded_has_succeeded(jobs: Jobs) -> None:
    script = "trap 'exit 0' TERM; echo begun; while true; do sleep 0.1; done"
    await jobs.submit(job("done", task(script, terminationGracePeriodSeconds=20)))
    await jobs.until_log("done", "begun")
    await jobs.until("done", "Running")
    (await jobs.kube.delete(jobs.objects("pods", "done-worker-0"))).ok()
    await jobs.until("done", "Succeeded")
    assert (await jobs.replica("done"))["attempt"] == 1


async def test_a_pod_that_vanished_with_its_finalizer_is_replaced(jobs: Jobs) -> None:
    uid = (await jobs.submit(job("poof")))["uid"]
    await jobs.until("poof", "Running")
    path = jobs.objects("pods", "poof-worker-0")
    (await jobs.kube.delete(path, {"gracePeriodSeconds": 0})).ok()
    await jobs.kube.patch(path, {"metadata": {"finalizers": None}})
    replica = await jobs.until_replica("poof", runs_again)
    assert (replica["restartCount"], replica["disruptions"]) == (0, 1)
    first = first_of(replica)
    assert first["outcome"] == "Disrupted"
    assert first["evidence"] in ("Captured", "Unavailable")
    assert len(await jobs.names("pods", uid)) == 1


async def test_a_pod_that_vanished_while_the_gateway_looked_away_is_found_out(
    jobs: Jobs, gateway: GatewayProcess
) -> None:
    await jobs.submit(job("away"))
    await jobs.until("away", "Running")
    path = jobs.objects("pods", "away-worker-0")
    gateway.freeze()
    try:
        (await jobs.kube.delete(path, {"gracePeriodSeconds": 0})).ok()
        await jobs.kube.patch(path, {"metadata": {"finalizers": None}})
        await jobs.kube.gone(path)
    finally:
        gateway.thaw()
    first = first_of(await jobs.until_replica("away", runs_again))
    assert (first["outcome"], first["evidence"]) == ("Disrupted", "Unavailable")
    assert first["evidenceReason"]


async def test_an_eviction_is_told_in_the_kubelets_words(jobs: Jobs) -> None:
    play: list[dict[str, Any]] = [
        {"phase": "Running"},
        {"log": "training"},
        {"after": 0.3, "evict": "The node was low on resource: memory."},
    ]
    await jobs.submit(job("evicted", task(play=play)))
    replica = await jobs.until_replica("evicted", is_replaced)
    assert replica["restartCount"] == 0
    first = first_of(replica)
    assert (first["outcome"], first["reason"]) == ("Disrupted", "TerminationByKubelet")
    assert first["message"] == "The node was low on resource: memory."
    assert (await jobs.log("evicted", attempt="1")).text == "training\n"


async def test_the_eviction_api_disrupts_too(jobs: Jobs) -> None:
    await jobs.submit(job("drained"))
    await jobs.until("drained", "Running")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "drained-worker-0"}}
    (await jobs.kube.post(jobs.objects("pods", "drained-worker-0", "eviction"), eviction)).ok()
    replica = await jobs.until_replica("drained", runs_again)
    assert (replica["restartCount"], replica["disruptions"]) == (0, 1)
    assert first_of(replica)["reason"] == "EvictionByEvictionAPI"


@pytest.mark.parametrize("reason", ["UnexpectedAdmissionError", "TopologyAffinityError", "ReasonOfTomorrow"])
async def test_a_node_that_refuses_a_pod_disrupts_it(jobs: Jobs, reason: str) -> None:
    name = f"refused-{reason.lower()}"
    play: list[dict[str, Any]] = [{"fail": {"reason": reason, "message": "Pod was rejected: no room"}}]
    await jobs.submit(job(name, task(play=play)))
    replica = await jobs.until_replica(name, is_replaced)
    assert replica["restartCount"] == 0
    first = first_of(replica)
    assert (first["outcome"], first["reason"], first["exitCode"]) == ("Disrupted", reason, None)
    await jobs.cancel(name)


async def test_after_so_many_disruptions_the_replica_has_failed(other_gateway: OtherGateway) -> None:
    async with other_gateway(JOBGATE_DISRUPTION_LIMIT="2") as own:
        await own.submit(job("cursed", task(play=[{"evict": "again"}])))
        await own.until("cursed", "Failed")
        replica = await own.replica("cursed")
        assert (replica["attempt"], replica["restartCount"], replica["disruptions"]) == (3, 0, 2)
        assert replica["phase"] in ("Failed", "Deleted")
        assert (await own.status("cursed"))["aggregate"]["failed"] == 1
