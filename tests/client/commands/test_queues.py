"""What the commands say about queues."""

from typing import Any
from uuid import UUID

import pytest

from tests.client.scripted import RunCommand, job, ok, page, problem

EVICTION = {"reason": "Preempted", "message": "for another", "at": None, "preemptedBy": str(UUID(int=2))}
TEAM: dict[str, Any] = {"name": "team-queue", "admitted": True, "queuedAt": None, "admittedAt": None, "eviction": None}


@pytest.mark.parametrize("command", [["list"], ["get", "jobs"], ["top"]])
def test_lists_have_a_column_of_queues_if_a_job_has_one(run: RunCommand, command: list[str]) -> None:
    jobs = [job("Running", queue=TEAM), job("Running", "free")]
    more = [page([])] if command == ["top"] else []
    lines = run(command, page(jobs), *more)[0].stdout.splitlines()
    header = next(line for line in lines if line.startswith("NAME")).split()
    place = header.index("QUEUE")
    rows = {line.split()[0]: line.split()[place] for line in lines if line.startswith(("tour", "free"))}
    assert rows == {"tour": "team-queue", "free": "-"}
    assert "QUEUE" not in run(command, page(jobs[1:]), *more)[0].stdout


def test_a_list_selects_a_queue(run: RunCommand) -> None:
    _, script = run(["list", "--queue", "team-queue"], page([]))
    assert script.requests[0].url.params["queue"] == "team-queue"


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (ok(job("Running", "urgent")), "preempted by GenericJob team/urgent"),
        (problem(404, "NotFound"), "evicted: Preempted: for another"),
        (problem(403, "Forbidden"), "evicted: Preempted: for another"),
    ],
)
def test_describe_names_a_preemptor_that_the_user_may_see(run: RunCommand, answer: Any, shown: str) -> None:
    evicted = job("Queued", queue=TEAM | {"eviction": EVICTION})
    result, script = run(["describe", "tour"], ok(evicted), page([]), page([]), page([]), answer)
    assert result.exit_code == 0
    assert script.requests[-1].url.path.endswith(str(UUID(int=2)))
    assert result.stdout.partition("Replicas:")[0].splitlines()[-1].strip() == shown
