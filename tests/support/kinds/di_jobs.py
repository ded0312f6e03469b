"""DIJobs, and requests of their pods to the in-cluster server."""

from typing import Any

import httpx2

from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path


def di_job(name: str = "atari", *, collectors: int = 2, **spec: Any) -> dict[str, Any]:
    container = {"name": "di-container", "image": "busybox", "command": ["true"]}
    tasks = [
        {"type": kind, "replicas": replicas, "template": {"spec": {"containers": [container]}}}
        for kind, replicas in (("learner", 1), ("collector", collectors), ("evaluator", 1))
    ]
    return {
        "apiVersion": "diengine.opendilab.org/v2alpha1",
        "kind": "DIJob",
        "metadata": {"name": name},
        "spec": {"tasks": tasks, **spec},
    }


async def submit(gateway: Gateway, name: str = "atari", **spec: Any) -> dict[str, Any]:
    answer = await gateway.client.post(jobs_path(), json=di_job(name, **spec))
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


def own(gateway: Gateway, job: dict[str, Any]) -> dict[str, str]:
    """The headers that the pods of this job send."""
    return {"Authorization": f"Bearer {gateway.job_token(job['uid'])}"}


def at(what: str, job_id: str = f"{NAMESPACE}.atari") -> str:
    return f"/v2alpha1/job/{job_id}/{what}"


def refused(answer: httpx2.Response, status: int) -> str:
    """Check that the answer is an error in upstream's form, and return its message."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert list(body) == ["success", "code", "message", "data"]
    assert (body["success"], body["code"], body["data"]) == (False, 1, None)
    message: str = body["message"]
    return message


def said(answer: httpx2.Response, message: str) -> Any:
    """Check that the answer is a success in upstream's form, and return its data."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert list(body) == ["success", "code", "message", "data"]
    assert (body["success"], body["code"], body["message"]) == (True, 0, message)
    return body["data"]
