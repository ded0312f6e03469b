"""The command that removes secrets from what is stored of objects."""

import json
from pathlib import Path

import pytest

from tests.client.scripted import RunCommand, job, ok, page, problem

ONE, TWO = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"


def done(changed: int = 3, token: str | None = None, *, in_cluster: bool = False) -> object:
    view = {"uid": ONE, "namespace": "team", "name": "tour", "changed": changed, "inCluster": in_cluster}
    return ok(view | {"nextPageToken": token})


def test_a_name_means_every_object_that_has_had_it(run: RunCommand) -> None:
    listed = page([job() | {"uid": ONE}, job() | {"uid": TWO}])
    result, script = run(["redact", "tour"], listed, done(), done(0))
    assert result.exit_code == 0, result.output
    query = script.requests[0].url.params
    assert (query["name"], query["deleted"]) == ("tour", "true")
    assert [request.url.path for request in script.requests[1:]] == [f"/api/v1/jobs/{uid}/redact" for uid in (ONE, TWO)]
    assert json.loads(script.requests[1].content) == {"env": ["*"]}
    assert result.stdout.splitlines() == [f"tour {ONE}: removed from 3 rows", f"tour {TWO}: nothing to remove"]


def test_a_redaction_continues_until_everything_was_read(run: RunCommand, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s3cr3t\n")
    arguments = [
        "redact",
        f"sampleset/{ONE}",
        "--env",
        "A",
        "--env",
        "B",
        "--field",
        "/spec/a",
        "--text-from",
        str(file),
    ]
    result, script = run(arguments, done(1, "next"), done(2, in_cluster=True))
    assert result.exit_code == 0, result.output
    selected = {"env": ["A", "B"], "fields": ["/spec/a"], "texts": ["s3cr3t"]}
    assert [json.loads(request.content) for request in script.requests] == [selected, {**selected, "pageToken": "next"}]
    assert {request.url.path for request in script.requests} == {f"/api/v1/samplesets/{ONE}/redact"}
    assert "removed from 3 rows; its objects in the cluster still have it: delete it" in result.stdout


def test_all_objects_of_all_namespaces(run: RunCommand) -> None:
    listed = page([job() | {"uid": ONE}]), done(0), page([]), page([])
    result, script = run(["redact", "--all", "-A", "--text-from", "-"], *listed, stdin="s3cr3t")
    assert result.exit_code == 0, result.output
    paths = [request.url.path for request in script.requests]
    assert paths == ["/api/v1/jobs", f"/api/v1/jobs/{ONE}/redact", "/api/v1/samplesets", "/api/v1/samplejobs"]
    assert not result.stdout


def test_a_refusal_does_not_prevent_the_others(run: RunCommand) -> None:
    result, _ = run(["redact", ONE, TWO], problem(409, "NotFinished"), done())
    assert result.exit_code == 2
    assert "NotFinished" in result.stderr
    assert "removed from 3 rows" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(["redact"], "or --all"), (["redact", ONE, "--all"], "or --all"), (["redact", ONE, "--text-from", "/no"], "/no")],
)
def test_wrong_arguments(run: RunCommand, arguments: list[str], expected: str) -> None:
    result, script = run(arguments)
    assert (result.exit_code, script.requests) == (2, [])
    assert expected in result.stderr


@pytest.mark.parametrize(
    ("target", "query", "expected"),
    [
        ("tour", {"name": "tour"}, "no object has had this name"),
        ("tj/tour", {"name": "tour", "kind": "TrainingJob"}, "no TrainingJob has had this name"),
        (f"tj/{TWO}", {"uid": TWO, "kind": "TrainingJob"}, "no TrainingJob has had this uid"),
    ],
)
def test_nothing_is_redacted_if_there_is_no_such_object(
    run: RunCommand, target: str, query: dict[str, str], expected: str
) -> None:
    result, script = run(["redact", ONE, target], page([]))
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"redact {target}: {expected}" in result.stderr
    (request,) = script.requests
    assert request.method == "GET"
    assert dict(request.url.params) == {"deleted": "true", "pageSize": "500", "view": "summary"} | query
