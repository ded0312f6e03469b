"""The pod policy over HTTP: submissions, dry runs, lists of jobs, edits and retries of every kind."""

import copy
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from app.domain.policy import JOBGATE_CONTROLS, Level, PodPolicy
from app.domain.vocabulary import JobPhase
from tests.api.resources.test_kinds_in_use import posted
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest, running_gateway

ALLOW: Final = "jobgate.dev/pod-policy-allow"
ANNOTATION: Final = "/metadata/annotations/jobgate.dev~1pod-policy-allow"
PATCH: Final = {"Content-Type": "application/merge-patch+json"}
KINDS: Final = {
    "generic_job": ("tutorial", "/spec/replicaSpecs/0/template/spec"),
    "mx_job": ("shipped_local", "/spec/replicaSpecs/0/template/spec"),
    "di_job": ("normal", "/spec/tasks/0/template/spec"),
}
EVERYTHING: Final = PodPolicy(level=Level.PRIVILEGED, allow=frozenset(JOBGATE_CONTROLS))


@pytest_asyncio.fixture
async def lenient(database_url: str) -> AsyncIterator[Gateway]:
    """Run a gateway on the same database that accepts every pod, as if the policy were tightened later."""
    async with running_gateway(database_url, policy=EVERYTHING) as running:
        yield running


def on_host(name: str = "hello", allow: str | None = None) -> dict[str, Any]:
    """Return a GenericJob whose pods share the node's network."""
    document: dict[str, Any] = manifest(name)
    document["spec"]["replicaSpecs"][0]["template"]["spec"]["hostNetwork"] = True
    if allow is not None:
        document["metadata"]["annotations"] = {ALLOW: allow}
    return document


def pod_spec(document: dict[str, Any], pointer: str) -> dict[str, Any]:
    found: Any = document
    for step in pointer.split("/")[1:]:
        found = found[int(step)] if isinstance(found, list) else found[step]
    assert isinstance(found, dict)
    return found


async def refusal(gateway: Gateway, document: Any, status: int = 403, **given: Any) -> list[tuple[str, str]]:
    """Check that a submission and its dry run have the same errors and store nothing. Return their (pointer, code)."""
    answers = [await gateway.client.post(jobs_path() + query, json=document, **given) for query in ("?dryRun=All", "")]
    assert [answer.status_code for answer in answers] == [status, status], answers[0].text
    problems = [answer.json() for answer in answers]
    assert problems[0]["errors"] == problems[1]["errors"]
    assert all(error["accepted"] for error in problems[0]["errors"])
    assert (await gateway.client.get(jobs_path())).json()["items"] == []
    return [(error["pointer"], error["code"]) for error in problems[0]["errors"]]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_policy_applies_to_every_kind_with_templates(kind: str, gateway: Gateway) -> None:
    case, at = KINDS[kind]
    document = posted(kind, case)
    spec = pod_spec(document, at)
    spec["hostPID"] = True
    spec["serviceAccountName"] = "jobgate-controller"
    spec["volumes"] = [*spec.get("volumes", []), {"name": "node", "hostPath": {"path": "/"}}]
    last = len(spec["volumes"]) - 1
    assert await refusal(gateway, document) == [
        (f"{at}/hostPID", "HostPID"),
        (f"{at}/volumes/{last}/hostPath", "HostPathVolumes"),
        (f"{at}/serviceAccountName", "ServiceAccount"),
    ]


async def test_errors_point_to_the_fields_of_a_training_job(gateway: Gateway) -> None:
    document = posted("training_job", "fit_a_line")
    document["spec"] |= {"host_network": True, "volumes": [{"name": "node", "hostPath": {"path": "/"}}]}
    assert await refusal(gateway, document) == [
        ("/spec/host_network", "HostNetwork"),
        ("/spec/volumes/0/hostPath", "HostPathVolumes"),
    ]


async def test_errors_point_to_the_volumes_of_a_di_job(gateway: Gateway) -> None:
    document = posted("di_job", "normal")
    document["spec"]["volumes"] = [{"name": "ours", "emptyDir": {}}, {"name": "node", "hostPath": {"path": "/"}}]
    assert await refusal(gateway, document) == [("/spec/volumes/1/hostPath", "HostPathVolumes")]


async def test_errors_point_to_an_older_spelling(gateway: Gateway) -> None:
    document = on_host()
    document["spec"]["replicasSpec"] = document["spec"].pop("replicaSpecs")
    at = "/spec/replicasSpec/0/template/spec/hostNetwork"
    assert await refusal(gateway, document) == [(at, "HostNetwork")]


