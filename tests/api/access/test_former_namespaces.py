"""A namespace that was deleted and created again: its tenants see nothing of the former one."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.api.resources.jobs import JOBS_RESOURCE
from app.api.routes.objects.watch import event_loader
from app.db import cluster_namespaces, former_namespaces, queues
from app.db.cluster_namespaces import NamespaceLife
from app.db.feed import entries
from app.db.feed.entries import FeedEvent
from app.db.samples import controller as sample_controller
from app.domain.cache.vocabulary import SampleJobPhase
from app.domain.vocabulary import JobPhase
from tests.api.routes import test_queues
from tests.api.routes.test_autoscaler import a_job, recorded
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest
from tests.support.kinds.every_kind import list_of
from tests.support.kinds.samples import JOBS, conclude, path, sample, submit
from tests.support.waiting import until

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FIRST = NamespaceLife("first", LONG_AGO)


def now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - a test is its own clock


async def bind(gateway: Gateway, lives: Mapping[str, NamespaceLife]) -> list[str]:
    return await cluster_namespaces.bind(gateway.db, await gateway.lease(), lives, now())


async def create_again(gateway: Gateway) -> None:
    """Bind NAMESPACE to another uid. All objects that are stored before belong to the former one."""
    assert await bind(gateway, {NAMESPACE: FIRST, "other": FIRST}) == []
    second = {NAMESPACE: NamespaceLife("second", now() + timedelta(seconds=1)), "other": FIRST}
    assert await bind(gateway, second) == [NAMESPACE]
    assert await bind(gateway, second) == [], "once"


async def submitted(gateway: Gateway, headers: Mapping[str, str], name: str = "hello") -> str:
    answer = await gateway.client.post(jobs_path(NAMESPACE), json=manifest(name), headers=headers)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["uid"])


PARTS = ("", "/status", "/history", "/replicas", "/events", "/logs", "/manifests", "/posted-manifest", "/watch")


@pytest.mark.parametrize("role", ["viewer", "admin"])
async def test_no_tenant_of_the_new_namespace_reads_anything_of_the_former_one(
    closed_gateway: Gateway, role: str
) -> None:
    gateway = closed_gateway
    everywhere = await gateway.token("admin", "*")
    uid = await submitted(gateway, everywhere)
    tenant = await gateway.token(role, NAMESPACE)
    paths = [f"{target}{part}" for target in (jobs_path(NAMESPACE, "hello"), f"/api/v1/jobs/{uid}") for part in PARTS]
    assert (await gateway.client.get(paths[0], headers=tenant)).status_code == 200
    position = (await entries.bounds(gateway.db)).epoch
    await create_again(gateway)

    for address in paths:
        assert (await gateway.client.get(address, headers=tenant)).status_code == 404, address
    for query in ("", "?view=full", "?deleted=true", f"?uid={uid}", "?name=hello"):
        listed = await gateway.client.get(f"{jobs_path(NAMESPACE)}{query}", headers=tenant)
        assert listed.json()["items"] == [], query
        listed = await gateway.client.get(f"/api/v1/jobs{query}", headers=tenant)
        assert listed.json()["items"] == [], query
    assert (await entries.bounds(gateway.db)).epoch == position + 1, "no stream continues, and no cached event is sent"

    found = (await gateway.client.get(f"/api/v1/jobs/{uid}", headers=everywhere)).json()
    assert (found["namespace"], found["name"]) == (f"{NAMESPACE}~first", "hello")
    items = (await gateway.client.get("/api/v1/jobs", headers=everywhere)).json()["items"]
    assert [item["uid"] for item in items] == [uid]


async def test_the_queues_of_the_former_namespace_are_forgotten(gateway: Gateway) -> None:
    """They name its jobs. The controller records those of the new one."""
    await test_queues.recorded(gateway, *(test_queues.a_queue(namespace) for namespace in (NAMESPACE, "other")))
    await create_again(gateway)
    assert await queues.read_keys(gateway.db) == {("other", "team")}


async def test_a_stream_leaves_out_entries_of_the_former_namespace(gateway: Gateway) -> None:
    """An entry can be numbered after the move, in the epoch in which streams of the new namespace have begun."""
    former = (await gateway.submit())["uid"]
    await create_again(gateway)
    own = (await gateway.submit())["uid"]
    events: list[FeedEvent] = []

    async def both_numbered() -> bool:
        page = await entries.read(gateway.db, 0, 100)
        events[:] = [event for event in page.events if event.namespace == NAMESPACE]
        return {str(event.job_uid) for event in events} == {former, own}

    await until(both_numbered, what="the entries of both jobs")
    sent = await event_loader(JOBS_RESOURCE)(gateway.services, events)
    assert {str(event.data.model_dump()["object"]["uid"]) for event in sent} == {own}


async def test_the_new_namespace_has_all_names_and_its_own_objects_stay(gateway: Gateway) -> None:
    former = (await gateway.submit())["uid"]
    ended = (await gateway.submit("ended"))["uid"]
    await gateway.conclude(ended, {"phase": JobPhase.SUCCEEDED, "finished_at": now(), "quiet": True})
    await create_again(gateway)
    again = (await gateway.submit())["uid"]
    job = (await gateway.client.get(jobs_path(NAMESPACE, "hello"))).json()
    assert (job["uid"], job["namespace"]) == (again, NAMESPACE)
    live, over = [(await gateway.client.get(f"/api/v1/jobs/{uid}")).json() for uid in (former, ended)]
    assert live["namespace"] == over["namespace"] == f"{NAMESPACE}~first"
    row = await _row(gateway, former)
    assert (row["cancel_reason"], row["remove_requested_at"] is not None) == (
        "the namespace was deleted and created again",
        True,
    )
    assert (await _row(gateway, ended))["remove_requested_at"] is None, "an ended job causes no work"


async def named(gateway: Gateway, headers: Mapping[str, str]) -> list[str]:
    """Return the namespaces of the jobs in the only run."""
    (run,) = (await gateway.client.get("/api/v1/autoscaler", headers=headers)).json()["items"]
    return [found["namespace"] for found in (*run["waiting"], *run["decisions"])]


async def test_the_runs_of_the_autoscaler_do_not_name_former_jobs_to_new_tenants(closed_gateway: Gateway) -> None:
    gateway = closed_gateway
    everywhere, tenant = await gateway.token("admin", "*"), await gateway.token("viewer", NAMESPACE)
    former = a_job(NAMESPACE, uid=await submitted(gateway, everywhere))
    await recorded(gateway, [former, a_job("other")])
    assert await named(gateway, tenant) == [NAMESPACE, NAMESPACE]
    await create_again(gateway)
    assert await named(gateway, tenant) == []
    assert await named(gateway, everywhere) == [f"{NAMESPACE}~first", "other"] * 2


async def test_a_run_that_is_stored_after_a_move_has_the_former_namespaces(closed_gateway: Gateway) -> None:
    gateway = closed_gateway
    everywhere, tenant = await gateway.token("admin", "*"), await gateway.token("viewer", NAMESPACE)
    former = a_job(NAMESPACE, uid=await submitted(gateway, everywhere))
    await create_again(gateway)
    await recorded(gateway, [former, a_job("other")])
    for headers, expected in ((tenant, []), (everywhere, [f"{NAMESPACE}~first", "other"] * 2)):
        assert await named(gateway, headers) == expected


async def test_a_namespace_with_many_objects_moves_in_several_transactions(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One statement for all of them could reach its timeout at each try, and the objects would never move."""
    monkeypatch.setattr(former_namespaces, "MOST_AT_ONCE", 2)
    for number in range(5):
        await gateway.submit(f"job-{number}")
    epoch = (await entries.bounds(gateway.db)).epoch
    await create_again(gateway)
    assert (await entries.bounds(gateway.db)).epoch == epoch + 3, "each move begins an epoch"
    assert (await gateway.client.get(jobs_path(NAMESPACE))).json()["items"] == []
    items = (await gateway.client.get("/api/v1/jobs")).json()["items"]
    assert {item["namespace"] for item in items} == {f"{NAMESPACE}~first"}
    assert len(items) == 5


