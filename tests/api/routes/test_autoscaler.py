"""The autoscaler's runs, limited to what the caller may see, and its dry run."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.db.jobs import autoscaler_runs
from app.db.jobs.autoscaler_runs import AutoscalerRun
from app.domain.scaling.dry_run import dry_run
from app.domain.scaling.values import Inventory, NodeCapacity, ResourceAmount, ScalableJob, WaitingJob
from app.domain.vocabulary import JobPhase
from tests.support.gateways.gateway import Gateway

RUNS = "/api/v1/autoscaler"
DRY_RUN = f"{RUNS}/dry-run"
AT = datetime(2026, 3, 1, tzinfo=UTC)
NODE = NodeCapacity(name="n1", free=ResourceAmount(cpu=3000, memory=9000), slots=100)
CLUSTER = Inventory(
    nodes=(NODE,), total=ResourceAmount(cpu=4000, memory=9000), requested=ResourceAmount(cpu=1000), unbound_pods=1
)


def a_job(namespace: str = "team", uid: str = "") -> ScalableJob:
    return ScalableJob(
        uid=uid or str(uuid4()),
        namespace=namespace,
        name=f"in-{namespace}",
        task="trainer",
        size=1,
        least=1,
        most=3,
        need=ResourceAmount(cpu=1000),
        phase=JobPhase.RUNNING,
    )


async def recorded(
    gateway: Gateway,
    jobs: Sequence[ScalableJob] = (),
    at: datetime = AT,
    inventory: Inventory | None = CLUSTER,
    error: str = "403",
) -> None:
    decisions = dry_run(inventory, jobs, pending=False, max_load=1.0).decisions if inventory else ()
    waits = tuple(WaitingJob(uid=job.uid, namespace=job.namespace, name=job.name) for job in jobs)
    run = AutoscalerRun(
        at=at,
        enabled=True,
        max_load=1.0,
        period_seconds=30,
        freeze_seconds=60,
        inventory=inventory,
        error="" if inventory else error,
        pending=waits,
        jobs=tuple(jobs),
        decisions=decisions,
    )
    await autoscaler_runs.write(gateway.db, await gateway.lease(), run)


async def test_the_page_is_empty_before_the_first_run(gateway: Gateway) -> None:
    answer = await gateway.client.get(RUNS)
    assert answer.json() == {"enabled": False, "settings": None, "items": [], "nextPageToken": None}
    refused = await gateway.client.post(DRY_RUN)
    assert (refused.status_code, refused.json()["code"]) == (404, "NoInventory")


async def test_a_run_has_capacity_and_decisions_with_reasons(gateway: Gateway) -> None:
    job = a_job()
    await recorded(gateway, [job])
    page = (await gateway.client.get(RUNS)).json()
    assert (page["enabled"], page["settings"]["maxLoad"], page["settings"]["freezeSeconds"]) == (True, 1.0, 60.0)
    (run,) = page["items"]
    assert run["at"] == "2026-03-01T00:00:00Z"
    assert run["capacity"]["requested"] == {"cpuMilli": 1000, "memoryMega": 0, "gpu": 0}
    assert (run["capacity"]["nodes"], run["capacity"]["openNodes"], run["capacity"]["unboundPods"]) == (1, 1, 1)
    assert [found["name"] for found in run["waiting"]] == ["in-team"]
    (decision,) = run["decisions"]
    assert decision["message"] == "grows from 1 to 3; then 3 is its most"
    assert (decision["verdict"], decision["fromReplicas"], decision["toReplicas"]) == ("Grows", 1, 3)
    assert (decision["minReplicas"], decision["maxReplicas"], decision["uid"]) == (1, 3, job.uid)


async def test_a_failed_run_has_an_error(gateway: Gateway) -> None:
    await recorded(gateway, inventory=None)
    (run,) = (await gateway.client.get(RUNS)).json()["items"]
    assert (run["error"], run["capacity"], run["decisions"]) == ("403", None, [])


async def test_runs_are_paged_newest_first(gateway: Gateway) -> None:
    for minute in range(5):
        await recorded(gateway, at=AT + timedelta(minutes=minute))
    seen: list[str] = []
    params: dict[str, Any] = {"pageSize": 2}
    while True:
        page = (await gateway.client.get(RUNS, params=params)).json()
        seen += [run["at"][14:16] for run in page["items"]]
        if page["nextPageToken"] is None:
            break
        params["pageToken"] = page["nextPageToken"]
    assert seen == ["04", "03", "02", "01", "00"]
    refused = await gateway.client.get(RUNS, params={"pageToken": "nonsense"})
    assert refused.status_code == 400


async def test_a_dry_run_uses_the_last_inventory_and_returns_its_age(gateway: Gateway) -> None:
    await recorded(gateway, [a_job()])
    await recorded(gateway, inventory=None, at=AT + timedelta(minutes=1))
    answer = (await gateway.client.post(DRY_RUN)).json()
    assert answer["observedAt"] == "2026-03-01T00:00:00Z"
    assert answer["ageSeconds"] > 0
    assert answer["maxLoad"] == 1.0
    assert [node["name"] for node in answer["nodes"]] == ["n1"]
    assert answer["decisions"][0]["toReplicas"] == 3
    assert (await gateway.client.get(RUNS)).json()["items"][1]["decisions"][0]["applied"] is False


async def test_a_dry_run_accepts_another_maximum_load(gateway: Gateway) -> None:
    await recorded(gateway, [a_job()])
    answer = (await gateway.client.post(DRY_RUN, json={"maxLoad": 0.5})).json()
    assert (answer["maxLoad"], answer["decisions"][0]["toReplicas"]) == (0.5, 2)
    assert answer["decisions"][0]["message"].endswith("one more would request more than 0.5 of the CPU of the cluster")


@pytest.mark.parametrize("load", [0, -1, 1.5, "0.8", True])
async def test_a_maximum_load_outside_0_to_1_is_refused(gateway: Gateway, load: Any) -> None:
    refused = await gateway.client.post(DRY_RUN, json={"maxLoad": load})
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/maxLoad"]


async def test_a_token_of_one_namespace_sees_only_its_decisions(closed_gateway: Gateway) -> None:
    roomy = replace(CLUSTER, nodes=(replace(NODE, free=ResourceAmount(cpu=9000, memory=9000)),))
    await recorded(closed_gateway, [a_job("team"), a_job("other")], inventory=roomy)
    headers = await closed_gateway.token("viewer", "team")
    (run,) = (await closed_gateway.client.get(RUNS, headers=headers)).json()["items"]
    assert [decision["namespace"] for decision in run["decisions"]] == ["team"]
    assert [found["namespace"] for found in run["waiting"]] == ["team"]
    assert run["capacity"] is None
    (message,) = [decision["message"] for decision in run["decisions"]]
    assert message == "grows from 1 to 2; then one more would request more than 1 of the CPU of the cluster"
    assert (await closed_gateway.client.post(DRY_RUN, headers=headers)).status_code == 403


async def test_only_an_admin_of_all_namespaces_reads_the_message_of_the_cluster(closed_gateway: Gateway) -> None:
    whole = 'the cluster could not be read: 403 Forbidden: pods is forbidden in the namespace "other"'
    await recorded(closed_gateway, inventory=None, error=whole)
    for role, namespace, shown in (
        ("admin", "*", whole),
        ("admin", "team", "the cluster could not be read"),
        ("viewer", "*", "the cluster could not be read"),
    ):
        headers = await closed_gateway.token(role, namespace)
        (run,) = (await closed_gateway.client.get(RUNS, headers=headers)).json()["items"]
        assert run["error"] == shown, (role, namespace)


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("submitter", 403), ("admin", 200)])
async def test_only_an_admin_of_all_namespaces_may_run_a_dry_run(
    closed_gateway: Gateway, role: str, status: int
) -> None:
    await recorded(closed_gateway, [a_job("team"), a_job("other"), a_job("kube-system")])
    headers = await closed_gateway.token(role, "*")
    (run,) = (await closed_gateway.client.get(RUNS, headers=headers)).json()["items"]
    assert [decision["namespace"] for decision in run["decisions"]] == ["team", "other"]
    assert (run["capacity"] is not None) == (role == "admin")
    rehearsed = await closed_gateway.client.post(DRY_RUN, headers=headers)
    assert rehearsed.status_code == status
    if status == 200:
        assert {decision["namespace"] for decision in rehearsed.json()["decisions"]} == {"team", "other"}


async def test_the_autoscaler_requires_a_token(closed_gateway: Gateway) -> None:
    assert (await closed_gateway.client.get(RUNS)).status_code == 401
    assert (await closed_gateway.client.post(DRY_RUN)).status_code == 401
