"""The completion of commands, kinds and names of objects in a shell."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import pytest
from typer.completion import get_completion_inspect_parameters

from jobgate.cli import arguments
from tests.client.scripted import Answer, RunCommand, Script, job, page, problem

TOUR = page([job("Running"), job("Failed"), job(name="tour-2")])
IMAGENET = page([job("Ready", "imagenet", runtime={"ready": 1, "wanted": 1})])
WARM = page([job("Running", "warm", type="warmup", sampleSet="imagenet")])


def completed(run: RunCommand, line: str, *answers: Answer) -> tuple[list[str], Script]:
    """Return the words that the shell offers at the end of a line."""
    get_completion_inspect_parameters()  # registers the shells, as the entry point does
    variables = {
        "_JOBGATE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    result, script = run([], *answers, variables=variables)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.split(), script


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_asks_jobgate(run: RunCommand, shell: str) -> None:
    result, script = run(["completion", shell])
    assert f"_JOBGATE_COMPLETE=complete_{shell}" in result.stdout
    assert script.requests == []


def test_a_shell_completes_commands(tmp_path: Path) -> None:
    asked = {"_JOBGATE_COMPLETE": "complete_bash", "COMP_WORDS": "jobgate expl", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "jobgate"]
    ran = subprocess.run(
        command, env={**os.environ, **asked}, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.stdout.split() == ["explain"], ran.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("jobgate list sample", ["samplesets", "samplejobs"]),
        ("jobgate list j", ["jobs"]),
        ("jobgate explain j", []),
        ("jobgate explain gen", ["genericjobs"]),
        ("jobgate logs sampleset/", []),
        ("jobgate get pod/", []),
        ("jobgate get --context lab t", []),
    ],
)
def test_kinds_are_completed_without_the_gateway(run: RunCommand, line: str, words: list[str]) -> None:
    offered, script = completed(run, line)
    assert (offered, script.requests) == (words, [])


@pytest.mark.parametrize(
    ("line", "answer", "words", "path", "parameters"),
    [
        ("jobgate get t", TOUR, ["tour", "tour-2"], "team/jobs", {"prefix": "t"}),
        ("jobgate cancel -n lab a t", TOUR, ["tour", "tour-2"], "lab/jobs", {"prefix": "t"}),
        ("jobgate logs ", TOUR, ["tour", "tour-2"], "team/jobs", {}),
        ("jobgate watch tj/", TOUR, ["tj/tour", "tj/tour-2"], "team/jobs", {"kind": "TrainingJob"}),
        ("jobgate scale ss/im", IMAGENET, ["ss/imagenet"], "team/samplesets", {"prefix": "im"}),
        ("jobgate delete a samplejob/", WARM, ["samplejob/warm"], "team/samplejobs", {}),
    ],
)
def test_names_are_read_from_the_gateway(
    run: RunCommand, line: str, answer: Answer, words: list[str], path: str, parameters: dict[str, str]
) -> None:
    offered, script = completed(run, line, answer)
    assert offered == words
    (request,) = script.requests
    assert request.url.path == f"/api/v1/namespaces/{path}"
    assert dict(request.url.params) == {"view": "summary", "pageSize": "100", **parameters}


@pytest.mark.parametrize(
    ("text", "answers", "words"),
    [
        ("", [TOUR, IMAGENET, WARM], ["tour", "tour-2", "sampleset/imagenet", "samplejob/warm"]),
        ("samples", [page([]), IMAGENET], ["sampleset/imagenet"]),
        ("", [TOUR, problem(503, "Unavailable")], ["tour", "tour-2"]),
    ],
)
def test_objects_of_all_resources_are_offered(
    run: RunCommand, text: str, answers: list[Answer], words: list[str]
) -> None:
    offered, script = completed(run, f"jobgate describe {text}", *answers)
    assert (offered, script.is_over) == (words, True)


@pytest.mark.parametrize(
    "answer",
    [
        problem(401, "Unauthenticated"),
        problem(429, "TooManyOpen", Retry_After="1"),
        httpx2.ConnectError("refused"),
        httpx2.Response(200, content=b"<h1>Welcome</h1>"),
    ],
    ids=["401", "429", "unreachable", "another server"],
)
def test_an_error_of_the_gateway_completes_nothing(run: RunCommand, answer: Answer) -> None:
    offered, script = completed(run, "jobgate get ", answer)
    assert (offered, script.is_over) == ([], True)


def test_a_slow_gateway_does_not_hold_the_shell(run: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def slow(_: httpx2.Request) -> httpx2.Response:
        released.wait()
        return TOUR

    monkeypatch.setattr(arguments, "_LONGEST", 0.01)
    offered, _ = completed(run, "jobgate logs ", slow)
    released.set()
    assert offered == []