async def test_errors_of_all_jobs_are_reported_and_none_is_stored(gateway: Gateway) -> None:
    at = "spec/replicaSpecs/0/template/spec/hostNetwork"
    items = [manifest("one"), on_host("two"), on_host("three")]
    together = {"kind": "List", "apiVersion": "v1", "items": items}
    assert await refusal(gateway, together) == [(f"/items/1/{at}", "HostNetwork"), (f"/items/2/{at}", "HostNetwork")]
    items.append(manifest("four", replicas=-1))
    assert [code for _, code in await refusal(gateway, together, 422)][:2] == ["HostNetwork", "HostNetwork"]
    answer = await gateway.client.post(f"{jobs_path()}/batch", json=together)
    assert [item["status"] for item in answer.json()["items"]] == [201, 403, 403, 422]


async def test_only_an_admin_of_all_namespaces_may_exempt_a_job(closed_gateway: Gateway) -> None:
    admin = await closed_gateway.token("admin", "*")
    client = closed_gateway.client
    for role in ("submitter", "admin"):
        local = await closed_gateway.token(role, NAMESPACE)
        refused = await client.post(jobs_path(), json=on_host(allow="HostNetwork"), headers=local)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (403, ANNOTATION)
        error = refused.json()["errors"][0]
        assert (error["code"], error["accepted"].count("admin of all namespaces")) == ("AdminOnly", 1)
        assert "role" not in refused.json()["detail"], "an admin of a namespace has the role"
    without = await client.post(jobs_path(), json=on_host(), headers=admin)
    assert (without.status_code, without.json()["errors"][0]["code"]) == (403, "HostNetwork")
    other = await client.post(jobs_path(), json=on_host(allow="HostPID"), headers=admin)
    assert (other.status_code, other.json()["errors"][0]["code"]) == (403, "HostNetwork")
    made = await client.post(jobs_path(), json=on_host(allow="HostNetwork, HostPID"), headers=admin)
    assert made.status_code == 201, made.text
    unknown = await client.post(jobs_path(), json=on_host("other", allow="Everything"), headers=admin)
    assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (422, ANNOTATION)


async def test_edits_keep_an_exemption_and_only_admins_add_one(closed_gateway: Gateway) -> None:
    submitter = await closed_gateway.token("submitter", NAMESPACE)
    admin = await closed_gateway.token("admin", "*")
    client, one = closed_gateway.client, jobs_path(NAMESPACE, "hello")
    job = (await client.post(jobs_path(), json=on_host(allow="HostNetwork"), headers=admin)).json()
    labelled = await client.patch(one, json={"metadata": {"labels": {"a": "b"}}}, headers=submitter | PATCH)
    assert labelled.status_code == 202, labelled.text
    wider = {"metadata": {"annotations": {ALLOW: "HostNetwork,HostPID"}}}
    refused = await client.patch(one, json=wider, headers=submitter | PATCH)
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (403, "AdminOnly")
    assert (await client.patch(one, json=wider, headers=admin | PATCH)).status_code == 202
    await closed_gateway.conclude(job["uid"], {"phase": JobPhase.FAILED})
    assert (await client.post(f"{one}/retry", headers=submitter)).status_code == 403
    assert (await client.post(f"{one}/retry", headers=admin)).status_code == 201


async def test_a_job_accepted_before_the_policy_was_tightened_can_be_edited(gateway: Gateway, lenient: Gateway) -> None:
    """It can also be paused and resumed. The policy applies to new violations and to a retry."""
    job = (await lenient.client.post(jobs_path(), json=on_host())).json()
    one = jobs_path(NAMESPACE, "hello")
    labelled = await gateway.client.patch(one, json={"metadata": {"labels": {"a": "b"}}}, headers=PATCH)
    assert labelled.status_code == 202, labelled.text
    assert (await gateway.client.put(one, json=on_host())).status_code == 202
    worse: dict[str, Any] = copy.deepcopy(on_host())
    worse["spec"]["replicaSpecs"][0]["template"]["spec"]["hostPID"] = True
    refused = await gateway.client.put(one, json=worse)
    assert (refused.status_code, [error["code"] for error in refused.json()["errors"]]) == (403, ["HostPID"])
    assert (await gateway.client.post(f"{one}/pause")).status_code == 202
    assert (await gateway.client.post(f"{one}/resume")).status_code == 202
    await gateway.conclude(job["uid"], {"phase": JobPhase.FAILED})
    retried = await gateway.client.post(f"{one}/retry")
    assert (retried.status_code, retried.json()["errors"][0]["code"]) == (403, "HostNetwork")


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        (PodPolicy(), 403),
        (PodPolicy(allow=frozenset({"HostNetwork"})), 200),
        (PodPolicy(level=Level.PRIVILEGED), 200),
        (PodPolicy(level=Level.RESTRICTED, allow=frozenset({"HostNetwork"})), 403),
    ],
)
async def test_the_settings_of_the_policy_apply(policy: PodPolicy, status: int, database_url: str) -> None:
    async with running_gateway(database_url, policy=policy) as gateway:
        answer = await gateway.client.post(f"{jobs_path()}?dryRun=All", json=on_host())
        assert answer.status_code == status, answer.text
