"""Uses the client that openapi-generator generates: submits a job of each kind, follows it, and reads its results.

Usage: JOBGATE_URL=http://127.0.0.1:8080 python with_openapi_generator.py MANIFESTS LABEL_SELECTOR
"""

import json
import os
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jobgate_openapi import (
    ApiClient,
    ApiException,
    Configuration,
    Job,
    JobManifest,
    JobPage,
    JobPhase,
    JobsApi,
    JobStatus,
    LogsApi,
    Problem,
    SampleJobManifest,
    SamplejobsApi,
    SampleSetManifest,
    SamplesetsApi,
    WatchApi,
    WatchEvent,
)
from jobgate_openapi.exceptions import UnprocessableEntityException

NAMESPACE = os.environ.get("JOBGATE_NAMESPACE", "default")
ENDED = {JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.TIMEDOUT, JobPhase.CANCELLED}

client = ApiClient(
    Configuration(
        host=os.environ["JOBGATE_URL"],
        access_token=os.environ.get("JOBGATE_TOKEN", "none"),  # `jobgate dev` needs no token
    )
)
jobs_api = JobsApi(client)


def submit(manifest: JobManifest, key: str) -> Job:
    return jobs_api.submit_job(NAMESPACE, manifest, idempotency_key=key)


def submit_again(manifest: JobManifest, key: str) -> Job:
    """Repeat a request, for example after a timeout. The key prevents a second job."""
    answer = jobs_api.submit_job_with_http_info(NAMESPACE, manifest, idempotency_key=key)
    assert (answer.headers or {})["idempotency-replayed"] == "true"
    return answer.data


def follow(name: str) -> JobStatus:
    """Wait until the job has ended. Each request returns at the next change, or with 304 after 30 seconds."""
    etag = None
    while True:
        try:
            answer = jobs_api.get_job_status_with_http_info(NAMESPACE, name, if_none_match=etag, prefer="wait=30")
        except ApiException as error:
            if error.status != 304:
                raise
            continue
        if answer.data.status.phase in ENDED:
            return answer.data
        etag = (answer.headers or {})["etag"]  # a dict: names are in lower case, as the gateway sends them


def watch(name: str, position: str) -> Iterator[WatchEvent]:
    """Yield the changes of a job after a position of the feed. The SDK itself does not decode server-sent events."""
    answer = WatchApi(client).watch_job_without_preload_content(NAMESPACE, name, last_event_id=position)
    assert answer.status == 200, answer.data
    event = ""
    for line in answer:
        field, _, value = line.decode().rstrip("\n").partition(": ")
        if field == "event":
            event = value
        elif field == "data" and event == "job":
            change = WatchEvent.from_json(value)
            assert change is not None
            yield change


def errors_of(manifest: JobManifest) -> Problem:
    """Submit a manifest that is not valid, and return the errors of the answer."""
    try:
        job = jobs_api.submit_job(NAMESPACE, manifest)
    except UnprocessableEntityException as refused:
        problem = refused.data
    else:
        raise AssertionError(f"the manifest of {job.name} is valid")
    assert isinstance(problem, Problem)
    for error in problem.errors or []:
        print(f"{error.pointer}: {error.detail}", file=sys.stderr)
    return problem


def pages(selector: str) -> Iterator[list[Job]]:
    token = None
    while True:
        answer = jobs_api.list_namespace_jobs(NAMESPACE, label_selector=selector, page_size=2, page_token=token)
        page = answer.actual_instance
        assert isinstance(page, JobPage)
        yield page.items
        token = page.next_page_token
        if token is None:
            return


def feed_position() -> str:
    """Return the current position of the feed. A watch from this position misses no later change."""
    answer = jobs_api.list_namespace_jobs_with_http_info(NAMESPACE, page_size=1)
    return str((answer.headers or {})["jobgate-feed-position"])


def cache_samples(sample_set: dict[str, Any], sample_job: dict[str, Any]) -> dict[str, str]:
    """Submit a SampleSet and a SampleJob, then delete both. The answer to a deletion is 202 while objects remain."""
    set_manifest, job_manifest = SampleSetManifest.from_dict(sample_set), SampleJobManifest.from_dict(sample_job)
    assert set_manifest is not None
    assert job_manifest is not None
    sets_api, sample_jobs_api = SamplesetsApi(client), SamplejobsApi(client)
    created_set = sets_api.submit_sample_set(NAMESPACE, set_manifest)
    created_job = sample_jobs_api.submit_sample_job(NAMESPACE, job_manifest)
    while sample_jobs_api.delete_sample_job_with_http_info(NAMESPACE, created_job.name).status_code == 202:
        time.sleep(0.5)
    while sets_api.delete_sample_set_with_http_info(NAMESPACE, created_set.name).status_code == 202:
        time.sleep(0.5)
    return {"SampleSet": str(created_set.uid), "SampleJob": str(created_job.uid)}


def main(directory: Path, selector: str) -> dict[str, Any]:
    documents = {path.stem: json.loads(path.read_text()) for path in directory.glob("*.json")}
    keys = {name: str(uuid.uuid4()) for name in documents}
    position = feed_position()
    names = ("generic-job", "mx-job", "di-job", "training-job")
    jobs = {name: submit(JobManifest.from_dict(documents[name]), keys[name]) for name in names}

    watched: list[str] = []
    for event in watch(jobs["training-job"].name, position):
        watched.append(event.object.status.phase.value)
        if event.object.status.phase in ENDED:
            break

    ended = {name: follow(job.name) for name, job in jobs.items()}
    generic = jobs["generic-job"].name
    replicas = jobs_api.list_job_replicas(NAMESPACE, generic).items
    history = jobs_api.list_job_history(NAMESPACE, generic).items
    problem = errors_of(JobManifest.from_dict(documents["invalid"]))
    replayed = submit_again(JobManifest.from_dict(documents["generic-job"]), keys["generic-job"])
    return {
        "jobs": {job.kind.value: str(job.uid) for job in jobs.values()},
        "phases": {status.kind.value: status.status.phase.value for status in ended.values()},
        "watched": watched,
        "replicas": [f"{replica.name} {replica.phase.value} {replica.exit_code}" for replica in replicas],
        "log": LogsApi(client).read_job_log(NAMESPACE, generic, task="worker", rank=0),
        "history": [f"{entry.phase.value} {entry.reason}" for entry in history],
        "problem": {"code": problem.code.value, "pointers": [error.pointer for error in problem.errors or []]},
        "replayed": str(replayed.uid),
        "pages": [[job.name for job in page] for page in pages(selector)],
        "samples": cache_samples(documents["sample-set"], documents["sample-job"]),
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
