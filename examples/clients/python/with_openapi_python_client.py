"""Uses the client that openapi-python-client generates: submits a job of each kind, follows it, and reads its results.

Usage: JOBGATE_URL=http://127.0.0.1:8080 python with_openapi_python_client.py MANIFESTS LABEL_SELECTOR
"""

import json
import os
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from jobgate_client import AuthenticatedClient
from jobgate_client.api.jobs import (
    get_job_status,
    list_job_history,
    list_job_replicas,
    list_namespace_jobs,
    submit_job,
)
from jobgate_client.api.logs import read_job_log
from jobgate_client.api.samplejobs import delete_sample_job, submit_sample_job
from jobgate_client.api.samplesets import delete_sample_set, submit_sample_set
from jobgate_client.models import (
    DIJobManifest,
    GenericJobManifest,
    HistoryPage,
    Job,
    JobPage,
    JobPhase,
    JobStatus,
    MxJobManifest,
    Problem,
    ReplicaPage,
    SampleJob,
    SampleJobManifest,
    SampleSet,
    SampleSetManifest,
    TrainingJobManifest,
    WatchEvent,
)
from jobgate_client.types import UNSET

NAMESPACE = os.environ.get("JOBGATE_NAMESPACE", "default")
ENDED = {JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.TIMEDOUT, JobPhase.CANCELLED}

JobManifest = DIJobManifest | GenericJobManifest | MxJobManifest | TrainingJobManifest
KINDS: dict[str, type[DIJobManifest | GenericJobManifest | MxJobManifest | TrainingJobManifest]] = {
    "DIJob": DIJobManifest,
    "GenericJob": GenericJobManifest,
    "MxJob": MxJobManifest,
    "TrainingJob": TrainingJobManifest,
}

client = AuthenticatedClient(
    base_url=os.environ["JOBGATE_URL"],
    token=os.environ.get("JOBGATE_TOKEN", "none"),  # `jobgate dev` needs no token
    timeout=httpx.Timeout(90),  # longer than the longest wait of a long poll
)


def manifest_of(document: dict[str, Any]) -> JobManifest:
    return KINDS[document["kind"]].from_dict(document)


def submit(manifest: JobManifest, key: str) -> Job:
    created = submit_job.sync(NAMESPACE, client=client, body=manifest, idempotency_key=key)
    assert isinstance(created, Job), created
    return created


def submit_again(manifest: JobManifest, key: str) -> Job:
    """Repeat a request, for example after a timeout. The key prevents a second job."""
    answer = submit_job.sync_detailed(NAMESPACE, client=client, body=manifest, idempotency_key=key)
    assert answer.headers["Idempotency-Replayed"] == "true"
    assert isinstance(answer.parsed, Job), answer.parsed
    return answer.parsed


def follow(name: str) -> JobStatus:
    """Wait until the job has ended. Each request returns at the next change, or with 304 after 30 seconds."""
    etag = None
    while True:
        answer = get_job_status.sync_detailed(
            NAMESPACE, name, client=client, if_none_match=etag or UNSET, prefer="wait=30"
        )
        if answer.status_code == 304:
            continue
        assert isinstance(answer.parsed, JobStatus), answer.parsed
        if answer.parsed.status.phase in ENDED:
            return answer.parsed
        etag = answer.headers["ETag"]


def watch(name: str, position: str) -> Iterator[WatchEvent]:
    """Yield the changes of a job after a position of the feed. The SDK itself does not decode server-sent events."""
    url = f"/api/v1/namespaces/{NAMESPACE}/jobs/{name}/watch"
    with client.get_httpx_client().stream("GET", url, headers={"Last-Event-ID": position}) as response:
        response.raise_for_status()
        event = ""
        for line in response.iter_lines():
            field, _, value = line.partition(": ")
            if field == "event":
                event = value
            elif field == "data" and event == "job":
                yield WatchEvent.from_dict(json.loads(value))


def errors_of(manifest: JobManifest) -> Problem:
    """Submit a manifest that is not valid, and return the errors of the answer."""
    refused = submit_job.sync(NAMESPACE, client=client, body=manifest)
    assert isinstance(refused, Problem), refused
    assert refused.status == 422
    for error in refused.errors or []:
        print(f"{error.pointer}: {error.detail}", file=sys.stderr)
    return refused


def pages(selector: str) -> Iterator[list[Job]]:
    token = None
    while True:
        page = list_namespace_jobs.sync(
            NAMESPACE, client=client, label_selector=selector, page_size=2, page_token=token or UNSET
        )
        assert isinstance(page, JobPage), page
        yield page.items
        token = page.next_page_token
        if token is None:
            return


def feed_position() -> str:
    """Return the current position of the feed. A watch from this position misses no later change."""
    answer = list_namespace_jobs.sync_detailed(NAMESPACE, client=client, page_size=1)
    return str(answer.headers["Jobgate-Feed-Position"])


def cache_samples(sample_set: dict[str, Any], sample_job: dict[str, Any]) -> dict[str, str]:
    """Submit a SampleSet and a SampleJob, then delete both. The answer to a deletion is 202 while objects remain."""
    created_set = submit_sample_set.sync(NAMESPACE, client=client, body=SampleSetManifest.from_dict(sample_set))
    assert isinstance(created_set, SampleSet), created_set
    created_job = submit_sample_job.sync(NAMESPACE, client=client, body=SampleJobManifest.from_dict(sample_job))
    assert isinstance(created_job, SampleJob), created_job
    while delete_sample_job.sync_detailed(NAMESPACE, created_job.name, client=client).status_code == 202:
        time.sleep(0.5)
    while delete_sample_set.sync_detailed(NAMESPACE, created_set.name, client=client).status_code == 202:
        time.sleep(0.5)
    return {"SampleSet": str(created_set.uid), "SampleJob": str(created_job.uid)}


def main(directory: Path, selector: str) -> dict[str, Any]:
    manifests = {path.stem: json.loads(path.read_text()) for path in directory.glob("*.json")}
    keys = {name: str(uuid.uuid4()) for name in manifests}
    position = feed_position()
    names = ("generic-job", "mx-job", "di-job", "training-job")
    jobs = {name: submit(manifest_of(manifests[name]), keys[name]) for name in names}

    watched: list[str] = []
    for event in watch(jobs["training-job"].name, position):
        watched.append(event.object_.status.phase)
        if event.object_.status.phase in ENDED:
            break

    ended = {name: follow(job.name) for name, job in jobs.items()}
    generic = jobs["generic-job"].name
    replicas = list_job_replicas.sync(NAMESPACE, generic, client=client)
    assert isinstance(replicas, ReplicaPage), replicas
    history = list_job_history.sync(NAMESPACE, generic, client=client)
    assert isinstance(history, HistoryPage), history
    problem = errors_of(manifest_of(manifests["invalid"]))
    return {
        "jobs": {job.kind: str(job.uid) for job in jobs.values()},
        "phases": {status.kind: status.status.phase for status in ended.values()},
        "watched": watched,
        "replicas": [f"{replica.name} {replica.phase} {replica.exit_code}" for replica in replicas.items],
        "log": read_job_log.sync(NAMESPACE, generic, client=client, task="worker", rank=0),
        "history": [f"{entry.phase} {entry.reason}" for entry in history.items],
        "problem": {"code": problem.code, "pointers": [error.pointer for error in problem.errors or []]},
        "replayed": str(submit_again(manifest_of(manifests["generic-job"]), keys["generic-job"]).uid),
        "pages": [[job.name for job in page] for page in pages(selector)],
        "samples": cache_samples(manifests["sample-set"], manifests["sample-job"]),
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
