"""After a redaction, no answer contains a value of an environment variable of the job."""

from typing import Any
from uuid import UUID

import pytest

from app.connections import NotPossible
from app.domain.vocabulary import JobPhase
from app.redacting import redact_jobs
from tests.db.factories import NOW
from tests.support.every_kind import list_of
from tests.support.gateway import NAMESPACE, Gateway, jobs_path, manifest

SECRET = "s3cr3t-value"
HELLO = jobs_path(NAMESPACE, "hello")
KEY = {"Idempotency-Key": "once"}


def with_secret() -> Any:
    document = manifest()
    container = document["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]
    container["env"] = [
        {"name": "PASSWORD", "value": SECRET},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    return document


async def submitted(gateway: Gateway) -> str:
    answer = await gateway.client.post(jobs_path(NAMESPACE), json=with_secret(), headers=KEY)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["uid"])


async def redact(gateway: Gateway, *jobs: str) -> list[str]:
    return [line async for line in redact_jobs(gateway.db, jobs)]


@pytest.mark.parametrize("by", ["uid", "name"])
async def test_no_answer_contains_a_redacted_value(gateway: Gateway, by: str) -> None:
    uid = await submitted(gateway)
    paths = [HELLO, f"{HELLO}/posted-manifest", f"{HELLO}/manifests", f"{HELLO}/history", f"/api/v1/jobs/{uid}"]
    paths += [jobs_path(NAMESPACE), f"{jobs_path(NAMESPACE)}?view=full"]
    before = [await gateway.client.get(path) for path in paths]
    assert sum(SECRET in answer.text for answer in before) >= 4
    await gateway.conclude(uid, {"phase": JobPhase.FAILED, "finished_at": NOW})
    assert await redact(gateway, uid if by == "uid" else f"{NAMESPACE}/hello") == [f"redacted {NAMESPACE}/hello {uid}"]
    for path in paths:
        answer = await gateway.client.get(path)
        assert (answer.status_code, SECRET in answer.text) == (200, False), path
    job = (await gateway.client.get(HELLO)).json()
    (first, second) = job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["env"]
    assert first == {"name": "PASSWORD", "value": "<redacted>"}
    assert second["valueFrom"] == {"secretKeyRef": {"name": "s", "key": "k"}}
    repeated = await gateway.client.post(jobs_path(NAMESPACE), json=with_secret(), headers=KEY)
    assert (repeated.status_code, repeated.json()["uid"], SECRET in repeated.text) == (200, uid, False)
    posted = (await gateway.client.get(f"{HELLO}/posted-manifest")).json()["manifest"]
    assert posted["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["env"][0]["value"] == "<redacted>"
    (last,) = (await gateway.client.get(f"{HELLO}/history")).json()["items"][-1:]
    assert (last["reason"], last["actor"]) == ("Redacted", "jobgate redact")
    retried = await gateway.client.post(f"{HELLO}/retry")
    assert (retried.status_code, retried.json()["code"]) == (409, "Redacted")


async def test_the_answer_to_an_atomic_batch_is_redacted_with_any_of_its_jobs(gateway: Gateway) -> None:
    documents = [with_secret() | {"metadata": {"name": name}} for name in ("first", "second")]
    batch = f"{jobs_path(NAMESPACE)}/batch?atomic=true"

    async def submit() -> Any:
        return await gateway.client.post(batch, json=list_of(*documents), headers=KEY)

    answer = await submit()
    assert SECRET in answer.text, answer.text
    uid = str(answer.json()["items"][1]["object"]["uid"])
    await gateway.conclude(uid, {"phase": JobPhase.FAILED, "finished_at": NOW})
    await redact(gateway, uid)
    repeated = await submit()
    assert (repeated.json()["items"][1]["object"]["uid"], SECRET in repeated.text) == (uid, False)


async def test_what_cannot_be_redacted_is_named(gateway: Gateway) -> None:
    uid = await submitted(gateway)
    with pytest.raises(NotPossible, match="only a job that has ended can be redacted"):
        await redact(gateway, uid)
    with pytest.raises(NotPossible, match="no ended job hello"):
        await redact(gateway, f"{NAMESPACE}/hello")
    with pytest.raises(NotPossible, match="there is no job"):
        await redact(gateway, str(UUID(int=1)))
    with pytest.raises(NotPossible, match="neither NAMESPACE/NAME nor the uid"):
        await redact(gateway, "hello")
