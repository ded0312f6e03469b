"""The command `logs`. A script stands in for the gateway."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from typing_extensions import override

from jobgate.client import AsyncClient, config
from tests.client.scripted import RunCommand, job, ok, page, problem, replica, state


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


def test_logs_with_times_are_in_the_order_of_these(run: RunCommand) -> None:
    at = "2026-01-31T12:00:0{}Z {}\n".format
    answers = [
        httpx2.Response(200, content=(at(1, "one") + at(4, "four")).encode()),
        problem(404, "NoLog"),
        httpx2.Response(200, content=(at(2, "two") + at(3, "three")).encode()),
    ]
    replicas = page([replica(rank, "Running") for rank in range(3)])
    result, _ = run(["logs", "tour", "--all", "--timestamps"], replicas, *answers)
    assert [line.rpartition(" ")[2] for line in result.stdout.splitlines()] == ["one", "two", "three", "four"]
    assert result.stderr == "jobgate: worker[1]: it is NoLog\n"


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


SEVERAL_TASKS = problem(
    400, "InvalidParameter", {"pointer": "/query/task", "code": "Required", "detail": "the job has several tasks"}
)


def test_a_job_with_several_tasks_shows_all_of_them_with_prefixes(run: RunCommand) -> None:
    replicas = page([replica(0, "Running", task="ps"), replica(0, "Running"), replica(1, "Running")])
    log = httpx2.Response(200, content=b"one\n")
    result, script = run(["logs", "tour"], SEVERAL_TASKS, replicas, log, log, log)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == ["ps[0]        | one", "worker[0]    | one", "worker[1]    | one"]
    assert script.is_over
    result, _ = run(["logs", "tour", "-o", "json", "--rank", "0"], replicas, log, log)
    assert [json.loads(line)["task"] for line in result.stdout.splitlines()] == ["ps", "worker"]


def test_a_replica_whose_node_does_not_answer_hides_no_other(run: RunCommand) -> None:
    away = problem(503, "ClusterUnreachable")
    result, _ = run(["logs", "tour", "--all"], POD, away, LOG)
    assert (result.exit_code, result.stdout) == (2, "worker[1]    | one\n")
    assert "worker[0]: it is ClusterUnreachable" in result.stderr


def test_the_log_of_a_replica_that_left_is_shown_if_it_is_named(run: RunCommand) -> None:
    replicas = page([replica(0, "Running"), replica(1, "Deleted", leaving=True)])
    log = httpx2.Response(200, content=b"one\n")
    result, _ = run(["logs", "tour/worker/1", "-o", "json"], replicas, log)
    assert [json.loads(line)["rank"] for line in result.stdout.splitlines()] == [1]
    result, script = run(["logs", "tour", "--all"], replicas, log)
    assert result.stdout.splitlines() == ["worker[0]    | one"]
    assert script.is_over


UID = "0c8d7f3e-6d0f-4a3c-9a43-2a6a3e1f0b11"
NO_JOB = problem(404, "NotFound")
LOG = httpx2.Response(200, content=b"one\n")
POD = page([replica(0, "Running"), replica(1, "Running")])
ONE = page([replica(0, "Running")])


@pytest.mark.parametrize(
    ("text", "answers", "path", "query"),
    [
        ("tour/worker/1", [LOG], "namespaces/team/jobs/tour/logs", {"task": "worker", "rank": "1"}),
        (f"{UID}/worker/1", [LOG], f"jobs/{UID}/logs", {"task": "worker", "rank": "1"}),
        ("tour/worker", [ONE, LOG], "namespaces/team/jobs/tour/logs", {"task": "worker", "rank": "0"}),
        ("job/tour/worker/1", [LOG], "namespaces/team/jobs/tour/logs", {"task": "worker", "rank": "1"}),
        ("tj/tour", [LOG], "namespaces/team/jobs/tour/logs", {}),
        ("tour/a/b/0", [LOG], "namespaces/team/jobs/tour/logs", {"task": "a/b", "rank": "0"}),
        (UID, [LOG], f"jobs/{UID}/logs", {}),
        (UID, [NO_JOB, LOG], f"namespaces/team/jobs/{UID}/logs", {}),
        (
            "tour-worker-1",
            [NO_JOB, NO_JOB, POD, LOG],
            "namespaces/team/jobs/tour/logs",
            {"task": "worker", "rank": "1"},
        ),
    ],
)
def test_what_the_argument_names(
    run: RunCommand, text: str, answers: list[httpx2.Response], path: str, query: dict[str, str]
) -> None:
    result, script = run(["logs", text], *answers)
    assert (result.exit_code, result.stdout) == (0, "one\n"), result.output
    asked = script.requests[-1].url
    assert (asked.path, dict(asked.params)) == (f"/api/v1/{path}", query)


def test_a_task_is_all_of_its_replicas(run: RunCommand) -> None:
    result, script = run(["logs", "tour/worker"], POD, LOG, LOG)
    assert (result.exit_code, result.stdout) == (0, "worker[0]    | one\nworker[1]    | one\n"), result.output
    assert script.requests[0].url.params["task"] == "worker"
    assert [request.url.params["rank"] for request in script.requests[1:]] == ["0", "1"]
    result, script = run(["logs", "tour/worker", "--rank", "1"], LOG)
    assert (result.stdout, script.requests[0].url.params["rank"]) == ("one\n", "1")


@pytest.mark.parametrize(
    ("arguments", "answers", "words"),
    [
        (["tour-worker-9"], [NO_JOB, NO_JOB, POD], "it is NotFound"),
        (["tour/"], [], "accepted: JOB, JOB/TASK"),
        (["sampleset/imagenet"], [], "accepted: the name of a job"),
        (["tour/worker/1", "--rank", "2"], [], "--rank 2 contradicts the argument, which names 1"),
        (["tour"], [problem(404, "NoLog")], "it is NoLog"),
    ],
)
def test_an_argument_that_names_no_log(
    run: RunCommand, arguments: list[str], answers: list[httpx2.Response], words: str
) -> None:
    result, script = run(["logs", *arguments], *answers)
    assert result.exit_code != 0
    assert words in result.stderr
    assert script.is_over


def shown_part(truncated: str = "false", attempt: str = "2") -> httpx2.Response:
    headers = {
        "Jobgate-Log-Truncated": truncated,
        "Jobgate-Log-Attempt": attempt,
        "Jobgate-Newest-Attempt": "2",
    }
    return httpx2.Response(200, content=b"one\ntwo\n", headers=headers)


MISSING = "earlier lines are missing: only the last 2 lines of the log are stored"


@pytest.mark.parametrize(
    ("options", "log", "reports"),
    [
        ([], shown_part(), []),
        ([], shown_part("true"), [MISSING]),
        (["--tail", "2"], shown_part("true"), []),
        (["--tail", "3"], shown_part("true"), [MISSING]),
        ([], shown_part(attempt="1"), ["this is the log of attempt 1; attempt 2 has none"]),
        (["--attempt", "1"], shown_part(attempt="1"), []),
    ],
)
def test_what_is_missing_is_said(run: RunCommand, options: list[str], log: httpx2.Response, reports: list[str]) -> None:
    result, _ = run(["logs", "tour", *options], log)
    assert result.stdout == "one\ntwo\n"
    assert result.stderr.splitlines() == [f"jobgate: {line}" for line in reports]
    result, _ = run(["logs", "tour", "--all", *options], page([replica(0, "Running", attempt=2)]), log)
    label = "worker[0]" if "attempt 1" in "".join(reports) or "--attempt" in options else "worker[0] #2"
    assert result.stderr.splitlines() == [f"jobgate: {label}: {line}" for line in reports]


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
    monkeypatch.setattr(config, "connect_async", lambda context: AsyncClient(context.server, transport=transport))
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


def test_the_gateway_selects_the_lines(run: RunCommand) -> None:
    part = ["--grep", "(?i)err|x", "--since-time", "2026-01-31T12:00:00Z", "--until-time", "2026-01-31T13:00:00+01:00"]
    result, script = run(["logs", "tour", *part], httpx2.Response(200, content=b"error\n"))
    assert result.stdout == "error\n"
    asked = script.requests[0].url.params
    assert asked["search"] == "(?i)err|x"
    assert {asked["sinceTime"], asked["untilTime"]} == {"2026-01-31T12:00:00+00:00"}
    result, _ = run(["logs", "tour", "--since-time", "noon"])
    assert (result.exit_code, "noon is no time" in result.stderr) == (2, True)


class Torn(httpx2.SyncByteStream):
    """The body of an answer whose connection is lost."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @override
    def __iter__(self) -> Iterator[bytes]:
        yield self._data
        raise httpx2.ReadError("reset")


