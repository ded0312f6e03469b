"""`make sdks` reports clients that it cannot build, that lack operations, or whose programs report wrong results."""

import dataclasses
import hashlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tools.sdks.__main__ import Results, build_all
from tools.sdks.building import (
    PROJECTS,
    Failed,
    Skipped,
    Workshop,
    check_packages,
    install,
    missing_operations,
    unexpected_warnings,
)
from tools.sdks.catalog import LANGUAGES, PYTHON, SDKS, Language
from tools.sdks.scenario import JOB_KINDS, Stored, differences, labelled_manifests

MADE_UP = Language(name=PYTHON, locks=("requirements/sdks.txt",), install=((sys.executable, "-c", "open('ran', 'x')"),))
OPERATIONS = {
    "paths": {"/a": {"get": {"operationId": "get_job"}, "put": {"operationId": "put_di_job"}, "parameters": {}}}
}


def fails_with(text: str) -> tuple[str, ...]:
    """Return a command that fails with a text on stderr."""
    return (sys.executable, "-c", f"import sys; sys.exit({text!r})")


def test_dependencies_are_installed_once(tmp_path: Path) -> None:
    workshop = Workshop(directory=tmp_path)
    install(workshop, MADE_UP)
    assert (tmp_path / PYTHON / "ran").is_file()
    install(workshop, MADE_UP)  # the command would fail the second time


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    language = dataclasses.replace(MADE_UP, programs=("no-such-compiler",))
    with pytest.raises(Skipped, match="no-such-compiler not found on PATH"):
        install(Workshop(directory=tmp_path), language)


def test_a_project_is_installed_again_when_its_packages_change(tmp_path: Path) -> None:
    workshop = Workshop(directory=tmp_path)
    (workshop.project(PYTHON)).mkdir()
    (workshop.project(PYTHON) / "package-of-another-version").touch()
    install(workshop, MADE_UP)
    assert not (workshop.project(PYTHON) / "package-of-another-version").exists()


def test_packages_that_cannot_be_fetched_are_skipped(tmp_path: Path) -> None:
    language = dataclasses.replace(MADE_UP, install=(fails_with("no matching distribution"),))
    with pytest.raises(Skipped, match="no matching distribution"):
        install(Workshop(directory=tmp_path), language)


@pytest.mark.parametrize(
    "message", ["do not match the hashes", "npm error code EINTEGRITY", "verifying: checksum mismatch"]
)
def test_packages_that_differ_from_the_lock_file_are_a_failure(tmp_path: Path, message: str) -> None:
    language = dataclasses.replace(MADE_UP, install=(fails_with(message),))
    with pytest.raises(Failed, match=message):
        install(Workshop(directory=tmp_path), language)


@pytest.mark.parametrize(
    ("files", "different"),
    [
        ({"lib/a.jar": b"a"}, None),
        ({"lib/a.jar": b"another"}, "lib/a.jar"),
        ({"lib/a.jar": b"a", "lib/b.jar": b"b"}, "lib/b.jar"),
        ({"lib/b.jar": b"a"}, "lib/a.jar, lib/b.jar"),
    ],
    ids=["same", "changed", "added", "renamed"],
)
def test_packages_are_compared_with_their_checksums(
    tmp_path: Path, files: Mapping[str, bytes], different: str | None
) -> None:
    (tmp_path / "lib").mkdir()
    for path, content in files.items():
        (tmp_path / path).write_bytes(content)
    checksums = tmp_path / "libraries.sha256"
    checksums.write_text(f"{hashlib.sha256(b'a').hexdigest()}  lib/a.jar\n")
    if different is None:
        check_packages(tmp_path, checksums)
    else:
        with pytest.raises(Failed, match=rf"^{re.escape(different)} differs from the lock file libraries.sha256$"):
            check_packages(tmp_path, checksums)


def test_skipped_clients_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    language = dataclasses.replace(LANGUAGES[0], programs=("no-such-compiler",))
    monkeypatch.setattr("tools.sdks.__main__.find_language", lambda _: language)
    generator = dataclasses.replace(SDKS[0], name="generator", programs=("no-such-generator",))
    results = Results()
    build_all(Workshop(directory=tmp_path), [SDKS[0], generator], results)
    assert results == Results(skipped=[SDKS[0], generator])
    assert capsys.readouterr().out.splitlines() == [
        f"sdks: skipped {SDKS[0].name} (python): no-such-compiler not found on PATH",
        "sdks: skipped generator (python): no-such-generator not found on PATH",
    ]


@pytest.mark.parametrize(
    ("file", "text", "missing"),
    [
        ("get_job.py", "class PutDIJob: ...", set()),
        ("api.go", "func (c *Client) GetJob()\nfunc (c *Client) PutDiJob()", set()),
        ("api.ts", "getJob", {"put_di_job"}),
        ("api.md", "getJob putDiJob", {"get_job", "put_di_job"}),
    ],
)
def test_operations_that_a_client_lacks_are_found(tmp_path: Path, file: str, text: str, missing: set[str]) -> None:
    (tmp_path / file).write_text(text)
    assert missing_operations(OPERATIONS, tmp_path) == missing


