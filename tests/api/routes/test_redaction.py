"""After a redaction, nothing that is stored of an object has a trace of the secret."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import LargeBinary

from app.db import kept_logs, log_removal
from app.db.redaction import JOBS, SAMPLES, Redactable, redactable_columns
from app.domain.kept_logs.keys import LogKey
from app.domain.kept_logs.records import GapReason
from app.domain.plan import JobWarning, Rank
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import (
    Attempt,
    Condition,
    FailureSummary,
    HistoryEntry,
    JobPendingReason,
    Replica,
    ReplicaFailure,
    Transition,
)
from app.domain.vocabulary import ConditionType, JobPhase, Outcome, ReplicaPhase, WarningSource
from app.log_store import open_store
from app.models import metadata
from app.services.editing import redaction as redacting
from tests.db.factories import NOW
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest
from tests.support.kept_logs import finish, keep, timed
from tests.support.kinds import samples
from tests.support.kinds.every_kind import list_of

SECRET = "s3cr3t-value"
HELLO = jobs_path(NAMESPACE, "hello")
KEY = {"Idempotency-Key": "once"}
TEXT = {"texts": [SECRET]}
ENV = {"env": ["PASSWORD"]}
EVERY = {"env": ["*"]}
_WORKER = Rank("worker", 0)


def with_secret(name: str = "hello") -> Any:
    document = manifest(name)
    document["metadata"]["annotations"] = {"example.com/applied": f'{{"value":"{SECRET}"}}'}
    document["metadata"]["labels"] = {"example.com/key": SECRET}
    document["status"] = {"note": SECRET}  # only the posted manifest has it
    container = document["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]
    container["env"] = [
        {"name": "PASSWORD", "value": SECRET},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    container["args"] = ["--password", SECRET, f"--url=https://user:{SECRET}@host"]
    return document


async def submitted(gateway: Gateway, **headers: str) -> str:
    answer = await gateway.client.post(jobs_path(NAMESPACE), json=with_secret(), headers=KEY | headers)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["uid"])


async def end(gateway: Gateway, uid: str, **status: Any) -> None:
    await gateway.conclude(uid, {"phase": JobPhase.FAILED, "finished_at": NOW, **status})


async def redact(gateway: Gateway, uid: str, body: Any, resource: str = "jobs", **headers: str) -> Any:
    return await gateway.client.post(f"/api/v1/{resource}/{uid}/redact", json=body, headers=headers)


async def places_of(gateway: Gateway, text: str) -> set[str]:
    """Return the columns of the whole database that contain the text, as `table.column`."""
    found = set()
    async with gateway.db.read() as connection:
        for table in metadata.sorted_tables:
            for column in table.columns:
                shown = f"{column.name}::text"
                if isinstance(column.type, LargeBinary):
                    shown = f"encode({column.name}, 'escape')"
                query = f"SELECT count(*) FROM {table.name} WHERE strpos({shown}, $1) > 0"
                if await connection.fetchval(query, text):
                    found.add(f"{table.name}.{column.name}")
    return found


def places_of_kind(kind: Redactable[Any]) -> set[str]:
    tables = [kind.table, *(records.table for records in kind.records)]
    return {f"{table.name}.{column.name}" for table in tables for column in redactable_columns(table)}


async def plant(gateway: Gateway, kind: Redactable[Any], uid: str) -> None:
    """Write the secret into each text and log of the object's rows, beside what they have."""
    async with gateway.db.begin() as connection:
        for table, owner in [(kind.table, "uid"), *((record.table, record.owner) for record in kind.records)]:
            for column in redactable_columns(table):
                planted = {"TEXT": f"'said {SECRET}'", "BLOB": f"decode('00ff','hex') || 'said {SECRET}'::bytea"}
                value = planted.get(str(column.type))
                if value is not None and f"{table.name}.{column.name}" != "conditions.status":
                    update = f"UPDATE {table.name} SET {column.name} = {value} WHERE {owner} = $1"
                    assert await connection.execute(update, UUID(uid)) != "UPDATE 0", table.name


