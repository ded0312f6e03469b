"""A submitted job in the answers of all reads."""

from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest


async def test_a_submitted_job_is_readable_everywhere(gateway: Gateway) -> None:
    answer = await gateway.client.post(jobs_path(), json=manifest("hello", labels={"tier": "web"}))
    assert answer.status_code == 201, answer.text
    created = answer.json()
    assert answer.headers["location"] == jobs_path(NAMESPACE, "hello")
    assert (created["name"], created["namespace"], created["kind"]) == ("hello", NAMESPACE, "GenericJob")
    assert created["status"]["phase"] == "Queued"
    assert created["status"]["aggregate"]["creating"] == 2

    found = await gateway.client.get(answer.headers["location"])
    assert found.status_code == 200
    assert found.json() == created
    assert found.headers["etag"] == answer.headers["etag"]
    by_uid = await gateway.client.get(f"/api/v1/jobs/{created['uid']}")
    assert by_uid.json() == created
    listed = (await gateway.client.get(jobs_path())).json()
    assert listed == {"items": [created], "nextPageToken": None, "view": "full"}
    assert (await gateway.client.get("/api/v1/jobs")).json() == listed
    status = (await gateway.client.get(jobs_path(NAMESPACE, "hello", "status"))).json()
    assert status["status"] == created["status"]