async def _row(gateway: Gateway, uid: str) -> Any:
    async with gateway.db.read() as connection:
        return await connection.fetchrow("SELECT * FROM jobs WHERE uid = $1", uid)


async def test_a_job_that_was_submitted_to_the_new_namespace_before_it_is_noticed_stays(gateway: Gateway) -> None:
    await bind(gateway, {NAMESPACE: FIRST})
    uid = (await gateway.submit())["uid"]
    assert await bind(gateway, {NAMESPACE: NamespaceLife("second", now() - timedelta(minutes=1))}) == [NAMESPACE]
    assert (await gateway.client.get(jobs_path(NAMESPACE, "hello"))).json()["uid"] == uid


@pytest.mark.parametrize("resource", ["jobs", "samplesets"])
async def test_an_idempotency_key_belongs_to_the_namespace_in_which_it_was_used(
    gateway: Gateway, resource: str
) -> None:
    """A replay would name an object of the former namespace, and nothing would be created in the new one."""
    path, headers = f"/api/v1/namespaces/{NAMESPACE}/{resource}", {"Idempotency-Key": "k"}
    one, two, three = [manifest(name) if resource == "jobs" else sample(resource, name) for name in ("a", "b", "c")]

    async def posted() -> list[str]:
        """Return the uids of a single submission and of a batch."""
        single = await gateway.client.post(path, json=one, headers=headers)
        batch = await gateway.client.post(f"{path}/batch?atomic=true", json=list_of(two, three), headers=headers)
        return [single.json()["uid"], *(item["object"]["uid"] for item in batch.json()["items"])]

    first = await posted()
    assert await posted() == first
    await create_again(gateway)
    again = await posted()
    assert not set(again) & set(first)
    assert await posted() == again


