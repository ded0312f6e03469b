"""The commands of the client. A script stands in for the gateway."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jobgate.client import config
from tests.client.scripted import Answer, RunCommand, job, ok, page, problem, state

MANIFEST = "kind: GenericJob\nmetadata: {name: tour}\nspec:\n  replica: 2\n"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(MANIFEST)
    return str(path)


@pytest.mark.parametrize(("phase", "status"), [("Succeeded", 0), ("Failed", 1), ("TimedOut", 1), ("Cancelled", 4)])
def test_submit_and_watch_ends_with_the_status_of_the_job(run: RunCommand, file: str, phase: str, status: int) -> None:
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


def test_wait_exits_with_3_when_the_time_is_over(run: RunCommand) -> None:
    result, _ = run(["wait", "tour", "--timeout", "0"], ok(state("Pending"), ETag='"1"'))
    assert result.exit_code == 3
    assert "tour is Pending after 0 s" in result.stderr


@pytest.mark.parametrize(("phase", "status"), [("Running", 0), ("Succeeded", 0), ("Failed", 1), ("Cancelled", 4)])
def test_wait_for_running(run: RunCommand, phase: str, status: int) -> None:
    result, _ = run(["wait", "tour", "--for", "running"], ok(state(phase)))
    assert result.exit_code == status


def test_a_refused_manifest_is_explained_with_the_line_of_the_file(run: RunCommand, file: str) -> None:
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


def test_many_faults_fit_on_a_screen(run: RunCommand, file: str) -> None:
    faults = [{"pointer": f"/spec/{n}", "code": "X", "detail": "d" * 2000, "accepted": "a" * 2000} for n in range(20)]
    result, _ = run(["submit", "-f", file], problem(422, "InvalidManifest", *faults))
    assert len(result.stderr.splitlines()) <= 24
    assert "and 12 more" in result.stderr


def test_standard_input_is_submitted_with_changes(run: RunCommand) -> None:
    result, script = run(
        ["submit", "-f", "-", "--name", "second", "--set", "spec.replica=3", "-o", "name"],
        ok(job(name="second"), 201),
        stdin=MANIFEST,
    )
    assert result.stdout == "second\n"
    assert b'"name": "second"' in script.requests[0].content
    assert b'"replica": 3' in script.requests[0].content


def test_the_manifests_of_a_directory_go_to_their_resources(run: RunCommand, tmp_path: Path) -> None:
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
def test_wrong_arguments_are_explained_in_one_line(run: RunCommand, arguments: list[str], words: str) -> None:
    result, script = run(arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert script.requests == []


def test_a_gateway_that_does_not_answer_is_named(run: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_lists_of_each_resource(run: RunCommand, arguments: list[str], path: str) -> None:
    result, script = run(arguments, page([]))
    assert (result.stdout, result.stderr) == ("", "jobgate: there are none\n")
    assert script.requests[0].url.path == path


@pytest.mark.parametrize(
    ("target", "message"),
    [("tour", "there are none: those of a pod are stored when its attempt ends\n"), ("ss/digits", "there are none\n")],
)
def test_an_object_without_events_has_no_empty_table(run: RunCommand, target: str, message: str) -> None:
    result, _ = run(["events", target], page([]))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"jobgate: {message}")


def test_list_prints_a_table_json_or_names(run: RunCommand) -> None:
    assert "GenericJob" in run(["list"], page([job()]))[0].stdout
    listed = json.loads(run(["list", "-o", "json"], page([job()]))[0].stdout)
    assert listed["items"][0]["status"]["observedGeneration"] == 1
    assert run(["list", "-o", "name"], page([job(name="a"), job(name="b")]))[0].stdout == "a\nb\n"
    assert json.loads(run(["list", "-o", "json"], page([]))[0].stdout) == {"items": []}


@pytest.mark.parametrize(
    ("limit", "page_size", "shown"),
    [("2", "3", ["a", "b"]), ("3", "4", ["a", "b", "c"]), ("0", "500", ["a", "b", "c"])],
)
def test_list_says_when_there_are_more(run: RunCommand, limit: str, page_size: str, shown: list[str]) -> None:
    jobs = page([job(name=name) for name in ("a", "b", "c")])
    result, script = run(["list", "--limit", limit, "-o", "name"], jobs)
    assert script.requests[0].url.params["pageSize"] == page_size
    assert (result.stdout.split(), "the newest 2" in result.stderr) == (shown, limit == "2")


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
def test_changes(run: RunCommand, arguments: list[str], method: str, path: str, body: Any) -> None:
    result, script = run(arguments, ok(job()))
    assert result.exit_code == 0, result.output
    (request,) = script.requests
    assert (request.method, request.url.path) == (method, f"/api/v1/namespaces/team/jobs/{path}")
    assert (json.loads(request.content) if request.content else None) == body


def interrupt(_: httpx2.Request) -> httpx2.Response:
    raise KeyboardInterrupt


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobgate.cli.following._can_ask", lambda: True)


@pytest.mark.usefixtures("on_terminal")
@pytest.mark.parametrize("arguments", [["watch", "tour"], ["wait", "tour"]], ids=["watch", "wait"])
def test_ctrl_c_ends_the_command_at_once_and_says_how_to_come_back(run: RunCommand, arguments: list[str]) -> None:
    """The job may be that of somebody else, so no answer and no further Ctrl-C cancels it."""
    result, script = run(arguments, ok(state("Running"), ETag='"1"'), interrupt, stdin="y\n")
    assert result.exit_code == 130
    assert "Come back with: jobgate watch tour" in result.stderr
    assert "cancel" not in result.stderr
    assert [request.method for request in script.requests] == ["GET", "GET"]


@pytest.mark.usefixtures("on_terminal")
@pytest.mark.parametrize("answer", ["n\n", "\n", ""], ids=["no", "default", "no answer"])
def test_ctrl_c_leaves_the_own_job_running_unless_the_user_says_yes(run: RunCommand, file: str, answer: str) -> None:
    result, script = run(
        ["submit", "-f", file, "--watch"], ok(job(), 201), ok(state("Running"), ETag='"1"'), interrupt, stdin=answer
    )
    assert result.exit_code == 130
    assert "cancel it?" in result.stderr
    assert script.is_over
    assert [request.method for request in script.requests] == ["POST", "GET", "GET"]


@pytest.mark.usefixtures("on_terminal")
def test_ctrl_c_after_a_submission_offers_to_cancel_it(run: RunCommand, file: str) -> None:
    result, script = run(
        ["submit", "-f", file, "--watch"],
        ok(job(), 201),
        ok(state("Running"), ETag='"1"'),
        interrupt,
        ok(job("Running")),
        ok(state("Cancelled")),
        stdin="y\n",
    )
    assert result.exit_code == 4, result.output
    assert script.requests[3].url.path == "/api/v1/namespaces/team/jobs/tour/cancel"


def test_ctrl_c_asks_nothing_without_a_terminal(run: RunCommand, file: str) -> None:
    answers = ok(job(), 201), ok(state("Running"), ETag='"1"'), interrupt
    result, script = run(["submit", "-f", file, "--watch"], *answers, stdin="y\n")
    assert result.exit_code == 130
    assert "cancel it?" not in result.stderr
    assert script.is_over


def test_login_saves_a_context_that_later_commands_use(run: RunCommand, tmp_path: Path) -> None:
    result, script = run(["login", "http://lab/", "--context", "lab", "-n", "vision", "--token", "jg_1"], page([]))
    assert result.exit_code == 0, result.output
    assert script.requests[0].headers["Authorization"] == "Bearer jg_1"
    assert config.load(tmp_path / "none.yaml").contexts["lab"].server == "http://lab"
    result, _ = run(["context", "lab", "-n", "other"])
    assert ["*", "lab", "http://lab", "other", "yes"] in [line.split() for line in result.stdout.splitlines()]
    assert "jg_1" not in result.stdout


def test_a_refused_token_is_not_saved(run: RunCommand, tmp_path: Path) -> None:
    result, _ = run(["login", "http://lab", "--token", "jg_1"], problem(401, "InvalidToken"))
    assert result.exit_code == 2
    assert not (tmp_path / "none.yaml").exists()


def test_an_unknown_context_cannot_be_chosen(run: RunCommand) -> None:
    result, _ = run(["context", "lab"])
    assert result.exit_code == 2
    assert "there is no context lab" in result.stderr


def dry_run_of(**changes: Any) -> dict[str, Any]:
    manifest = {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": "tour"},
        "spec": changes,
    }
    plan: dict[str, Any] = {"tasks": [], "pods": [], "services": []}
    return {
        "dryRun": True,
        "manifest": manifest,
        "warnings": [],
        "plan": plan,
        "manifests": [],
        "manifestsOmitted": 0,
    }


@pytest.mark.parametrize(
    ("stored", "spec", "status", "words"),
    [
        (ok(job("Running")), {}, 0, []),
        (ok(job("Running")), {"a": 1}, 1, ["+  a: 1", "tour: PUT refuses changes of: /spec/a"]),
        (ok(job("Failed")), {"a": 1}, 1, ["+  a: 1", "tour has ended as Failed; a submission creates a new one"]),
        (problem(404, "NotFound"), {}, 1, ["+  name: tour", "tour does not exist; a submission creates a new one"]),
    ],
    ids=["same", "changed", "ended", "absent"],
)
def test_diff(run: RunCommand, file: str, stored: Answer, spec: dict[str, Any], status: int, words: list[str]) -> None:
    result, script = run(["diff", "-f", file], ok({"items": []}), ok({"items": [dry_run_of(**spec)]}), stored)
    assert result.exit_code == status, result.output
    assert [word for word in words if word not in result.output] == []
    assert [request.method for request in script.requests] == ["GET", "POST", "GET"]
    assert script.requests[1].url.params["dryRun"] == "Local"


def test_diff_of_a_refused_manifest(run: RunCommand, file: str) -> None:
    result, _ = run(["diff", "-f", file], ok({"items": []}), problem(422, "InvalidManifest"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "422 InvalidManifest" in result.stderr


def test_top_shows_live_jobs_and_ended_ones_whose_replicas_still_run(run: RunCommand) -> None:
    answers = page([job("Running")]), page([job("Failed", "left", stillRunning=2)])
    result, script = run(["top", "-A"], *answers)
    assert "live jobs: 1 Running" in result.stdout
    live, over = (request.url.params for request in script.requests)
    assert ("Running" in live.get_list("phase"), live.get("stillRunning")) == (True, None)
    assert (over.get_list("phase"), over.get("stillRunning")) == ([], "true")
    assert result.stdout.splitlines()[-1].split()[1] == "left"
    assert "2 replicas of this job still run" in result.stdout


def test_structured_output_of_several_submissions_is_one_document(run: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: SampleJob\n---\nkind: GenericJob\n")
    result, _ = run(["submit", str(tmp_path / "a.yaml"), "-o", "json"], problem(404, "NoNamespace"), ok(job(), 201))
    first, second = json.loads(result.stdout)["items"]
    assert (first["code"], second["name"], result.exit_code) == ("NoNamespace", "tour", 2)


def test_structured_output_of_a_watch_has_only_the_result(run: RunCommand, file: str) -> None:
    answers = ok(job(), 201), ok(state("Running"), ETag='"1"'), ok(state("Failed"), ETag='"2"')
    result, _ = run(["submit", "-f", file, "-w", "-o", "json"], *answers)
    assert json.loads(result.stdout)["status"]["phase"] == "Failed"
    assert "tour  Running" in result.stderr
    result, _ = run(["watch", "tour", "-o", "json"], *answers[1:])
    assert [json.loads(line)["status"]["phase"] for line in result.stdout.splitlines()] == ["Running", "Failed"]


def test_several_objects_are_changed_and_a_refusal_does_not_stop_the_others(run: RunCommand) -> None:
    answers = problem(403, "Forbidden"), ok(job(name="a")), problem(404, "NotFound"), ok(job(name="c"))
    result, script = run(["delete", "a", "ss/b", "gj/d", "c"], *answers)
    assert [request.url.path.rpartition("/team/")[2] for request in script.requests] == [
        "jobs/d/status",
        "jobs/a",
        "samplesets/b",
        "jobs/c",
    ]
    assert (result.stdout, result.exit_code) == ("a deletion requested\nc deletion requested\n", 2)
    assert "jobgate: ss/b: it is NotFound" in result.stderr
    assert "jobgate: gj/d: it is Forbidden" in result.stderr


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel", "retry", "delete"])
def test_a_job_of_another_kind_is_not_changed(run: RunCommand, verb: str) -> None:
    result, script = run([verb, "a", "tj/b"], ok(state("Running", "b")))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "tj/b: the job b is a GenericJob; accepted: b or genericjob/b" in result.stderr
    assert [request.method for request in script.requests] == ["GET"]
    result, script = run([verb, "gj/b"], ok(state("Running", "b")), ok(job(name="b")))
    assert (result.exit_code, len(script.requests)) == (0, 2)


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel", "retry", "logs"])
def test_verbs_of_jobs_refuse_other_kinds(run: RunCommand, verb: str) -> None:
    result, script = run([verb, "sampleset/imagenet"])
    assert result.exit_code == 2
    assert "accepted: the name of a job" in result.stderr
    assert script.requests == []


def test_an_object_that_is_not_found_is_reported_with_the_place(run: RunCommand) -> None:
    result, _ = run(["get", "tour", "-n", "other"], problem(404, "NotFound"))
    assert "  in namespace other of http://127.0.0.1:8080; -n selects another namespace" in result.stderr


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--timeout", "soon", "Invalid value for '--timeout': soon is no duration"),
        ("--for", "ready", "Invalid value for '--for': 'ready' is not one of"),
    ],
)
def test_a_wrong_value_is_explained(run: RunCommand, option: str, value: str, message: str) -> None:
    result, script = run(["wait", "tour", option, value])
    assert (result.exit_code, script.requests) == (2, [])
    assert message in result.stderr


def test_a_table_is_made_from_summaries_and_json_from_whole_objects(run: RunCommand) -> None:
    _, script = run(["list"], page([job()]))
    assert script.requests[0].url.params["view"] == "summary"
    _, script = run(["list", "-o", "yaml"], page([job()]))
    assert "view" not in script.requests[0].url.params


@pytest.mark.parametrize(
    "arguments", [["watch", "tour"], ["wait", "tour"], ["status", "tour"]], ids=lambda given: given[0]
)
def test_a_failed_job_shows_its_first_failure(run: RunCommand, arguments: list[str]) -> None:
    failure = {
        "replica": "worker[0]",
        "attempt": 1,
        "exitCode": 3,
        "message": "no data",
        "lastLines": ["step 1", "no data"],
        "at": "2026-01-31T12:00:00Z",
    }
    result, _ = run(arguments, ok(state("Failed", firstFailure=failure)))
    assert result.stdout.splitlines()[1:] == [
        "First failure: worker[0] in attempt 1: exit code 3",
        "  no data",
        "  | step 1",
        "  | no data",
    ]
