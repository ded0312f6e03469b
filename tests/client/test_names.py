"""What users type: commands of other tools, kinds where names belong, options before a command, and `-o name`."""

from pathlib import Path

import pytest

from tests.client.scripted import RunCommand, ok, page, problem
from tests.client.scripted import job as whole


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("create", "submit"),
        ("run", "submit"),
        ("apply", "submit"),
        ("kill", "cancel"),
        ("stop", "cancel"),
        ("ps", "list"),
        ("ls", "list"),
        ("rm", "delete"),
        ("restart", "retry"),
        ("Show", "describe"),
    ],
)
def test_the_command_of_another_tool_is_answered_with_that_of_this_one(run: RunCommand, typed: str, meant: str) -> None:
    result, _ = run([typed, "tour"])
    assert result.exit_code == 2
    assert f"use `jobgate {meant}`" in result.stderr
    assert "Did you mean" not in result.stderr


def test_what_only_kubectl_does_is_said(run: RunCommand) -> None:
    result, _ = run(["exec", "tour", "--", "sh"])
    assert result.exit_code == 2
    assert "kubectl exec" in result.stderr


def test_a_misspelt_command_gets_the_nearest_one(run: RunCommand) -> None:
    result, _ = run(["lst"])
    assert "Did you mean 'list'?" in result.stderr


def test_the_version_needs_no_gateway(run: RunCommand) -> None:
    result, script = run(["--version"])
    assert (result.exit_code, script.requests) == (0, [])
    assert result.stdout.startswith("jobgate ")


def test_options_before_a_command_apply_to_it_unless_it_has_its_own(run: RunCommand) -> None:
    _, script = run(["--server", "http://a.example", "-n", "vision", "list"], page([]))
    assert (script.requests[0].url.host, script.requests[0].url.path.split("/")[4]) == ("a.example", "vision")
    _, script = run(["--server", "http://a.example", "-n", "vision", "list", "-n", "speech"], page([]))
    assert script.requests[0].url.path.split("/")[4] == "speech"
    result, _ = run(["--context", "nowhere", "list"])
    assert "there is no context nowhere" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        (["tour"], ["/api/v1/namespaces/team/jobs/tour"]),
        (["job", "tour"], ["/api/v1/namespaces/team/jobs/tour"]),
        (["jobs", "a", "b"], ["/api/v1/namespaces/team/jobs/a", "/api/v1/namespaces/team/jobs/b"]),
        (["job/jobs"], ["/api/v1/namespaces/team/jobs/jobs"]),
        (["job"], ["/api/v1/namespaces/team/jobs/job"]),
    ],
    ids=str,
)
def test_get_takes_a_kind_before_names(run: RunCommand, arguments: list[str], paths: list[str]) -> None:
    result, script = run(["get", *arguments], *(ok(whole()) for _ in paths))
    assert result.exit_code == 0, result.output
    assert [request.url.path for request in script.requests] == paths


@pytest.mark.parametrize("kind", ["jobs", "Jobs", "trainingjobs"])
def test_get_of_a_kind_lists_its_objects(run: RunCommand, kind: str) -> None:
    result, script = run(["get", kind], page([whole(name="tour")]))
    assert result.exit_code == 0, result.output
    assert script.requests[0].url.path == "/api/v1/namespaces/team/jobs"
    assert "tour" in result.stdout


@pytest.mark.parametrize("command", ["status", "describe", "delete", "cancel", "wait", "history"])
def test_a_kind_is_no_name_of_an_object(run: RunCommand, command: str) -> None:
    result, script = run([command, "jobs"])
    assert (result.exit_code, script.requests) == (2, [])
    assert "`jobgate list jobs` lists its objects, and job/jobs is a job of that name" in result.stderr


@pytest.mark.parametrize(
    "command", [["status", "tour"], ["wait", "tour"], ["describe", "tour"], ["top"], ["get", "tour"]]
)
def test_o_name_prints_nothing_but_names(run: RunCommand, command: list[str]) -> None:
    answers = {
        "top": [page([whole("Running")]), page([])],  # the live jobs, then the ended ones with running replicas
        "describe": [ok(whole()), page([]), page([])],
    }
    result, _ = run([*command, "-o", "name"], *answers.get(command[0], [ok(whole("Succeeded"))]))
    assert (result.exit_code, result.stdout) == (0, "tour\n"), result.output


@pytest.mark.parametrize("command", ["events", "history", "logs", "watch"])
def test_o_name_is_refused_where_results_have_no_names(run: RunCommand, command: str) -> None:
    result, script = run([command, "tour", "-o", "name"])
    assert (result.exit_code, script.requests) == (2, [])
    assert "accepted: text, wide, json, yaml" in " ".join(result.stderr.replace("│", " ").split())


JOB = "kind: GenericJob\nmetadata: {name: tour}\nspec: {}\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"


def test_documents_of_other_kinds_are_named_before_anything_is_submitted(run: RunCommand, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(f"{CONFIG}---\n{JOB}---\napiVersion: v1\nkind: Secret\n")
    result, script = run(["submit", "-f", str(file)], page([]))
    assert result.exit_code == 2
    assert [request.url.path for request in script.requests] == ["/api/v1/kinds"]
    assert "these documents: ConfigMap settings, Secret; its own: GenericJob tour" in result.stderr
    assert "--skip-foreign" in result.stderr


def test_documents_of_other_kinds_can_be_skipped(run: RunCommand, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(f"{CONFIG}---\n{JOB}")
    kinds = page([])
    result, script = run(["submit", "-f", str(file), "--skip-foreign", "--name", "x"], kinds, ok(whole(), 201))
    assert result.exit_code == 0, result.output
    assert f"{file}: ConfigMap settings is skipped" in result.stderr
    assert [request.method for request in script.requests] == ["GET", "POST"]
    file.write_text(CONFIG)
    result, script = run(["submit", "-f", str(file), "--skip-foreign"], page([]))
    assert result.exit_code == 2
    assert "there is no manifest of a kind of jobgate" in result.stderr


@pytest.mark.parametrize("text", ["kind: GenericJob\nmetadata:\n  name: {{ .Values.name }}\n", "kind: X\n{% if a %}\n"])
def test_a_template_that_is_not_rendered_gets_a_hint(run: RunCommand, text: str) -> None:
    result, _ = run(["submit", "-f", "-"], problem(400, "MalformedDocument"), stdin=text)
    assert result.exit_code == 2
    assert "helm template CHART | jobgate submit -f -" in result.stderr
