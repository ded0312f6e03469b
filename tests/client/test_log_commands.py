"""The command `logs`. A script stands in for the gateway."""

import json
from pathlib import Path

import httpx2
import pytest

from jobgate.cli import connection
from jobgate.client import AsyncClient
from tests.client.scripted import RunCommand, job, ok, page, replica, state


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


def test_a_submission_can_be_followed_by_its_logs(
    run: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The logs are read by the asynchronous client, which finds the job at its end."""
    answers = {
        "replicas": page([replica(0, "Failed"), replica(1, "Succeeded")]),
        "status": ok(state("Failed", message="the cause")),
        "logs": httpx2.Response(200, content=b"one\n", headers={"Jobgate-Log-Source": "stored"}),
    }
    transport = httpx2.MockTransport(lambda request: answers[request.url.path.rpartition("/")[2]])
    monkeypatch.setattr(connection, "connect_async", lambda context: AsyncClient(context.server, transport=transport))
    file = tmp_path / "job.yaml"
    file.write_text("kind: GenericJob")
    result, _ = run(["submit", str(file), "--log"], ok(job(), 201), answers["status"])
    assert result.exit_code == 1, result.output
    submitted, *lines, end = result.stdout.splitlines()
    assert submitted == "tour submitted to namespace team"
    assert sorted(lines) == ["worker[0]    | one", "worker[1]    | one"]
    assert end.endswith("the cause")
    result, script = run(["submit", str(file), "--log", "-o", "json"])
    assert (result.exit_code, script.requests) == (2, [])