def torn(data: bytes, **headers: str) -> Callable[[httpx2.Request], httpx2.Response]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: httpx2.Response(200, headers=sent, stream=Torn(data))


def test_a_download_continues_with_the_first_byte_that_is_missing(
    run: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    file = tmp_path / "tour.log"
    kept = {"Jobgate-Log-Source": "kept", "Jobgate-Log-Missing": "1 gap"}
    result, script = run(
        ["logs", "tour/worker/1", "-p", "--save", str(file)],
        httpx2.Response(200, headers=kept),
        torn(b"\xffab", Jobgate_Log_Attempt="2", Jobgate_Log_Run="4"),
        problem(503, "ShuttingDown"),
        torn(b"c\r"),
        httpx2.Response(200, content=b"\nd"),
    )
    assert file.read_bytes() == b"\xffabc\r\nd"
    assert result.stderr.splitlines() == [
        f"jobgate: {file}: 7 bytes",
        f"jobgate: {file} is not the whole log: 1 gap",
    ]
    asked = [dict(request.url.params) for request in script.requests[1:]]
    assert [each["offset"] for each in asked] == ["0", "3", "3", "5"]
    assert [(each.get("previous"), each.get("run"), each.get("attempt")) for each in asked] == [
        ("true", None, None),
        *[(None, "4", "2")] * 3,
    ]


def test_a_download_without_a_log_leaves_the_file_as_it_is(run: RunCommand, tmp_path: Path) -> None:
    file = tmp_path / "tour.log"
    file.write_bytes(b"before")
    result, _ = run(["logs", "tour", "--save", str(file)], problem(404, "NoLog"))
    assert (result.exit_code, file.read_bytes()) == (2, b"before")
    result, _ = run(["logs", "tour", "--save", str(file), "--grep", "x"])
    assert (result.exit_code, "accepted" in result.stderr, file.read_bytes()) == (2, True, b"before")
