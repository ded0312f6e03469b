"""Typical uses of particular kinds over HTTP: sizes, generated names, and manifests exported by kubectl."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from app.domain.vocabulary import JobPhase
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path
from tests.support.kinds.di_jobs import di_job, submit

DATA = Path(__file__).parents[2] / "data"
ATARI = jobs_path(NAMESPACE, "atari")
PATCH = {"Content-Type": "application/merge-patch+json"}


def posted(kind: str, case: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DATA / kind / case / "manifest.yaml").read_text(encoding="utf-8"))
    found["metadata"].pop("namespace", None)
    return found


def replicas(job: dict[str, Any]) -> dict[str, int]:
    return {task["name"]: task["replicas"] for task in job["spec"]["tasks"]}


async def test_a_back_off_limit_of_null_stays_null(gateway: Gateway) -> None:
    assert (await submit(gateway, backoffLimit=None))["spec"]["backoffLimit"] is None
    edited = await gateway.client.patch(ATARI, json={"metadata": {"labels": {"a": "b"}}}, headers=PATCH)
    assert (edited.status_code, edited.json()["spec"]["backoffLimit"]) == (202, None)


async def test_a_put_of_the_first_manifest_restores_its_sizes(gateway: Gateway) -> None:
    await submit(gateway)
    await gateway.client.post(f"{ATARI}/scale", json={"task": "collector", "replicas": 5})
    answer = await gateway.client.put(ATARI, json=di_job())
    assert (answer.status_code, replicas(answer.json())) == (202, {"learner": 1, "collector": 2, "evaluator": 1})
    records = (await gateway.client.get(f"{ATARI}/scale-records")).json()["items"]
    assert [(record["fromReplicas"], record["toReplicas"]) for record in records] == [(2, 5), (5, 2)]


async def test_a_retry_has_the_last_sizes_of_the_job(gateway: Gateway) -> None:
    job = await submit(gateway)
    await gateway.client.post(f"{ATARI}/scale", json={"task": "collector", "replicas": 1})
    await gateway.conclude(job["uid"], {"phase": JobPhase.FAILED})
    retried = await gateway.client.post(f"{ATARI}/retry", json={"name": "atari"})
    assert (retried.status_code, replicas(retried.json())["collector"]) == (201, 1)
    made = (await gateway.client.get(f"{ATARI}/manifests")).json()["items"]
    ranks = [document["metadata"]["annotations"]["diengine/rank"] for document in made if document["kind"] == "Pod"]
    assert sorted(ranks) == ["0", "1", "2"], "the ranks of a new job have no gaps"


@pytest.mark.parametrize(("kind", "case"), [("di_job", "normal"), ("mx_job", "shipped_dist")])
async def test_generate_name_works_for_every_kind(kind: str, case: str, gateway: Gateway) -> None:
    manifest = posted(kind, case)
    manifest["metadata"] = {"generateName": "drawn-"}
    names = {(await gateway.client.post(jobs_path(), json=manifest)).json()["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("drawn-") for name in names)


@pytest.mark.parametrize(("kind", "case"), [("di_job", "normal"), ("mx_job", "shipped_dist")])
async def test_objects_exported_by_kubectl_are_accepted(kind: str, case: str, gateway: Gateway) -> None:
    """The manifest has the metadata of `kubectl get -o yaml` and the status of upstream's operator."""
    first = await gateway.client.post(jobs_path(), json=posted(kind, case))
    assert first.status_code == 201, first.text
    job = first.json()
    exported = posted(kind, case)
    exported["metadata"] |= {
        "uid": "u",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "managedFields": [],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    exported["spec"], exported["status"] = job["spec"], job["nativeStatus"]
    again = await gateway.client.put(jobs_path(NAMESPACE, job["name"]), json=exported)
    assert (again.status_code, again.json()["spec"]) == (202, job["spec"]), again.text
    exported["metadata"]["name"] = "copy"
    copy = await gateway.client.post(jobs_path(), json=exported)
    assert (copy.status_code, copy.json()["spec"]) == (201, job["spec"]), copy.text
    assert copy.json()["nativeStatus"]["phase"] in ("", "Pending"), "the status is the new job's own"
