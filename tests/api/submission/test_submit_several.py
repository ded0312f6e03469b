"""Several jobs in one request: all or none are stored, and all errors are reported at once."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import yaml

from app.db.postgres.engine import Database
from app.domain.planning import Planner
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest

YAML = {"Content-Type": "application/yaml"}
KEY = {"Idempotency-Key": "several"}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}
NOTHING_LEFT = ("jobs", "names", "idempotency_keys", "status_history", "job_events")


def list_of(*items: Any, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items), **more}


def jobs(*names: str) -> list[Any]:
    return [manifest(name) for name in names]


async def post(gateway: Gateway, body: Any, query: str = "", **headers: str) -> httpx2.Response:
    return await gateway.client.post(jobs_path() + query, json=body, headers=headers)


async def stored(gateway: Gateway) -> list[str]:
    items = (await gateway.client.get(jobs_path())).json()["items"]
    return [item["name"] for item in items]


async def rows(db: Database) -> dict[str, int]:
    async with db.read() as connection:
        return {table: await connection.fetchval(f"SELECT count(*) FROM {table}") for table in NOTHING_LEFT}


def errors(answer: httpx2.Response, status: int = 422) -> list[tuple[str, str]]:
    assert answer.status_code == status, answer.text
    return [(error["pointer"], error["code"]) for error in answer.json()["errors"]]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (json.dumps(list_of(*jobs("a", "b"), metadata={"resourceVersion": ""})), {"Content-Type": "application/json"}),
        (yaml.safe_dump(list_of(*jobs("a", "b"))), YAML),
        ("---\n# nothing\n---\n" + yaml.safe_dump_all(jobs("a", "b")) + "---\n\n---\n", YAML),
    ],
    ids=["a list", "a list in YAML", "documents"],
)
async def test_several_jobs_are_answered_as_a_list_in_order(body: str, headers: Any, gateway: Gateway) -> None:
    answer = await gateway.client.post(jobs_path(), content=body, headers=headers)
    assert answer.status_code == 201, answer.text
    created = answer.json()
    assert [item["name"] for item in created["items"]] == ["a", "b"]
    assert "location" not in answer.headers
    for item in created["items"]:
        assert (await gateway.client.get(jobs_path(NAMESPACE, item["name"]))).json() == item
    listed = (await gateway.client.get(jobs_path())).json()
    assert sorted(listed["items"], key=lambda item: str(item["name"])) == created["items"]
    assert listed.keys() == {*created, "view"}


async def test_a_list_of_one_is_a_list_and_a_document_among_empty_ones_is_a_job(gateway: Gateway) -> None:
    assert [item["name"] for item in (await post(gateway, list_of(*jobs("a")))).json()["items"]] == ["a"]
    body = "---\n---\n" + yaml.safe_dump(manifest("b")) + "---\n"
    answer = await gateway.client.post(jobs_path(), content=body, headers=YAML)
    assert (answer.status_code, answer.json()["name"]) == (201, "b")
    assert answer.headers["location"] == jobs_path(NAMESPACE, "b")


async def test_all_errors_of_all_jobs_are_reported_and_nothing_is_stored(gateway: Gateway) -> None:
    wrong = manifest("b", replicas=-1, cleanUpPolicy="Some")
    elsewhere = manifest("d") | {"metadata": {"name": "d", "namespace": "other"}}
    old = manifest("e") | {"apiVersion": "batch.tensorstack.dev/v9"}
    answer = await post(gateway, list_of(manifest("a"), wrong, CONFIG_MAP, elsewhere, old))
    assert set(errors(answer)) == {
        ("/items/1/spec/replicaSpecs/0/replicas", "OutOfRange"),
        ("/items/1/spec/cleanUpPolicy", "InvalidValue"),
        ("/items/2/kind", "UnknownKind"),
        ("/items/3/metadata/namespace", "NamespaceMismatch"),
        ("/items/4/apiVersion", "UnknownKind"),
    }
    assert answer.json()["detail"].startswith("4 of the 5 manifests are not valid")
    reported = {error["pointer"]: error for error in answer.json()["errors"]}
    assert "GenericJob (batch.tensorstack.dev/v1beta1)" in reported["/items/2/kind"]["accepted"]
    assert reported["/items/4/apiVersion"]["accepted"] == "batch.tensorstack.dev/v1beta1"
    assert set((await rows(gateway.db)).values()) == {0}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (list_of(), [("/items", "Required")]),
        ({"apiVersion": "v1", "kind": "List"}, [("/items", "Required")]),
        (list_of("text", 7), [("/items/0", "InvalidType"), ("/items/1", "InvalidType")]),
        (list_of(manifest("a"), list_of(manifest("b"))), [("/items/1/kind", "NestedList")]),
        (list_of(manifest("a")) | {"apiVersion": "v2"}, [("/apiVersion", "UnknownKind")]),
        (list_of(manifest("a"), item=1), [("/item", "UnknownField")]),
        (list_of(*(manifest(f"j{n}") for n in range(101))), [("/items", "TooManyItems")]),
        (list_of(manifest("a"), manifest("b"), manifest("a")), [("/items/2/metadata/name", "Duplicate")]),
        (
            list_of(manifest("a"), manifest("a-worker-0", replicas=1) | {"kind": "Job"}),
            [("/items/1/kind", "UnknownKind")],
        ),
    ],
    ids=["empty", "no items", "no objects", "nested", "version", "field", "too many", "twice", "one unknown"],
)
async def test_invalid_lists_are_refused(body: Any, expected: Sequence[tuple[str, str]], gateway: Gateway) -> None:
    assert errors(await post(gateway, body)) == list(expected)
    assert set((await rows(gateway.db)).values()) == {0}


async def test_documents_have_pointers_like_items(gateway: Gateway) -> None:
    body = yaml.safe_dump_all([manifest("a"), list_of(manifest("b"))])
    answer = await gateway.client.post(jobs_path(), content=body, headers=YAML)
    assert errors(answer) == [("/items/1/kind", "NestedList")]
    one_by_one = await gateway.client.put(jobs_path(NAMESPACE, "a"), content=body, headers=YAML)
    assert errors(one_by_one, 400) == [("", "TooManyDocuments")]


async def test_a_hundred_jobs_are_stored_together(gateway: Gateway) -> None:
    names = [f"job-{number}" for number in range(100)]
    answer = await post(gateway, list_of(*jobs(*names)))
    assert [item["name"] for item in answer.json()["items"]] == names
    assert (await rows(gateway.db))["jobs"] == 100


async def test_names_in_use_refuse_the_list_and_are_all_reported(gateway: Gateway) -> None:
    held = [(await gateway.submit(name))["uid"] for name in ("b", "d")]
    before = await rows(gateway.db)
    answer = await post(gateway, list_of(*jobs("a", "b", "c", "d")), **KEY)
    assert errors(answer, 409) == [("/items/1/metadata/name", "NameTaken"), ("/items/3/metadata/name", "NameTaken")]
    for uid, error in zip(held, answer.json()["errors"], strict=True):
        assert uid in error["detail"]
    assert await rows(gateway.db) == before
    assert (
        await post(gateway, list_of(*jobs("a", "c")), **KEY)
    ).status_code == 201  # the refused request did not use the key


async def test_generated_names_differ(gateway: Gateway) -> None:
    generated = manifest("x") | {"metadata": {"generateName": "run-"}}
    names = [item["name"] for item in (await post(gateway, list_of(*[generated] * 5))).json()["items"]]
    assert len(set(names)) == 5
    assert all(name.startswith("run-") for name in names)


async def test_an_idempotency_key_covers_the_whole_request(gateway: Gateway) -> None:
    first = await post(gateway, list_of(*jobs("a", "b")), **KEY)
    body = yaml.safe_dump_all(jobs("a", "b"))
    again = await gateway.client.post(jobs_path(), content=body, headers=KEY | YAML)
    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    for other in (list_of(*jobs("a")), manifest("a"), list_of(*jobs("b", "a"))):
        refused = await post(gateway, other, **KEY)
        assert (refused.status_code, refused.json()["code"]) == (422, "IdempotencyKeyReused")
    assert sorted(await stored(gateway)) == ["a", "b"]


async def test_a_dry_run_answers_with_a_list_and_stores_nothing(gateway: Gateway) -> None:
    answer = await post(gateway, list_of(*jobs("a", "b")), "?dryRun=All", **KEY)
    assert answer.status_code == 200
    assert [item["plan"]["pods"] for item in answer.json()["items"]] == [
        ["a-worker-0", "a-worker-1"],
        ["b-worker-0", "b-worker-1"],
    ]
    assert errors(await post(gateway, list_of(*jobs("a", "a")), "?dryRun=All")) == [
        ("/items/1/metadata/name", "Duplicate")
    ]
    assert set((await rows(gateway.db)).values()) == {0}


async def test_a_viewer_cannot_submit(closed_gateway: Gateway) -> None:
    viewer = await closed_gateway.token("viewer", NAMESPACE)
    assert (await post(closed_gateway, list_of(*jobs("a", "b")), **viewer)).status_code == 403


@asynccontextmanager
async def failing_at(db: Database, table: str, condition: str, act: str) -> AsyncIterator[None]:
    """Execute `act` in the transaction when it inserts the row that `condition` selects."""
    async with db.read() as connection:
        await connection.execute(
            f"CREATE FUNCTION strike() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF {condition} THEN {act} END IF; RETURN NEW; END $$"
        )
        await connection.execute(
            f"CREATE TRIGGER strike AFTER INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION strike()"
        )
    yield
    async with db.read() as connection:
        await connection.execute("DROP FUNCTION strike CASCADE")


@pytest.mark.parametrize("act", ["PERFORM pg_terminate_backend(pg_backend_pid());", "RAISE 'no more';"])
@pytest.mark.parametrize(
    ("table", "condition"),
    [
        ("idempotency_keys", "true"),
        ("names", "NEW.name = 'c'"),
        ("jobs", "NEW.name = 'b'"),
        ("status_history", "true"),
        ("job_events", "true"),
    ],
)
async def test_a_failed_transaction_stores_nothing(table: str, condition: str, act: str, gateway: Gateway) -> None:
    body = list_of(*jobs("a", "b", "c"))
    async with failing_at(gateway.db, table, condition, act):
        assert (await post(gateway, body, **KEY)).status_code >= 500
        assert set((await rows(gateway.db)).values()) == {0}
    again = await post(gateway, body, **KEY)
    assert [item["name"] for item in again.json()["items"]] == ["a", "b", "c"]


async def batch(gateway: Gateway, body: Any, **headers: str) -> list[Any]:
    answer = await gateway.client.post(jobs_path(NAMESPACE, "batch"), json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    items: list[Any] = answer.json()["items"]
    return items


async def test_a_batch_stores_valid_items_and_reports_each_result(gateway: Gateway) -> None:
    held = (await gateway.submit("b"))["uid"]
    wrong = manifest("c", cleanUpPolicy="Some")
    items = await batch(gateway, list_of(manifest("a"), manifest("b"), wrong, CONFIG_MAP, manifest("d")))
    assert [item["status"] for item in items] == [201, 409, 422, 422, 201]
    assert [item["object"] and item["object"]["name"] for item in items] == ["a", None, None, None, "d"]
    assert [item["problem"] and item["problem"]["code"] for item in items] == [
        None,
        "NameTaken",
        "InvalidManifest",
        "InvalidManifest",
        None,
    ]
    assert held in items[1]["problem"]["errors"][0]["detail"]
    assert items[2]["problem"]["errors"][0]["pointer"] == "/spec/cleanUpPolicy"
    assert sorted(await stored(gateway)) == ["a", "b", "d"]


async def test_a_repeated_batch_retries_refused_items_and_duplicates_none(gateway: Gateway) -> None:
    body = list_of(*jobs("a", "b"), manifest("x") | {"metadata": {"generateName": "run-"}})
    await gateway.submit("b")
    first = await batch(gateway, body, **KEY)
    assert (await gateway.client.delete(jobs_path(NAMESPACE, "b"))).status_code in (200, 202)
    again = await batch(gateway, body, **KEY)
    assert [item["status"] for item in first] == [201, 409, 201]
    assert [item["status"] for item in again][::2] == [200, 200]
    assert [item["object"] for item in again][::2] == [item["object"] for item in first][::2]
    assert len([name for name in await stored(gateway) if name.startswith("run-")]) == 1


async def test_a_batch_may_have_one_item_and_must_have_manifests(gateway: Gateway) -> None:
    assert [item["status"] for item in await batch(gateway, manifest("a"))] == [201]
    refused = await gateway.client.post(jobs_path(NAMESPACE, "batch"), json=list_of("text"))
    assert errors(refused) == [("/items/0", "InvalidType")]


async def test_concurrent_lists_with_common_names_are_stored_as_a_whole_or_not_at_all(gateway: Gateway) -> None:
    """The names have random orders, so that transactions would deadlock if they did not reserve names in one order."""
    randomness = random.Random(5)
    wanted = [randomness.sample([f"job-{number}" for number in range(12)], 4) for _ in range(40)]
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(post(gateway, list_of(*jobs(*names)))) for names in wanted]
    answers = [call.result() for call in calls]
    assert {answer.status_code for answer in answers} <= {201, 409}, [answer.text for answer in answers]
    stored_names = [
        name for names, answer in zip(wanted, answers, strict=True) if answer.status_code == 201 for name in names
    ]
    assert len(set(stored_names)) == len(stored_names) > 0
    assert sorted(await stored(gateway)) == sorted(stored_names)


async def test_concurrent_requests_with_one_key_create_the_jobs_once(gateway: Gateway) -> None:
    body = list_of(*[manifest("x") | {"metadata": {"generateName": "run-"}}] * 3)
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(post(gateway, body, **KEY)) for _ in range(24)]
    answers = [call.result() for call in calls]
    assert sorted(answer.status_code for answer in answers) == [200] * 23 + [201]
    assert len({answer.content for answer in answers}) == 1
    assert len(await stored(gateway)) == 3


async def test_items_of_a_batch_are_planned_in_separate_iterations_of_the_event_loop(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other requests run between two items."""
    iterations, planned = 0, []
    plan = Planner.draft

    def noting(*arguments: Any, **more: Any) -> Any:
        planned.append(iterations)
        return plan(*arguments, **more)

    async def count_iterations() -> None:
        nonlocal iterations
        while True:
            iterations += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(Planner, "draft", noting)
    async with asyncio.TaskGroup() as group:
        counting = group.create_task(count_iterations())
        await batch(gateway, list_of(*jobs(*(f"job-{number}" for number in range(10)))))
        counting.cancel()
    assert len(set(planned)) == 10
