"""Scale requests: accepted and refused sizes, scale records, and concurrency with edits."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx2
import pytest

from app.db.jobs import edits, scale_records
from app.domain.access.actors import Actor
from app.domain.kinds import registry
from app.domain.plan import Rank
from app.domain.status.records import Attempt, Replica
from app.domain.vocabulary import JobPhase, ScaleOutcome
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path
from tests.support.kinds import resizable_job

PATCH = {"Content-Type": "application/merge-patch+json"}
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def gateway(own_namespace: Gateway) -> Gateway:
    return own_namespace


@pytest.fixture(scope="module", autouse=True)
def resizable() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "JOB_KINDS", resizable_job.KINDS_WITH_RESIZABLE)
        yield


async def submit(
    gateway: Gateway,
    name: str = "hello",
    sizes: Mapping[str, int] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    answer = await gateway.client.post(gateway.path(), json=resizable_job.manifest(name, sizes, annotations))
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


async def scale(gateway: Gateway, body: Any, **headers: str) -> httpx2.Response:
    return await gateway.client.post(gateway.path("hello", "scale"), json=body, headers=headers)


async def records(gateway: Gateway) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await gateway.client.get(gateway.path("hello", "scale-records"))).json()["items"]
    return items


def sizes(job: Mapping[str, Any]) -> dict[str, int]:
    return {task: one["replicas"] for task, one in job["scaling"].items()}


async def test_a_job_shows_its_scalable_tasks(gateway: Gateway) -> None:
    assert (await submit(gateway))["scaling"] == {"worker": {"replicas": 2, "min": 1, "max": 6}}
    assert (await gateway.submit("plain"))["scaling"] == {}


async def test_a_scale_is_an_edit_with_a_record(gateway: Gateway) -> None:
    await submit(gateway)
    answer = await scale(gateway, {"replicas": 4, "reason": "the queue is long"})
    assert answer.status_code == 202, answer.text
    assert (answer.json()["generation"], sizes(answer.json())) == (2, {"worker": 4})
    (record,) = await records(gateway)
    requested = record.pop("requestedAt")
    assert requested is not None
    assert record == {
        "seq": 1,
        "task": "worker",
        "fromReplicas": 2,
        "toReplicas": 4,
        "actor": "anonymous",
        "actorId": "anonymous",
        "reason": "the queue is long",
        "settledAt": None,
        "outcome": None,
        "message": "",
    }
    history = (await gateway.client.get(gateway.path("hello", "history"))).json()["items"]
    assert [(line["reason"], line["message"]) for line in history][1:] == [("ScaleRequested", "the queue is long")]


async def test_a_scale_to_the_present_size_leaves_no_record(gateway: Gateway) -> None:
    created = await submit(gateway)
    await gateway.conclude(created["uid"], {"phase": JobPhase.RUNNING, "observed_generation": 1})
    answer = await scale(gateway, {"replicas": 2})
    assert (answer.status_code, answer.json()["generation"]) == (200, 1)
    assert await records(gateway) == []


async def test_a_scale_of_several_tasks_records_only_changes(gateway: Gateway) -> None:
    await submit(gateway, sizes={"collector": 2, "learner": 1})
    answer = await scale(gateway, {"tasks": {"collector": 3, "learner": 1}})
    assert (answer.status_code, sizes(answer.json())) == (202, {"collector": 3, "learner": 1})
    assert sizes((await scale(gateway, {"task": "learner", "replicas": 2})).json()) == {"collector": 3, "learner": 2}
    found = [(record["task"], record["fromReplicas"], record["toReplicas"]) for record in await records(gateway)]
    assert found == [("collector", 2, 3), ("learner", 1, 2)]


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
async def test_an_edit_that_changes_a_size_is_recorded_too(gateway: Gateway, method: str) -> None:
    await submit(gateway)
    more = resizable_job.manifest(sizes={"worker": 5})
    headers = PATCH if method == "PATCH" else {}
    answer = await gateway.client.request(method, gateway.path("hello"), json=more, headers=headers)
    assert answer.status_code == 202, answer.text
    assert [(record["fromReplicas"], record["toReplicas"], record["reason"]) for record in await records(gateway)] == [
        (2, 5, "")
    ]


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, [("/replicas", "Required")]),
        ({"tasks": {}}, [("/tasks", "Required")]),
        ({"replicas": "4"}, [("/replicas", "InvalidType")]),
        ({"replicas": True}, [("/replicas", "InvalidType")]),
        ({"replicas": 1.5}, [("/replicas", "InvalidType")]),
        ({"replica": 4}, [("/replica", "UnknownField")]),
        ({"replicas": 4, "reason": 1}, [("/reason", "InvalidType")]),
        ({"tasks": {"a": "x"}}, [("/tasks/a", "InvalidType")]),
        ({"replicas": 3, "tasks": {"a": 3}}, [("/replicas", "NotTogether")]),
        ({"replicas": 3}, [("/task", "Required")]),
        ({"replicas": 3, "task": "c"}, [("/task", "UnknownTask")]),
        ({"task": "c"}, [("/replicas", "Required"), ("/task", "UnknownTask")]),
        ({"replicas": 0, "task": "a"}, [("/replicas", "OutOfRange")]),
        ({"replicas": 7, "task": "a"}, [("/replicas", "OutOfRange")]),
        ({"replicas": 2**62, "task": "a"}, [("/replicas", "OutOfRange")]),
        ({"tasks": {"a": 0, "b": 9, "x/y": 1}}, [("/tasks/a", "OutOfRange"), ("/tasks/b", "OutOfRange")]),
        ({"tasks": {"x/y": 1}}, [("/tasks/x~1y", "UnknownTask")]),
        ({"tasks": {"a": 5, "b": 4}}, [("/tasks", "OutOfRange")]),
    ],
)
async def test_invalid_sizes_are_refused(body: Any, errors: list[tuple[str, str]], gateway: Gateway) -> None:
    created = await submit(gateway, sizes={"a": 2, "b": 1})
    answer = await scale(gateway, body)
    assert answer.status_code == 422, answer.text
    found = [(error["pointer"], error["code"]) for error in answer.json()["errors"]]
    assert set(errors) <= set(found), found
    assert (await gateway.client.get(gateway.path("hello"))).json() == created


async def test_an_error_says_which_sizes_are_accepted(gateway: Gateway) -> None:
    await submit(gateway, sizes={"a": 2, "b": 1})
    each = (await scale(gateway, {"tasks": {"a": 9}})).json()["errors"]
    assert [(error["detail"], error["accepted"]) for error in each] == [("a would have 9 replicas", "1 to 6")]
    (both,) = (await scale(gateway, {"tasks": {"a": 6, "b": 3}})).json()["errors"]
    assert both["accepted"] == "2 to 8 together"
    (which,) = (await scale(gateway, {"replicas": 3})).json()["errors"]
    assert which["accepted"] == "one of a, b"


async def test_a_kind_or_a_job_with_one_size_cannot_be_scaled(gateway: Gateway) -> None:
    await gateway.submit()
    answer = await scale(gateway, {"replicas": 3})
    assert (answer.status_code, answer.json()["code"]) == (409, "ScaleNotSupported")
    await submit(gateway, "fixed", annotations={"tests/least": "2", "tests/most": "2"})
    answer = await gateway.client.post(gateway.path("fixed", "scale"), json={"replicas": 2})
    assert (answer.status_code, answer.json()["code"]) == (409, "ScaleNotSupported")


@pytest.mark.parametrize(("phase", "code"), [(JobPhase.SUCCEEDED, "AlreadyFinished"), (None, "Deleted")])
async def test_an_ended_or_deleted_job_cannot_be_scaled(phase: JobPhase | None, code: str, gateway: Gateway) -> None:
    created = await submit(gateway)
    if phase is None:
        await gateway.client.delete(gateway.path("hello"))
    else:
        await gateway.conclude(created["uid"], {"phase": phase})
    answer = await scale(gateway, {"replicas": 3})
    assert (answer.status_code, answer.json()["code"]) == (409, code)
    assert (await gateway.client.post(gateway.path("none", "scale"), json={"replicas": 3})).status_code == 404


async def test_a_cancelled_job_cannot_be_scaled(gateway: Gateway) -> None:
    await submit(gateway)
    await gateway.client.post(gateway.path("hello", "cancel"))
    answer = await scale(gateway, {"replicas": 3})
    assert (answer.status_code, answer.json()["code"]) == (409, "Cancelling")
    assert await records(gateway) == []


async def test_if_match_applies_to_a_scale(gateway: Gateway) -> None:
    await submit(gateway)
    tag = (await gateway.client.get(gateway.path("hello"))).headers["etag"]
    assert (await scale(gateway, {"replicas": 3}, **{"If-Match": tag})).status_code == 202
    assert (await scale(gateway, {"replicas": 4}, **{"If-Match": tag})).status_code == 412


@pytest.mark.asyncio(loop_scope="function")
async def test_a_scale_needs_the_role_submitter(closed_gateway: Gateway) -> None:
    submitter, viewer = [await closed_gateway.token(role, NAMESPACE) for role in ("submitter", "viewer")]
    answer = await closed_gateway.client.post(jobs_path(), json=resizable_job.manifest(), headers=submitter)
    assert answer.status_code == 201
    assert (await scale(closed_gateway, {"replicas": 3}, **viewer)).status_code == 403
    assert (await scale(closed_gateway, {"replicas": 3}, **submitter)).status_code == 202


async def test_a_scale_up_that_needs_a_pod_name_in_use_is_refused(gateway: Gateway) -> None:
    await submit(gateway, sizes={"worker": 2, "worker-a": 0})
    holder = await submit(gateway, "hello-worker", {"a": 2})  # its pods are hello-worker-a-0 and hello-worker-a-1
    before = (await gateway.client.get(gateway.path("hello"))).json()
    answer = await scale(gateway, {"task": "worker-a", "replicas": 1})
    assert (answer.status_code, answer.json()["code"]) == (409, "NameTaken")
    assert f"hello-worker ({holder['uid']})" in answer.json()["errors"][0]["detail"]
    assert (await gateway.client.get(gateway.path("hello"))).json() == before
    assert await records(gateway) == []


async def test_concurrent_additions_all_count(gateway: Gateway) -> None:
    await submit(gateway, sizes={"worker": 1})
    add = gateway.services.editor.add
    await asyncio.gather(
        *(
            add(gateway.namespace, "hello", {"worker": 1}, actor=Actor("pod"), precondition=lambda _: None)
            for _ in range(4)
        )
    )
    assert sizes((await gateway.client.get(gateway.path("hello"))).json()) == {"worker": 5}
    assert [(record["fromReplicas"], record["toReplicas"]) for record in await records(gateway)] == [
        (size, size + 1) for size in range(1, 5)
    ]


async def test_a_concurrent_scale_and_edit_both_apply(gateway: Gateway) -> None:
    await submit(gateway)
    label = {"metadata": {"labels": {"a": "b"}}}
    answers = await asyncio.gather(
        scale(gateway, {"replicas": 5}), gateway.client.patch(gateway.path("hello"), json=label, headers=PATCH)
    )
    assert [answer.status_code for answer in answers] == [202, 202]
    job = (await gateway.client.get(gateway.path("hello"))).json()
    assert (job["labels"], sizes(job), job["generation"]) == ({"a": "b"}, {"worker": 5}, 2)


async def test_native_status_has_scale_records_and_reports(gateway: Gateway) -> None:
    created = await submit(gateway)
    await scale(gateway, {"replicas": 3})
    await submit(gateway, "calm")
    assert await edits.set_reported(gateway.db, UUID(created["uid"]), {"gpu": 1})
    native = {"records": [1], "reported": {"gpu": 1}}
    assert (await gateway.client.get(gateway.path("hello"))).json()["nativeStatus"] == native
    for _ in range(2):
        await edits.set_reported(gateway.db, UUID(created["uid"]), {"gpu": 2})
        listed = (await gateway.client.get(gateway.path())).json()["items"]
        assert {item["name"]: item["nativeStatus"] for item in listed} == {
            "hello": native | {"reported": {"gpu": 2}},
            "calm": {"records": [], "reported": {}},
        }


async def test_outcomes_and_leaving_ranks_are_shown(gateway: Gateway) -> None:
    created = await submit(gateway, sizes={"worker": 3})
    await scale(gateway, {"replicas": 2})
    (record,) = await scale_records.page(gateway.db, UUID(created["uid"]), limit=10)
    leaving = [Replica(key=Rank("worker", n), attempt=Attempt(number=1), leaving=n == 2) for n in range(3)]
    settled = replace(record, settled_at=record.requested_at, outcome=ScaleOutcome.REFUSED, message="no room")
    await gateway.conclude(created["uid"], {}, replicas=leaving, scaled=[settled])
    (shown,) = await records(gateway)
    assert (shown["outcome"], shown["message"], shown["settledAt"]) == ("Refused", "no room", shown["requestedAt"])
    replicas = (await gateway.client.get(gateway.path("hello", "replicas"))).json()["items"]
    assert [(record["rank"], record["leaving"]) for record in replicas] == [(0, False), (1, False), (2, True)]
