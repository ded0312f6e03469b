"""The commands of the client. A script stands in for the gateway."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner, Result

from jobgate.cli import connection
from jobgate.cli.commands import app
from jobgate.client import Client
from tests.client.scripted import Answer, Script, job, ok, page, problem, state

MANIFEST = "kind: GenericJob\nmetadata: {name: tour}\nspec:\n  replica: 2\n"
Run = Callable[..., tuple[Result, Script]]
SLEEP = "jobgate.cli.following.time.sleep"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(MANIFEST)
    return str(path)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command on a script: `run(["list"], *answers)`."""

    def invoke(arguments: list[str], *answers: Answer, stdin: str | None = None) -> tuple[Result, Script]:
        script = Script(*answers)

        def connect(context: connection.Context) -> Client:
            return Client(context.server, token=context.token, namespace=context.namespace, transport=script.transport)

        monkeypatch.setattr(connection, "connect", connect)
        environment = {"JOBGATE_CONFIG": str(tmp_path / "none.yaml"), "JOBGATE_NAMESPACE": "team", "JOBGATE_TOKEN": "t"}
        return CliRunner().invoke(app, arguments, input=stdin, env=environment), script

    return invoke


@pytest.mark.parametrize(("phase", "status"), [("Succeeded", 0), ("Failed", 1), ("TimedOut", 1), ("Cancelled", 4)])
def test_submit_and_watch_ends_with_the_status_of_the_job(run: Run, file: str, phase: str, status: int) -> None:
    result, _ = run(
        ["submit", "-f", file, "--watch"],
        ok(job(), 201),
        ok(state("Pending"), ETag='"1"'),
        ok(state("Running"), ETag='"2"'),
        ok(state(phase, message="the cause"), ETag='"3"'),
    )
    assert result.exit_code == status, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "tour submitted to namespace team"
    assert ["Pending" in lines[1], "Running" in lines[2], "the cause" in lines[3], len(lines)] == [True, True, True, 4]


def test_wait_exits_with_3_when_the_time_is_over(run: Run) -> None:
    result, _ = run(["wait", "tour", "--timeout", "0"], ok(state("Pending"), ETag='"1"'))
    assert result.exit_code == 3
    assert "tour is Pending after 0 s" in result.stderr


@pytest.mark.parametrize(("phase", "status"), [("Running", 0), ("Succeeded", 0), ("Failed", 1), ("Cancelled", 4)])
def test_wait_for_running(run: Run, phase: str, status: int) -> None:
    result, _ = run(["wait", "tour", "--for", "running"], ok(state(phase)))
    assert result.exit_code == status


def test_a_refused_manifest_is_explained_with_the_line_of_the_file(run: Run, file: str) -> None:
    fault = {
        "pointer": "/spec/replica",
        "code": "UnknownField",
        "detail": "there is no such field",
        "accepted": "replicas",
    }
    result, _ = run(["submit", "-f", file], problem(422, "InvalidManifest", fault))
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "jobgate: it is InvalidManifest (422 InvalidManifest)",
        f"  {file}:4: /spec/replica: there is no such field",
        "    accepted: replicas",
    ]


def test_many_faults_fit_on_a_screen(run: Run, file: str) -> None:
    faults = [{"pointer": f"/spec/{n}", "code": "X", "detail": "d" * 2000, "accepted": "a" * 2000} for n in range(20)]
    result, _ = run(["submit", "-f", file], problem(422, "InvalidManifest", *faults))
    assert len(result.stderr.splitlines()) <= 24
    assert "and 12 more" in result.stderr


def test_standard_input_is_submitted_with_changes(run: Run) -> None:
    result, script = run(
        ["submit", "-f", "-", "--name", "second", "--set", "spec.replica=3", "-o", "name"],
        ok(job(name="second"), 201),
        stdin=MANIFEST,
    )
    assert result.stdout == "second\n"
    assert b"name: second" in script.requests[0].content
    assert b"replica: 3" in script.requests[0].content


