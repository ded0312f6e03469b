"""What users type: commands of other tools, kinds where names belong, options before a command, and `-o name`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

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


def test_get_prints_manifests_that_submit_reads(run: RunCommand, tmp_path: Path) -> None:
    posted: list[dict[str, Any]] = [
        {"kind": "GenericJob", "metadata": {"name": "a", "annotations": {"at": "08"}}},
        {"kind": "GenericJob", "metadata": {"name": "b", "labels": {"on": "no"}}},
    ]
    answers = [ok({"manifest": manifest}) for manifest in posted]
    for arguments in ([], ["-o", "json"]):
        result, script = run(["get", "a", "b", "--manifest", *arguments], *answers)
        assert script.requests[1].url.path == "/api/v1/namespaces/team/jobs/b/posted-manifest"
        (tmp_path / "jobs.yaml").write_text(result.stdout)
        _, script = run(["submit", "-f", str(tmp_path / "jobs.yaml")], ok(whole(), 201), ok(whole(), 201))
        assert [yaml.safe_load(request.content) for request in script.requests] == posted
    result, _ = run(["get", "a", "b", "--manifest"], ok({"manifest": None}), ok({"manifest": posted[1]}))
    assert (result.exit_code, yaml.safe_load(result.stdout)) == (2, posted[1])
    assert "the manifest of a as it was posted is not known" in result.stderr
    for wrong, message in (
        (["jobs"], "needs the names of objects"),
        (["a", "-o", "name"], "the results have no names"),
    ):
        result, script = run(["get", *wrong, "--manifest"])
        assert (result.exit_code, script.requests, message in result.stderr) == (2, [], True)


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


def fault(pointer: str) -> dict[str, str]:
    return {"pointer": pointer, "code": "Invalid", "detail": "it is not valid", "accepted": ""}


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


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("${USER_NAME}-train", "${USER_NAME}"),
        ("$NAME", "$NAME"),
        ("train-$(RUN)", "$(RUN)"),
        ("<your-name>", "<your-name>"),
        ("'%NAME%'", "%NAME%"),
        ("'@NAME@'", "@NAME@"),
        ("echo $HOME", None),
        ("Train", None),
    ],
)
def test_a_variable_that_was_not_replaced_gets_a_hint(run: RunCommand, value: str, shown: str | None) -> None:
    refused = problem(422, "InvalidManifest", fault("/metadata/name"), fault("/metadata/missing"))
    result, _ = run(["submit", "-f", "-"], refused, stdin=f"kind: GenericJob\nmetadata:\n  name: {value}\n")
    assert result.exit_code == 2
    assert ("envsubst < FILE | jobgate submit -f -" in result.stderr) == (shown is not None)
    assert shown is None or f"  {shown} looks like a variable that was not replaced" in result.stderr


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [("{name: ${NAME}}", "${NAME}"), ("{name: @NAME@}", "@NAME@"), ("{name: %NAME%}", "%NAME%"), ("{name: }}", None)],
)
def test_a_variable_that_makes_the_file_no_yaml_gets_a_hint(run: RunCommand, metadata: str, shown: str | None) -> None:
    result, script = run(["submit", "-f", "-"], stdin=f"kind: GenericJob\nmetadata: {metadata}\nspec: {{}}\n")
    assert (result.exit_code, script.requests) == (2, [])
    assert "jobgate: standard input:2: " in result.stderr
    assert ("envsubst < FILE | jobgate submit -f -" in result.stderr) == (shown is not None)
    assert shown is None or f"  {shown} looks like a variable that was not replaced" in result.stderr


def test_an_expression_inside_of_a_line_gets_a_hint(run: RunCommand) -> None:
    result, script = run(["submit", "-f", "-"], stdin="kind: GenericJob\nmetadata: {name: {% raw %}x}\n")
    assert (result.exit_code, script.requests) == (2, [])
    assert "helm template CHART | jobgate submit -f -" in result.stderr


ITEMS = """
  - {kind: GenericJob, metadata: {name: one, labels: &labels {team: vision}}, spec: {a: &size 08}}
  - kind: SampleSet
    metadata: {name: two, labels: *labels}
    spec: {partitions: *size}
  - kind: ConfigMap
    metadata: {name: three}
"""


@pytest.mark.parametrize("kind", ["List", "GenericJobList"])
def test_each_item_of_a_list_is_a_manifest(run: RunCommand, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "list.yaml"
    file.write_text(f"# kustomize build\nkind: {kind}\napiVersion: v1\nitems:{ITEMS}")
    result, script = run(["submit", "-f", str(file)], page([]))
    assert result.exit_code == 2
    assert "these documents: ConfigMap three; its own: GenericJob one, SampleSet two" in result.stderr
    refused = problem(422, "InvalidManifest", fault("/spec/partitions"))
    result, script = run(["submit", "-f", str(file), "--skip-foreign"], page([]), ok(whole(name="one"), 201), refused)
    assert result.exit_code == 2
    assert "one submitted" in result.stdout
    assert f"{file}:8: /spec/partitions: " in result.stderr
    _, *posts = script.requests
    assert [post.url.path.rpartition("/")[2] for post in posts] == ["jobs", "samplesets"]
    labels = {"team": "vision"}
    assert [yaml.safe_load(post.content)["metadata"] for post in posts] == [
        {"name": "one", "labels": labels},
        {"name": "two", "labels": labels},
    ]
    assert b"partitions: 08\n" in posts[1].content


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "-o", "JSON"],
        ["list", "--phase", "running"],
        ["list", "--sort", "Name"],
        ["wait", "tour", "--for", "Done"],
    ],
    ids=str,
)
def test_values_are_accepted_in_any_case(run: RunCommand, arguments: list[str]) -> None:
    answer = ok(whole("Succeeded")) if arguments[0] == "wait" else page([])
    result, script = run(arguments, answer)
    assert result.exit_code == 0, result.output
    assert script.requests[0].url.params.get("phase") == ("Running" if "--phase" in arguments else None)


@pytest.mark.parametrize("output", [[], ["-o", "json"], ["-o", "name"]])
def test_get_of_several_objects_shows_those_that_are_there(run: RunCommand, output: list[str]) -> None:
    result, script = run(["get", "lost", "tour", *output], problem(404, "NotFound"), ok(whole(name="tour")))
    assert result.exit_code == 2
    assert "jobgate: lost: it is NotFound (404 NotFound)" in result.stderr
    assert "tour" in result.stdout
    assert len(script.requests) == 2