async def with_everything(gateway: Gateway) -> str:
    """Store an ended job with all sorts of records, each of which contains the secret."""
    documents = list_of(manifest("first"), with_secret())
    answer = await gateway.client.post(jobs_path(NAMESPACE), json=documents, headers=KEY)
    assert answer.status_code == 201, answer.text
    uid = str(answer.json()["items"][1]["uid"])
    container = ObservedContainer(name="main", state="terminated", message=SECRET)
    attempt = Attempt(number=1, phase=ReplicaPhase.FAILED, containers=(container,), last_lines=(f"> {SECRET}",))
    failure = ReplicaFailure(
        key=_WORKER, attempt=1, outcome=Outcome.FAILED, message=SECRET, last_lines=(SECRET,), at=NOW
    )
    condition = Condition(
        type=ConditionType.FAILED,
        status="True",
        reason="Failed",
        message=SECRET,
        last_transition_at=NOW,
        observed_generation=1,
    )
    status = {
        "phase": JobPhase.FAILED,
        "finished_at": NOW,
        "conditions": (condition,),
        "first_failure": failure,
        "ended_by": FailureSummary(first=(failure,), failed=1),
        "crashed": (failure,),
        "transitions": (Transition(at=NOW, phase=JobPhase.FAILED, reason="Failed", message=SECRET),),
        "pending_reasons": (JobPendingReason(code="Crash", message=SECRET, since=NOW, replicas=(), count=1),),
        "warnings": (JobWarning(source=WarningSource.CLUSTER, message=SECRET),),
    }
    await gateway.conclude(
        uid,
        status,
        replicas=[Replica(key=_WORKER, attempt=attempt)],
        ended=[(_WORKER, attempt)],
        history=[HistoryEntry(at=NOW, phase="Failed", reason="Failed", message=SECRET)],
    )
    async with gateway.db.begin() as connection:
        key = (UUID(uid), "worker", 0, 1)
        await connection.execute("INSERT INTO attempt_logs VALUES ($1, $2, $3, $4, 'main', '', false)", *key)
        events = [{"message": SECRET}]
        await connection.execute("INSERT INTO attempt_events VALUES ($1, $2, $3, $4, $5)", *key, events)
        await connection.execute(
            """INSERT INTO scale_records (job_uid, seq, task, from_replicas, to_replicas, actor, reason, requested_at)
            VALUES ($1, 1, 'worker', 1, 2, 'alice', '', $2)""",
            UUID(uid),
            NOW,
        )
        await connection.execute("UPDATE jobs SET reported = $2 WHERE uid = $1", UUID(uid), {"said": SECRET})
    await plant(gateway, JOBS, uid)
    return uid


@pytest.mark.parametrize(
    "selection", [TEXT, ENV, {"fields": ["/spec/replicaSpecs/0/template/spec/containers/0/args/1"]}]
)
async def test_nothing_in_the_database_has_a_trace_of_a_redacted_value(gateway: Gateway, selection: Any) -> None:
    uid = await with_everything(gateway)
    before = await places_of(gateway, SECRET)
    assert before == places_of_kind(JOBS) - {"conditions.status"} | {"idempotency_keys.answer"}
    answer = await redact(gateway, uid, selection)
    assert answer.status_code == 200, answer.text
    assert answer.json()["changed"] >= 8
    assert answer.json() | {"changed": 0} == {
        "uid": uid,
        "namespace": NAMESPACE,
        "name": "hello",
        "changed": 0,
        "inCluster": True,
        "nextPageToken": None,
    }
    assert await places_of(gateway, SECRET) == set()
    assert SECRET not in (await gateway.client.get(f"/api/v1/jobs/{uid}")).text
    version = (await gateway.client.get(HELLO)).headers["ETag"]
    again = await redact(gateway, uid, selection)
    assert (again.status_code, again.json()["changed"]) == (200, 0)
    assert (await gateway.client.get(HELLO)).headers["ETag"] == version


@pytest.mark.parametrize("resource", samples.RESOURCES)
async def test_nothing_has_a_trace_of_a_value_of_a_sample(gateway: Gateway, resource: str) -> None:
    document = samples.sample(resource)
    document["metadata"]["annotations"] = {"note": SECRET}
    posted = await gateway.client.post(samples.path(resource), json=document, headers=KEY)
    assert posted.status_code == 201, posted.text
    uid = posted.json()["uid"]
    await samples.conclude(gateway, uid, message=SECRET)
    async with gateway.db.begin() as connection:
        await connection.execute(
            "INSERT INTO sample_events VALUES ($1, 1, $2, 'Normal', 'Created', '')", UUID(uid), NOW
        )
    await plant(gateway, SAMPLES, uid)
    refused = await redact(gateway, uid, TEXT, resource)
    assert (refused.status_code, refused.json()["code"]) == (409, "NotFinished")
    assert "sample_events.message" in await places_of(gateway, SECRET)
    await gateway.client.delete(samples.path(resource, "one"))
    if resource == samples.SETS:
        await samples.conclude(gateway, uid, gone=True)
    done = await redact(gateway, uid, TEXT, resource)
    assert done.status_code == 200, done.text
    assert await places_of(gateway, SECRET) == set()
    assert (await redact(gateway, uid, TEXT, resource)).json()["changed"] == 0


