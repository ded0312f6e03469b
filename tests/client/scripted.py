"""A gateway that answers from a list, for both clients."""

from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import msgspec
from typer.testing import Result

from jobgate.client.types import Aggregate

Answer = httpx2.Response | Exception | Callable[[httpx2.Request], httpx2.Response]


class Script:
    """Answers the requests in order and records them."""

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[httpx2.Request] = []
        self._answers: list[Answer] = list(answers)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx2.Response):
            # A response belongs to the client that has read it, and a table of cases serves several clients.
            return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)
        return answer(request)

    @property
    def transport(self) -> httpx2.MockTransport:
        return httpx2.MockTransport(self)

    @property
    def is_over(self) -> bool:
        return not self._answers


def ok(body: Any, status: int = 200, **headers: str) -> httpx2.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, content=msgspec.json.encode(body), headers=sent)


def problem(status: int, code: str, *errors: dict[str, str], **headers: str) -> httpx2.Response:
    body: dict[str, Any] = {
        "type": f"urn:{code}",
        "title": "",
        "status": status,
        "detail": f"it is {code}",
        "code": code,
    }
    return ok(body | ({"errors": list(errors)} if errors else {}), status, **headers)


def aggregate(**counts: int) -> dict[str, int]:
    """The number of replicas in each bucket; 0 unless it is given."""
    return dict.fromkeys(Aggregate.__struct_fields__, 0) | counts


def state(phase: str = "Running", name: str = "tour", *, deleted: bool = False, **status: Any) -> dict[str, Any]:
    """The answer of `…/status` of a job."""
    return {
        "uid": "0c8d7f3e-6d0f-4a3c-9a43-2a6a3e1f0b11",
        "namespace": "team",
        "name": name,
        "kind": "GenericJob",
        "generation": 1,
        "deletedAt": "2026-01-31T12:00:09Z" if deleted else None,
        "status": {
            "phase": phase,
            "reason": "",
            "message": "",
            "observedGeneration": 1,
            "startedAt": None,
            "finishedAt": None,
            "observedAt": None,
            "aggregate": aggregate(**{"running" if phase == "Running" else "pending": 2}),
            "pendingReasons": [],
            "restartsInPlace": 0,
            "stillRunning": 0,
            "warnings": [],
            **status,
        },
        "conditions": [],
    }


def job(phase: str = "Queued", name: str = "tour", **status: Any) -> dict[str, Any]:
    """The answer of a whole job."""
    return state(phase, name, **status) | {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "labels": {},
        "annotations": {},
        "createdAt": "2026-01-31T12:00:00Z",
        "createdBy": "me",
        "spec": {},
        "nativeStatus": {},
        "importedAt": None,
        "retryOf": None,
        "scaling": {},
    }


def page(items: Sequence[Any], token: str | None = None) -> httpx2.Response:
    return ok({"items": list(items), "nextPageToken": token})


def replica(rank: int, phase: str, task: str = "worker", *, attempt: int = 1, **given: Any) -> dict[str, Any]:
    """One of the answers of `…/replicas`."""
    return {
        "name": f"tour-{task}-{rank}",
        "task": task,
        "rank": rank,
        "phase": phase,
        "attempt": attempt,
        "restartCount": given.get("restarts", attempt - 1),
        "restartsInPlace": given.get("in_place", 0),
        "disruptions": 0,
        "leaving": given.get("leaving", False),
        "message": given.get("message"),
        "containers": [],
        "attempts": [],
    }


def a_queue(name: str = "nightly", **changes: Any) -> dict[str, Any]:
    """The answer of `…/queues/{name}`."""
    return {
        "namespace": "team",
        "name": name,
        "clusterQueue": "research",
        "active": True,
        "message": "",
        "resources": [],
        "pending": 2,
        "admitted": 1,
        "pendingJobs": [],
        "pendingJobsOmitted": 0,
        "observedAt": "2026-01-31T12:00:00Z",
        **changes,
    }


def a_queued_job(name: str, **changes: Any) -> dict[str, Any]:
    """A job that waits in a queue."""
    return {
        "position": None,
        "kind": "MxJob",
        "name": name,
        "uid": f"uid-of-{name}",
        "priority": 0,
        "since": None,
        "code": "WaitingForQuota",
        "message": "4 more needed",
        **changes,
    }


def queue_page(*queues: Any, token: str | None = None, state: str = "listed", message: str = "") -> httpx2.Response:
    known = {"state": state, "message": message}
    return ok({"kueue": known, "items": list(queues), "nextPageToken": token})


# A row of `…/history`, and one of `…/events`.
_ROW = {"task": "worker", "rank": 0, "attempt": 1, "reason": "Error", "message": "no"}
HISTORY = _ROW | {"seq": 1, "at": "2026-01-31T12:00:03Z", "phase": "Failed", "actor": "me"}
EVENT = _ROW | {"source": "evidence", "type": "Warning", "count": 2, "firstSeenAt": None, "lastSeenAt": None}


# The fixture `run`: runs a command on a script, and returns its result and the script.
RunCommand = Callable[..., tuple[Result, Script]]
