"""Who did what: names that several share, and the identities that tell them apart."""

from typing import Any

from app.domain.access.actors import CONTROLLER
from app.domain.status.records import HistoryEntry
from app.domain.vocabulary import JobPhase, Reason
from tests.db.factories import NOW
from tests.support.gateways.gateway import NAMESPACE, jobs_path, manifest
from tests.support.gateways.oidc_site import WHOAMI, Site


def user(site: Site, subject: str, name: str) -> dict[str, str]:
    return site.issuer.bearer(sub=subject, preferred_username=name)


async def submitted(site: Site, name: str, headers: dict[str, str]) -> dict[str, Any]:
    answer = await site.gateway.client.post(jobs_path(), json=manifest(name), headers=headers)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def names(site: Site, headers: dict[str, str], **query: str) -> list[str]:
    answer = await site.gateway.client.get(jobs_path(), params=query, headers=headers)
    assert answer.status_code == 200, answer.text
    return sorted(item["name"] for item in answer.json()["items"])


async def history(site: Site, name: str, headers: dict[str, str]) -> list[dict[str, Any]]:
    answer = await site.gateway.client.get(jobs_path(NAMESPACE, name, "history"), headers=headers)
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def test_a_user_with_the_name_of_the_controller_is_not_the_controller(site: Site) -> None:
    forger = user(site, "u-7", CONTROLLER.name)
    job = await submitted(site, "train", forger)
    identity = f"user:{site.issuer.url}#u-7"
    assert (job["createdBy"], job["createdById"]) == ("jobgate", identity)
    running = HistoryEntry(at=NOW, phase=JobPhase.RUNNING, reason=Reason.SUBMITTED, message="")
    await site.gateway.conclude(job["uid"], {"phase": JobPhase.RUNNING}, history=[running])
    path = jobs_path(NAMESPACE, "train", "cancel")
    assert (await site.gateway.client.post(path, headers=forger)).status_code == 202
    rows = [(row["actor"], row["actorId"]) for row in await history(site, "train", forger)]
    assert rows == [("jobgate", identity), ("jobgate", "controller"), ("jobgate", identity)]


async def test_filters_tell_apart_those_who_share_a_name(site: Site) -> None:
    token = await site.gateway.token("submitter", NAMESPACE)
    name = (await site.gateway.client.get(WHOAMI, headers=token)).json()["name"]
    people = {"token": token, "one": user(site, "u-1", name), "other": user(site, "u-2", name)}
    for job, headers in people.items():
        await submitted(site, job, headers)
    assert await names(site, token, createdBy=name) == ["one", "other", "token"]
    for job, headers in people.items():
        assert await names(site, headers, createdBy="me") == [job]
        identity = (await site.gateway.client.get(WHOAMI, headers=headers)).json()["actorId"]
        assert await names(site, token, createdBy=identity) == [job]
        counts = await site.gateway.client.get("/api/v1/jobs/counts", params={"createdBy": "me"}, headers=headers)
        assert sum(item["count"] for item in counts.json()["kinds"]) == 1
    assert await names(site, token, createdBy="user:nobody") == []


async def test_the_end_of_a_cancelled_job_names_who_cancelled_it(site: Site) -> None:
    ann = user(site, "u-1", "ann")
    job = await submitted(site, "train", ann)
    await site.gateway.client.post(jobs_path(NAMESPACE, "train", "cancel"), headers=user(site, "u-2", "bob"))
    async with site.gateway.db.read() as connection:
        row = await connection.fetchrow(
            "SELECT cancel_requested_by, cancel_requested_by_id FROM jobs WHERE uid = $1::text::uuid", job["uid"]
        )
    assert tuple(row) == ("bob", f"user:{site.issuer.url}#u-2")
