"""What the commands say about queues."""

import json
from typing import Any
from uuid import UUID

import pytest

from tests.client.scripted import RunCommand, a_queue, a_queued_job, job, ok, page, problem, queue_page

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


def test_describe_says_the_position_of_a_job_that_waits(run: RunCommand) -> None:
    waits = job("Queued", queue=TEAM | {"admitted": False})
    queue = a_queue("team-queue", pendingJobs=[a_queued_job("tour", uid=waits["uid"], position=3)])
    result, script = run(["describe", "tour"], ok(waits), page([]), page([]), page([]), ok(queue))
    assert "position 3 in the ClusterQueue research" in result.stdout
    assert script.requests[-1].url.path == "/api/v1/namespaces/team/queues/team-queue"


def test_queues_are_listed_in_pages(run: RunCommand) -> None:
    pages = queue_page(a_queue("a"), token="next"), queue_page(a_queue("b")), queue_page()
    result, script = run(["queues"], *pages)
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["NAME", "a", "b"]
    assert [dict(request.url.params) for request in script.requests] == [
        {"namespace": "team"},
        {"namespace": "team", "pageToken": "next"},
        {"namespace": "team", "pageSize": "1"},
    ]
    result, script = run(["queues", "-A", "-o", "name"], queue_page(a_queue("a"), a_queue("b")), queue_page())
    assert result.stdout == "a\nb\n"
    assert dict(script.requests[0].url.params) == {}
    result, _ = run(["queues", "-o", "json"], queue_page(a_queue("a")), queue_page())
    assert [queue["name"] for queue in json.loads(result.stdout)["items"]] == ["a"]


@pytest.mark.parametrize(
    ("state", "message", "reported"),
    [
        ("listed", "", "there are none"),
        ("listed", "no right to read ClusterQueues", "no right to read ClusterQueues"),
        ("absent", "", "the cluster does not serve Kueue, or jobgate does not use it"),
        ("denied", "no right", "jobgate may not read the objects of Kueue: no right"),
        ("unknown", "", "jobgate has not listed the queues yet"),
        ("of a later version", "", "jobgate has not listed the queues yet"),
    ],
)
def test_the_command_says_why_there_is_no_queue(run: RunCommand, state: str, message: str, reported: str) -> None:
    known = queue_page(state=state, message=message)
    result, _ = run(["queues"], known, known)
    assert (result.exit_code, result.stdout) == (0, "")
    assert reported in result.stderr


@pytest.mark.parametrize(("form", "shown"), [("text", "4 more needed"), ("yaml", "name: nightly"), ("name", "nightly")])
def test_one_queue(run: RunCommand, form: str, shown: str) -> None:
    result, script = run(["queues", "nightly", "-o", form], ok(a_queue(pendingJobs=[a_queued_job("train")])))
    assert shown in result.stdout
    assert script.requests[0].url.path == "/api/v1/namespaces/team/queues/nightly"
