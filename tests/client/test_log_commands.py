"""The command `logs`. A script stands in for the gateway."""

import json

import httpx2
import pytest

from tests.client.scripted import RunCommand, page, replica


def test_logs_are_printed(run: RunCommand) -> None:
    result, _ = run(["logs", "tour", "--rank", "1"], httpx2.Response(200, content=b"one\ntwo\n"))
    assert result.stdout == "one\ntwo\n"


def test_the_logs_of_all_replicas_have_prefixes(run: RunCommand) -> None:
    replicas = [replica(0, "Running"), replica(1, "Running", attempt=2)]
    log = httpx2.Response(200, content=b"one\ntwo\n")
    result, script = run(["logs", "tour", "--all", "--tail", "2"], page(replicas), log, log)
    assert result.stdout.splitlines() == [
        "worker[0]    | one",
        "worker[0]    | two",
        "worker[1] #2 | one",
        "worker[1] #2 | two",
    ]
    assert [request.url.params.get("rank") for request in script.requests[1:]] == ["0", "1"]


def test_logs_as_json_name_the_replica_of_each_line(run: RunCommand) -> None:
    log = httpx2.Response(200, content=b"2026-01-31T12:00:00.5Z one\n")
    result, script = run(
        ["logs", "tour", "-o", "json", "--timestamps"], page([replica(0, "Running"), replica(1, "Running")]), log
    )
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"task": "worker", "rank": 0, "attempt": 1, "time": "2026-01-31T12:00:00.500000000Z", "line": "one"}
    ]
    assert script.is_over
    result, _ = run(["logs", "tour", "-o", "json", "--rank", "5"], page([replica(0, "Running")]))
    assert (result.exit_code, "no such replica" in result.stderr) == (2, True)


@pytest.mark.parametrize(("since", "asked"), [("5m", "300"), ("90", "90"), ("1h30m", "5400"), ("0.2s", "1")])
def test_durations_are_those_of_kubectl(run: RunCommand, since: str, asked: str) -> None:
    _, script = run(["logs", "tour", "--since", since], httpx2.Response(200))
    assert script.requests[0].url.params["sinceSeconds"] == asked


def test_a_task_is_needed_to_follow_one_log_of_several_tasks(run: RunCommand) -> None:
    result, _ = run(["logs", "tour", "-f"], page([replica(0, "Running"), replica(0, "Running", task="ps")]))
    assert result.exit_code == 2
    assert "accepted: --task ps or worker, or --all" in result.stderr