async def test_what_a_redaction_leaves(gateway: Gateway) -> None:
    uid = await submitted(gateway)
    paths = [HELLO, f"{HELLO}/posted-manifest", f"{HELLO}/manifests", f"{HELLO}/history", f"/api/v1/jobs/{uid}"]
    paths += [jobs_path(NAMESPACE), f"{jobs_path(NAMESPACE)}?view=full"]
    before = [await gateway.client.get(path) for path in paths]
    assert sum(SECRET in answer.text for answer in before) >= 4
    await end(gateway, uid)
    assert (await redact(gateway, uid, TEXT)).status_code == 200
    for path in paths:
        answer = await gateway.client.get(path)
        assert (answer.status_code, SECRET in answer.text) == (200, False), path
    job = (await gateway.client.get(HELLO)).json()
    container = job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]
    assert container["env"][0] == {"name": "PASSWORD", "value": "<redacted>"}
    assert container["env"][1]["valueFrom"] == {"secretKeyRef": {"name": "s", "key": "k"}}
    assert container["args"] == ["--password", "<redacted>", "--url=https://user:<redacted>@host"]
    assert job["labels"] == {"example.com/key": "<redacted>"}
    repeated = await gateway.client.post(jobs_path(NAMESPACE), json=with_secret(), headers=KEY)
    assert (repeated.status_code, repeated.json()["uid"], SECRET in repeated.text) == (200, uid, False)
    (last,) = (await gateway.client.get(f"{HELLO}/history")).json()["items"][-1:]
    assert (last["reason"], last["actor"], last["message"]) == (
        "Redacted",
        "anonymous",
        "removed from what is stored: texts: 1",
    )
    retried = await gateway.client.post(f"{HELLO}/retry")
    assert (retried.status_code, retried.json()["code"]) == (409, "Redacted")


async def test_the_answer_to_a_batch_is_redacted_with_any_of_its_jobs(gateway: Gateway) -> None:
    documents = [with_secret() | {"metadata": {"name": name}} for name in ("first", "second")]
    batch = f"{jobs_path(NAMESPACE)}/batch?atomic=true"
    answer = await gateway.client.post(batch, json=list_of(*documents), headers=KEY)
    uids = [str(item["object"]["uid"]) for item in answer.json()["items"]]
    assert len(uids) == len(documents)
    for place, uid in enumerate(uids):
        await end(gateway, uid)
        assert (await redact(gateway, uid, TEXT)).status_code == 200
        repeated = await gateway.client.post(batch, json=list_of(*documents), headers=KEY)
        assert [item["object"]["uid"] for item in repeated.json()["items"]] == uids
        assert [SECRET in str(item) for item in repeated.json()["items"]] == [False, place == 0]


async def test_a_text_that_only_the_posted_manifest_has_is_redacted(gateway: Gateway) -> None:
    document = manifest("hello") | {"status": {"note": SECRET}}
    uid = (await gateway.client.post(jobs_path(NAMESPACE), json=document)).json()["uid"]
    assert await places_of(gateway, SECRET) == {"jobs.posted_manifest"}
    assert (await redact(gateway, uid, TEXT)).json()["changed"] == 1
    assert await places_of(gateway, SECRET) == set()


async def test_every_variable_is_redacted_in_place(gateway: Gateway) -> None:
    uid = await submitted(gateway)
    await end(gateway, uid, message=SECRET)
    assert (await redact(gateway, uid, EVERY)).json()["changed"] == 2
    assert await places_of(gateway, SECRET) == {
        "jobs.manifest",
        "jobs.message",
        "jobs.posted_manifest",
        "jobs.labels",
        "idempotency_keys.answer",
    }


async def test_the_records_of_a_live_job_are_redacted_and_its_manifest_is_not(gateway: Gateway) -> None:
    uid = await submitted(gateway)
    for selection in (TEXT, ENV, EVERY):
        refused = await redact(gateway, uid, selection)
        assert (refused.status_code, refused.json()["code"]) == (409, "NotFinished")
    await gateway.conclude(uid, {"message": "printed-in-the-log"})
    assert (await redact(gateway, uid, {"texts": ["printed-in-the-log"]})).json()["changed"] == 1
    assert await places_of(gateway, "printed-in-the-log") == set()