def test_the_manifests_of_a_directory_go_to_their_resources(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: SampleJob\n---\nkind: GenericJob\n")
    (tmp_path / "ignored.txt").write_text("kind: GenericJob\n")
    result, script = run(["submit", "-f", str(tmp_path)], problem(404, "NotFound"), ok(job(), 201))
    assert [request.url.path.rpartition("/")[2] for request in script.requests] == ["samplejobs", "jobs"]
    assert result.exit_code == 2, "one of them was refused"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["submit", "-f", "/nowhere.yaml"], "/nowhere.yaml"),
        (["list", "pods"], "there is no kind pods; accepted: jobs"),
        (["get", "pod/x"], "there is no kind pod"),
        (["list", "--context", "lab"], "there is no context lab"),
    ],
)
def test_wrong_arguments_are_explained_in_one_line(run: Run, arguments: list[str], words: str) -> None:
    result, script = run(arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert script.requests == []


def test_a_gateway_that_does_not_answer_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobgate.client.synchronous.client.time.sleep", lambda _: None)
    result, _ = run(["get", "tour", "--server", "http://x:1"], *[httpx2.ConnectError("refused")] * 5)
    assert result.exit_code == 2
    assert "no answer from http://x:1: refused" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (["list"], "/api/v1/namespaces/team/jobs"),
        (["list", "-A"], "/api/v1/jobs"),
        (["list", "ss", "-n", "other"], "/api/v1/namespaces/other/samplesets"),
    ],
)
def test_lists_of_each_resource(run: Run, arguments: list[str], path: str) -> None:
    result, script = run(arguments, page([]))
    assert (result.stdout, script.requests[0].url.path) == ("there are none\n", path)


def test_list_prints_a_table_json_or_names(run: Run) -> None:
    assert "GenericJob" in run(["list"], page([job()]))[0].stdout
    listed = json.loads(run(["list", "-o", "json"], page([job()]))[0].stdout)
    assert listed["items"][0]["status"]["observedGeneration"] == 1
    assert run(["list", "-o", "name"], page([job(name="a"), job(name="b")]))[0].stdout == "a\nb\n"


@pytest.mark.parametrize(
    ("arguments", "method", "path", "body"),
    [
        (["scale", "tour", "--replicas", "3", "--task", "ps"], "POST", "tour/scale", {"replicas": 3, "task": "ps"}),
        (["pause", "tour"], "POST", "tour/pause", {}),
        (["resume", "tour"], "POST", "tour/resume", {}),
        (["cancel", "tour", "--reason", "enough"], "POST", "tour/cancel", {"reason": "enough"}),
        (["retry", "tour", "--name", "again"], "POST", "tour/retry", {"name": "again"}),
        (["delete", "tour"], "DELETE", "tour", None),
    ],
)
def test_changes(run: Run, arguments: list[str], method: str, path: str, body: Any) -> None:
    result, script = run(arguments, ok(job()))
    assert result.exit_code == 0, result.output
    (request,) = script.requests
    assert (request.method, request.url.path) == (method, f"/api/v1/namespaces/team/jobs/{path}")
    assert (json.loads(request.content) if request.content else None) == body


def test_logs_are_printed(run: Run) -> None:
    result, _ = run(["logs", "tour", "--rank", "1"], httpx2.Response(200, content=b"one\ntwo\n"))
    assert result.stdout == "one\ntwo\n"


def interrupt(_: httpx2.Request) -> httpx2.Response:
    raise KeyboardInterrupt


def test_ctrl_c_detaches_and_says_how_to_come_back(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SLEEP, lambda _: None)
    result, script = run(["watch", "tour"], ok(state("Running"), ETag='"1"'), interrupt)
    assert result.exit_code == 130
    assert "Come back with: jobgate watch tour" in result.stderr
    assert [request.method for request in script.requests] == ["GET", "GET"]


def test_ctrl_c_pressed_twice_cancels(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SLEEP, again)
    result, script = run(
        ["watch", "tour"],
        ok(state("Running"), ETag='"1"'),
        interrupt,
        ok(job("Running")),
        ok(state("Cancelled")),
    )
    assert result.exit_code == 4, result.output
    assert script.requests[2].url.path == "/api/v1/namespaces/team/jobs/tour/cancel"


COMMANDS = [command.name for command in app.registered_commands if command.name]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_on_a_screen(run: Run, command: str) -> None:
    result, _ = run([command, "--help"])
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) <= 45


def test_login_saves_a_context_that_later_commands_use(run: Run, tmp_path: Path) -> None:
    result, script = run(["login", "http://lab/", "--context", "lab", "-n", "vision", "--token", "jg_1"], page([]))
    assert result.exit_code == 0, result.output
    assert script.requests[0].headers["Authorization"] == "Bearer jg_1"
    assert connection.load(tmp_path / "none.yaml").contexts["lab"].server == "http://lab"
    result, _ = run(["context", "lab", "-n", "other"])
    assert ["*", "lab", "http://lab", "other", "yes"] in [line.split() for line in result.stdout.splitlines()]
    assert "jg_1" not in result.stdout


def test_a_refused_token_is_not_saved(run: Run, tmp_path: Path) -> None:
    result, _ = run(["login", "http://lab", "--token", "jg_1"], problem(401, "InvalidToken"))
    assert result.exit_code == 2
    assert not (tmp_path / "none.yaml").exists()


def test_an_unknown_context_cannot_be_chosen(run: Run) -> None:
    result, _ = run(["context", "lab"])
    assert result.exit_code == 2
    assert "there is no context lab" in result.stderr