def test_only_listed_warnings_are_tolerated() -> None:
    sdk = dataclasses.replace(SDKS[0], warning=r"^WARN (.+)$", tolerated=("this",))
    assert list(unexpected_warnings(sdk, "WARN this one\nINFO\nWARN that one\n")) == ["that one"]


def test_npm_packages_are_pinned_without_addresses() -> None:
    lock = json.loads((PROJECTS / "typescript" / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert len(packages) > 3
    assert [name for name, package in packages.items() if "resolved" in package or "integrity" not in package] == []


def test_go_modules_are_pinned_with_hashes() -> None:
    project = PROJECTS / "go"
    modules = re.findall(r"^(?:require )?\t?(\S+/\S+) (v\S+)", (project / "go.mod").read_text(), re.MULTILINE)
    hashes = (project / "go.sum").read_text()
    assert len(modules) > 3
    assert [module for module in modules if f"{module[0]} {module[1]} h1:" not in hashes] == []


def test_java_libraries_are_pinned_with_hashes() -> None:
    project = PROJECTS / "java"
    artifacts = re.findall(
        r"<artifactId>(.+)</artifactId>\s+<version>(.+)</version>\s+</dependency>", (project / "pom.xml").read_text()
    )
    hashes = (project / "libraries.sha256").read_text()
    assert len(artifacts) > 3
    assert [
        name
        for name, version in artifacts
        if not re.search(rf"^\w{{64}}  lib/{name}-{version}.jar$", hashes, re.MULTILINE)
    ] == []


ENDED: Mapping[str, Any] = {kind: {"uid": f"uid-{kind}", "name": kind.lower(), "kind": kind} for kind in JOB_KINDS}
SAMPLES = {
    "samplesets": {"kind": "SampleSet", "uid": "s", "deletedAt": "2026-01-01T00:00:00Z"},
    "samplejobs": {"kind": "SampleJob", "uid": "j", "deletedAt": "2026-01-01T00:00:00Z"},
}
REPORT: Mapping[str, Any] = {
    "jobs": {kind: f"uid-{kind}" for kind in JOB_KINDS},
    "phases": dict.fromkeys(JOB_KINDS, "Succeeded"),
    "watched": ["Queued", "Succeeded"],
    "replicas": ["generic-worker-0 Succeeded 0"],
    "log": "worker 0 of 2\ndone\n",
    "history": ["Queued Submitted", "Succeeded Done"],
    "problem": {"code": "Invalid", "pointers": ["/spec"]},
    "replayed": "uid-GenericJob",
    "pages": [["genericjob", "mxjob"], ["dijob", "trainingjob"]],
    "samples": {"SampleSet": "s", "SampleJob": "j"},
}


def answer(request: httpx2.Request) -> httpx2.Response:
    """Answer a request like a gateway that stores what REPORT contains."""
    resource = request.url.path.rpartition("/")[2]
    items = {
        "jobs": list(ENDED.values()),
        "replicas": [{"name": "generic-worker-0", "phase": "Succeeded", "exitCode": 0}],
        "history": [{"phase": "Queued", "reason": "Submitted"}, {"phase": "Succeeded", "reason": "Done"}],
        **{name: [item] for name, item in SAMPLES.items()},
    }
    if request.method == "POST":
        return httpx2.Response(422, json={"code": "Invalid", "errors": [{"pointer": "/spec"}]})
    return httpx2.Response(200, json={"items": items[resource]})


def different_parts(report: Mapping[str, Any]) -> list[str]:
    with httpx2.Client(base_url="http://gateway", transport=httpx2.MockTransport(answer)) as http:
        return [line.partition(":")[0] for line in differences(report, Stored(http, "client"), {})]


def test_a_correct_report_has_no_differences() -> None:
    assert different_parts(REPORT) == []


@pytest.mark.parametrize(
    ("part", "value"),
    [
        *((part, None) for part in REPORT if part not in {"watched", "pages"}),
        ("watched", []),
        ("watched", ["Queued"]),
        ("watched", ["Made up", "Succeeded"]),
        ("pages", []),
        ("pages", [["genericjob", "mxjob", "dijob", "trainingjob"]]),
        ("pages", [["genericjob", "mxjob"], ["dijob"]]),
    ],
)
def test_a_wrong_report_is_found(part: str, value: object) -> None:
    assert different_parts({**REPORT, part: value}) == [part]


def test_the_manifests_have_every_kind_and_the_label_of_the_client() -> None:
    manifests = labelled_manifests(SDKS[0])
    assert {manifest["kind"] for manifest in manifests.values()} == {*JOB_KINDS, "SampleSet", "SampleJob"}
    assert {json.dumps(manifest["metadata"]["labels"]) for manifest in manifests.values()} == {
        json.dumps({"client": SDKS[0].name})
    }