async def test_the_whole_logs_of_a_job_are_removed(gateway: Gateway, tmp_path: Path) -> None:
    uid = await submitted(gateway)
    await end(gateway, uid)
    store, key = open_store(f"file://{tmp_path}/store"), LogKey(UUID(uid), "worker", 0, 1, "main")
    await finish(gateway.db, await keep(gateway.db, store, key, timed(SECRET.encode())))
    [chunk] = await kept_logs.chunks_in_bytes(gateway.db, key)
    assert (await redact(gateway, uid, {"texts": ["only-in-the-log"]})).json()["changed"] == 1
    assert [chunk.gap for chunk in await kept_logs.chunks_in_bytes(gateway.db, key)] == [GapReason.REDACTED]
    assert await log_removal.due_deletions(gateway.db, 10) == [chunk.object_name]
    (last,) = (await gateway.client.get(f"{HELLO}/history")).json()["items"][-1:]
    assert last["message"] == "removed from what is stored: texts: 1"
    assert (await redact(gateway, uid, {"texts": ["only-in-the-log"]})).json()["changed"] == 0


async def test_a_text_in_what_jobgate_must_find_again_stays(gateway: Gateway) -> None:
    answer = await gateway.client.post(jobs_path(NAMESPACE), json=with_secret("s3cr3t-name"))
    uid = answer.json()["uid"]
    await end(gateway, uid)
    for text in ("s3cr3t-name", "worker", "GenericJob"):
        refused = await redact(gateway, uid, {"texts": [text]})
        assert (refused.status_code, refused.json()["code"]) == (409, "NotRedactable"), text
    assert await places_of(gateway, "<redacted>") == set()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, ""),
        ({"texts": ["short"]}, "/texts/0"),
        ({"texts": ["Succeeded"]}, "/texts/0"),
        ({"texts": [SECRET, "redacted"]}, "/texts/1"),
        ({"fields": ["spec"]}, "/fields/0"),
        ({"env": [""]}, "/env/0"),
        ({"values": [SECRET]}, "/values"),
    ],
)
async def test_a_selection_that_cannot_be_meant_is_refused(gateway: Gateway, body: Any, pointer: str) -> None:
    uid = await submitted(gateway)
    answer = await redact(gateway, uid, body)
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert SECRET not in answer.text


async def test_only_an_admin_of_all_namespaces_redacts(closed_gateway: Gateway) -> None:
    gateway = closed_gateway
    submitter = await gateway.token("submitter", NAMESPACE)
    answer = await gateway.client.post(jobs_path(NAMESPACE), json=with_secret(), headers=submitter)
    uid = answer.json()["uid"]
    await end(gateway, uid)
    for headers in (submitter, await gateway.token("viewer", "*"), await gateway.token("admin", NAMESPACE)):
        refused = await redact(gateway, uid, TEXT, **headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "Forbidden")
    admin = await gateway.token("admin", "*")
    assert (await redact(gateway, uid, TEXT, **admin)).status_code == 200
    assert (await redact(gateway, str(UUID(int=1)), TEXT, **admin)).status_code == 404
    (last,) = (await gateway.client.get(f"{HELLO}/history", headers=admin)).json()["items"][-1:]
    assert last["actorId"].startswith("token:")


async def test_a_long_redaction_continues_with_the_token(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redacting, "_SECONDS", -1.0)
    uid = await with_everything(gateway)
    rows: Sequence[Any] = [(UUID(uid), "worker", 0, number, "main", SECRET.encode()) for number in range(2, 60)]
    async with gateway.db.begin() as connection:
        await connection.executemany("INSERT INTO attempt_logs VALUES ($1, $2, $3, $4, $5, $6, false)", rows)
    token, requests = None, 0
    while token is not None or not requests:
        answer = await redact(gateway, uid, TEXT | ({"pageToken": token} if token else {}))
        assert answer.status_code == 200, answer.text
        token, requests = answer.json()["nextPageToken"], requests + 1
    assert requests > len(JOBS.records) + 2
    assert await places_of(gateway, SECRET) == set()
    first = (await redact(gateway, uid, TEXT)).json()["nextPageToken"]
    wrong = await redact(gateway, uid, ENV | {"pageToken": first})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "InvalidPageToken")