async def test_a_deleted_namespace_is_remembered_while_objects_of_it_are_stored(gateway: Gateway) -> None:
    await gateway.submit()
    await bind(gateway, {NAMESPACE: FIRST, "empty": FIRST})
    await bind(gateway, {"other": FIRST})
    async with gateway.db.read() as connection:
        uids = await connection.fetchval("SELECT uids FROM cluster_namespaces")
    assert uids == {NAMESPACE: "first", "other": "first"}
    assert await bind(gateway, {NAMESPACE: NamespaceLife("second", now() + timedelta(seconds=1))}) == [NAMESPACE]


async def test_sample_sets_of_the_former_namespace_are_deleted_and_hidden(gateway: Gateway) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/samplesets"
    created = await gateway.client.post(path, json=sample("samplesets", "data"))
    assert created.status_code == 201, created.text
    await create_again(gateway)
    assert (await gateway.client.get(f"{path}/data")).status_code == 404
    assert (await gateway.client.post(path, json=sample("samplesets", "data"))).status_code == 201
    found = (await gateway.client.get(f"/api/v1/samplesets/{created.json()['uid']}")).json()
    assert (found["namespace"], found["deletedAt"] is not None) == (f"{NAMESPACE}~first", True)


async def test_a_running_sample_job_of_the_former_namespace_ends_and_causes_no_work(gateway: Gateway) -> None:
    """Nothing reconciles it any more, so the move itself has to end it, as its deletion does."""
    uid = (await submit(gateway, JOBS))["uid"]
    await conclude(gateway, uid, {"phase": SampleJobPhase.RUNNING}, wake_at=now())
    assert [str(due.uid) for due in await sample_controller.read_overdue(gateway.db, now(), 10)] == [uid]
    await create_again(gateway)
    assert (await gateway.client.get(path(JOBS, "one"))).status_code == 404
    found = (await gateway.client.get(f"/api/v1/samplejobs/{uid}")).json()
    assert (found["namespace"], found["status"]["reason"]) == (f"{NAMESPACE}~first", "Deleted")
    assert None not in (found["deletedAt"], found["status"]["finishedAt"])
    assert await sample_controller.read_overdue(gateway.db, now(), 10) == []
    [*_, line] = (await gateway.client.get(f"/api/v1/samplejobs/{uid}/history")).json()["items"]
    assert (line["reason"], line["message"]) == ("DeleteRequested", "the namespace was deleted and created again")
