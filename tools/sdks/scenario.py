"""Runs the example program of a client against a gateway, and compares its report with what the gateway stores.

The program gets a directory of manifests, and a label selector for its own jobs. It submits a job of each kind, follows
the jobs, and prints a report as JSON. The comparison reads the gateway with plain HTTP requests, so it detects a client
that decodes an answer wrongly.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tools.sdks.building import ROOT, Failed, Workshop
from tools.sdks.catalog import Sdk

MANIFESTS = ROOT / "examples" / "clients" / "manifests"
INVALID = "invalid"
START_SECONDS = 240.0  # generous: `jobgate dev` initializes a database and a cluster on a busy machine
STOP_SECONDS = 90.0
NAMESPACE = "default"
LABEL = "client"
JOB_KINDS = ("GenericJob", "MxJob", "DIJob", "TrainingJob")
PAGE_SIZE = 2  # of the programs, so that the four jobs need two pages


@contextmanager
def gateway(directory: Path) -> Iterator[str]:
    """Run `jobgate dev` during the block, with its state below `directory`, and yield its URL."""
    command = (sys.executable, "-m", "app.cli", "dev", "--data-dir", str(directory / "state"), "--port", "0")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JOBGATE_")}
    directory.chmod(0o755)  # PostgreSQL may have to run as another user
    log_file = directory / "gateway.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline() if ready else ""
        if not line.startswith("jobgate is ready at "):
            raise Failed(f"`jobgate dev` does not start:\n{log_file.read_text()}")
        yield line.split()[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def run(workshop: Workshop, sdk: Sdk, url: str, directory: Path) -> None:
    """Run the program of a client. Raise Failed if it fails or if its report differs from what the gateway stores."""
    manifests = labelled_manifests(sdk)
    directory.mkdir(parents=True)
    for name, manifest in manifests.items():
        (directory / f"{name}.json").write_text(json.dumps(manifest))
    environment = {"JOBGATE_URL": url, "JOBGATE_NAMESPACE": NAMESPACE}
    ran = workshop.run(sdk.language, sdk.run, str(directory), f"{LABEL}={sdk.name}", environment=environment)
    report = json.loads(ran.stdout)
    with httpx2.Client(base_url=url, timeout=60) as http:
        found = list(differences(report, Stored(http, sdk.name), manifests[INVALID]))
    if found:
        raise Failed("\n".join(found))


def labelled_manifests(sdk: Sdk) -> dict[str, dict[str, Any]]:
    """Return the example manifests by name, with the name of the client as a label, by which its objects are found."""
    manifests: dict[str, dict[str, Any]] = {
        path.stem: json.loads(path.read_text()) for path in MANIFESTS.glob("*.json")
    }
    for manifest in manifests.values():
        manifest["metadata"]["labels"] = {LABEL: sdk.name}
    return manifests


@dataclass(frozen=True, slots=True)
class Stored:
    """Reads what the gateway stores about the objects of one client."""

    http: httpx2.Client
    client: str

    def read(self, path: str, **params: str) -> Any:
        return self.http.get(f"/api/v1/{path}", params=params).raise_for_status().json()

    def objects(self, resource: str) -> list[dict[str, Any]]:
        selector = f"{LABEL}={self.client}"
        items: list[dict[str, Any]] = self.read(resource, labelSelector=selector, deleted="true")["items"]
        return items

    def problem(self, manifest: Mapping[str, Any]) -> Any:
        return self.http.post(f"/api/v1/namespaces/{NAMESPACE}/jobs", json=manifest).json()


def differences(report: Mapping[str, Any], stored: Stored, invalid: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each part of the report that differs from what the gateway stores."""
    jobs = {job["kind"]: job for job in stored.objects("jobs")}
    if sorted(jobs) != sorted(JOB_KINDS):
        yield f"jobs: the gateway has {sorted(jobs)}"
        return
    generic = f"jobs/{jobs['GenericJob']['uid']}"
    problem = stored.problem(invalid)
    history = stored.read(f"jobs/{jobs['TrainingJob']['uid']}/history")["items"]
    expected = {
        "jobs": {kind: job["uid"] for kind, job in jobs.items()},
        "phases": dict.fromkeys(JOB_KINDS, "Succeeded"),
        "replicas": [f"{r['name']} {r['phase']} {r['exitCode']}" for r in stored.read(f"{generic}/replicas")["items"]],
        "log": "worker 0 of 2\ndone\n",
        "history": [f"{entry['phase']} {entry['reason']}" for entry in stored.read(f"{generic}/history")["items"]],
        "problem": {"code": problem["code"], "pointers": [error["pointer"] for error in problem["errors"]]},
        "replayed": jobs["GenericJob"]["uid"],
        "samples": {item["kind"]: item["uid"] for item in _deleted_samples(stored)},
    }
    for part, value in expected.items():
        if report.get(part) != value:
            yield f"{part}: the program reports {report.get(part)!r}, the gateway has {value!r}"
    yield from _watch_differences(report.get("watched", ()), {entry["phase"] for entry in history})
    yield from _page_differences(report.get("pages", ()), [job["name"] for job in stored.objects("jobs")])


def _deleted_samples(stored: Stored) -> Iterator[dict[str, Any]]:
    for resource in ("samplesets", "samplejobs"):
        yield from (item for item in stored.objects(resource) if item["deletedAt"] is not None)


def _watch_differences(watched: Sequence[str], phases: set[str]) -> Iterator[str]:
    """Yield a message unless the phases are those of a watched job. An event can be missing if the job changes fast."""
    if not watched or watched[-1] != "Succeeded" or not set(watched) <= phases:
        yield f"watched: the program reports {watched!r}, the phases of the job were {sorted(phases)}"


def _page_differences(pages: Sequence[Sequence[str]], names: Sequence[str]) -> Iterator[str]:
    sizes = [len(page) for page in pages]
    if [name for page in pages for name in page] != list(names) or max(sizes, default=0) != PAGE_SIZE:
        yield f"pages: the program reports {pages!r}, the gateway lists {names!r}"
