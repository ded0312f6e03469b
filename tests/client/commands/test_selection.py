"""Jobs that filters select, for commands that otherwise take names."""

from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from jobgate.cli.rendering.overview import LIVE
from tests.client.scripted import RunCommand, job, ok, page, problem, replica, state


def asked(request: httpx2.Request) -> dict[str, list[str]]:
    return {name: request.url.params.get_list(name) for name in request.url.params}


@pytest.mark.parametrize(
    ("command", "method", "suffix", "phases"),
    [
        ("pause", "POST", "/pause", [phase for phase in LIVE if phase != "Paused"]),
        ("resume", "POST", "/resume", ["Paused"]),
        ("retry", "POST", "/retry", ["Failed", "TimedOut"]),
        ("delete", "DELETE", "", []),
    ],
)
def test_a_change_of_the_jobs_that_filters_select(
    run: RunCommand, command: str, method: str, suffix: str, phases: list[str]
) -> None:
    listed = page([job(name="new"), job(name="old")])
    result, script = run([command, "-l", "team=vision", "--mine"], listed, ok(job(name="old")), ok(job(name="new")))
    assert result.exit_code == 0, result.output
    query = asked(script.requests[0])
    assert query["labelSelector"] == ["team=vision"]
    assert query["createdBy"] == ["me"]
    assert query.get("phase", []) == phases
    changed = [(request.method, request.url.path) for request in script.requests[1:]]
    assert changed == [(method, f"/api/v1/namespaces/team/jobs/{name}{suffix}") for name in ("old", "new")]


def test_a_cancel_selects_live_jobs_and_replicas_that_run_after_the_end(run: RunCommand) -> None:
    """The oldest first, in whichever list it is."""
    jobs = {name: job(name=name) | {"createdAt": f"2026-03-0{day}T12:00:00Z"} for day, name in enumerate("abc", 1)}
    lists = page([jobs["c"], jobs["a"]]), page([jobs["b"], jobs["a"]])  # a ends between the two lists
    result, script = run(["cancel", "-l", "team=vision"], *lists, *(ok(jobs[name]) for name in "abc"))
    assert result.exit_code == 0, result.output
    live, ended = (asked(request) for request in script.requests[:2])
    assert live.pop("phase") == list(LIVE)
    assert ended == live | {"stillRunning": ["true"]}
    assert result.stdout == "".join(f"{name} cancel requested\n" for name in "abc")
    _, script = run(["cancel", "--phase", "Failed"], page([]))
    assert [asked(request)["phase"] for request in script.requests] == [["Failed"]]


def test_phases_of_the_user_replace_those_of_the_command(run: RunCommand) -> None:
    result, script = run(["retry", "--phase", "Cancelled", "--phase", "Failed"], page([]))
    assert asked(script.requests[0])["phase"] == ["Cancelled", "Failed"]
    assert (result.exit_code, result.stderr) == (0, "jobgate: retry: no job matches\n")


def test_since_is_an_age(run: RunCommand) -> None:
    _, script = run(["pause", "--since", "2h"], page([]))
    after = datetime.fromisoformat(asked(script.requests[0])["createdAfter"][0])
    age = datetime.now(UTC) - after  # noqa: TID251 - the command reads the clock too
    assert timedelta(hours=2) <= age < timedelta(hours=3)


@pytest.mark.parametrize("command", ["cancel", "pause", "resume", "retry", "delete", "wait", "logs"])
@pytest.mark.parametrize("arguments", [[], ["tour", "-l", "a=b"]], ids=["neither", "both"])
def test_a_command_takes_names_or_filters(run: RunCommand, command: str, arguments: list[str]) -> None:
    result, script = run([command, *arguments])
    assert (result.exit_code, script.requests) == (2, [])
    assert "accepted: names of jobs, or filters" in result.stderr


def test_a_refused_change_does_not_prevent_the_others(run: RunCommand) -> None:
    result, script = run(
        ["pause", "-l", "a=b"],
        page([job(name="x"), job(name="y")]),
        problem(409, "AlreadyFinished"),
        ok(job(name="x")),
    )
    assert result.exit_code == 2
    assert script.is_over
    assert result.stdout == "x pause requested\n"


def test_one_name_is_for_one_retry(run: RunCommand) -> None:
    result, script = run(["retry", "--mine", "--name", "again"], page([job(name="x"), job(name="y")]))
    assert result.exit_code == 2
    assert "there are 2 jobs; accepted: one" in result.stderr
    assert len(script.requests) == 1


def test_wait_for_several_ends_with_the_highest_status(run: RunCommand) -> None:
    result, script = run(
        ["wait", "-l", "a=b", "-o", "name"],
        page([job(name="x"), job(name="y")]),
        ok(state("Failed", name="y"), ETag='"1"'),
        ok(state("Succeeded", name="x"), ETag='"1"'),
    )
    assert (result.exit_code, result.stdout) == (1, "y\nx\n")
    assert script.is_over


def test_the_logs_of_several_jobs_follow_each_other(run: RunCommand) -> None:
    replicas = page([replica(0, "Failed")])
    log = httpx2.Response(200, content=b"one\n")
    result, _ = run(["logs", "--phase", "Failed"], page([job(name="x"), job(name="y")]), replicas, log, replicas, log)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.startswith("==>")] == ["==> job/y <==", "==> job/x <=="]
    assert sum("| one" in line for line in lines) == 2
    refused, script = run(["logs", "-f", "--mine"], page([job()]))
    assert (refused.exit_code, len(script.requests)) == (2, 1)
    assert "accepted: one job" in refused.stderr
