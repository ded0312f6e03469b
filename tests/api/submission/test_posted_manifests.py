"""The manifest as it was posted, for all kinds of the registry: after a submission, and after each sort of edit."""

import json
from typing import Any

import pytest
import yaml

from app.domain.kinds.base import JOBS
from app.domain.vocabulary import JobPhase
from tests.support.gateways.gateway import Gateway, jobs_path
from tests.support.kinds.every_kind import EXAMPLES, Collection, list_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

YAML = {"Content-Type": "application/yaml"}
LABELS = {"metadata": {"labels": {"team": "vision"}}}


async def posted(of: Collection, name: str = "one") -> Any:
    answer = await of.get(name, "posted-manifest")
    assert answer.status_code == 200, answer.text
    return answer.json()["manifest"]


async def execute(gateway: Gateway, statement: str) -> None:
    async with gateway.db.begin() as connection:
        await connection.execute(statement)


def text(document: Any) -> str:
    """Return the document as text, which also shows the order of its fields."""
    return json.dumps(document)


async def test_the_posted_document_is_served_without_defaults(of: Collection) -> None:
    created = await of.submit(team="vision")
    by_name = await of.get("one", "posted-manifest")
    by_uid = await of.gateway.client.get(of.by_uid(created["uid"], "posted-manifest"))
    assert by_name.content == by_uid.content
    assert text(by_name.json()["manifest"]) == text(of.manifest(team="vision"))
    assert (await of.get("none", "posted-manifest")).status_code == 404


async def test_what_jobgate_ignores_and_generates_is_part_of_it(of: Collection) -> None:
    document = of.manifest() | {"status": {"phase": "Running", "of": [1, 1.5, True, None]}}
    document["metadata"] = {"uid": "u", "generateName": "run-", "annotations": {}, "creationTimestamp": None}
    answer = await of.gateway.client.post(
        of.path(), content=yaml.safe_dump(document, sort_keys=False) + "# a comment\n", headers=YAML
    )
    assert answer.status_code == 201, answer.text
    assert text(await posted(of, answer.json()["name"])) == text(document)


async def test_each_manifest_of_a_list_is_kept(of: Collection) -> None:
    for query in ("", "/batch"):
        documents = [of.manifest(f"a{len(query)}"), of.manifest(f"b{len(query)}", team="vision")]
        answer = await of.gateway.client.post(of.path() + query, json=list_of(*documents))
        assert answer.status_code in (200, 201), answer.text
        assert [await posted(of, document["metadata"]["name"]) for document in documents] == documents


async def test_put_replaces_it_and_patch_merges_into_it(of: Collection) -> None:
    await of.submit(team="speech", tier="test")
    patched = await of.patch({"metadata": {"labels": {"team": "vision", "tier": None}}})
    assert patched.status_code == 202, patched.text
    assert text(await posted(of)) == text(of.manifest(team="vision"))
    document = {**of.manifest(), "metadata": {"labels": {"a": "b"}}}  # without a name
    replaced = await of.gateway.client.put(of.path("one"), json=document)
    assert replaced.status_code == 202, replaced.text
    assert text(await posted(of)) == text(document)


async def test_an_edit_that_is_refused_or_changes_nothing_leaves_it(of: Collection) -> None:
    await of.submit(team="vision")
    whole = (await of.get("one")).json()
    same = await of.gateway.client.put(of.path("one"), json=whole)  # the defaults are spelled out
    assert same.status_code in (200, 202), same.text
    assert (await of.patch({"spec": {"unknown": 1}})).status_code == 422
    assert text(await posted(of)) == text(of.manifest(team="vision"))


@pytest.mark.parametrize("difference", ["NULL", """'{"of": 1, "difference": {}}'"""], ids=["patch", "PUT"])
async def test_it_is_not_known_after_an_edit_by_an_earlier_version(of: Collection, difference: str) -> None:
    table = "jobs" if of.resource == JOBS else "samples"
    created = await of.submit()
    edit = f"""UPDATE {table} SET manifest = jsonb_set(manifest::jsonb, '{{metadata,labels}}', '{{"a": "b"}}'),
               posted = {difference} WHERE uid = '{created["uid"]}'"""
    await execute(of.gateway, edit)
    assert await posted(of) is None
    assert (await of.patch(LABELS)).status_code == 202
    assert await posted(of) is None
    document = of.manifest(team="speech")
    assert (await of.gateway.client.put(of.path("one"), json=document)).status_code == 202
    assert text(await posted(of)) == text(document)


async def test_it_is_not_known_of_an_object_that_an_earlier_version_stored(of: Collection) -> None:
    table = "jobs" if of.resource == JOBS else "samples"
    created = await of.submit()
    await execute(of.gateway, f"UPDATE {table} SET posted_manifest = NULL WHERE uid = '{created['uid']}'")
    assert await posted(of) is None
    assert (await of.patch(LABELS)).status_code == 202
    assert await posted(of) is None


def elastic() -> dict[str, Any]:
    trainer = {"min-instance": 1, "max-instance": 4, "entrypoint": "python train.py"}
    return {
        "apiVersion": "paddlepaddle.org/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "one"},
        "spec": {"image": "paddle", "fault_tolerant": True, "trainer": trainer},
    }


async def test_a_scaled_job_keeps_it(shared_gateway: Gateway) -> None:
    of = Collection(shared_gateway, "TrainingJob", elastic())
    await of.submit()
    for size in (3, 2):
        scaled = await of.gateway.client.post(of.path("one", "scale"), json={"replicas": size})
        assert scaled.status_code == 202, scaled.text
        assert text(await posted(of)) == text(elastic())


async def test_a_paused_job_keeps_it(shared_gateway: Gateway) -> None:
    (document,) = yaml.safe_load_all((EXAMPLES / "generic-job/pausable.yaml").read_text(encoding="utf-8"))
    of = Collection(shared_gateway, "GenericJob", document)
    await of.submit()
    paused = await of.gateway.client.post(of.path("one", "pause"))
    assert paused.status_code == 202, paused.text
    assert text(await posted(of)) == text(of.manifest())


async def test_a_retry_has_that_of_the_job_with_the_new_name(shared_gateway: Gateway) -> None:
    of = Collection(shared_gateway, "GenericJob")
    created = await of.submit(team="vision")
    await shared_gateway.conclude(created["uid"], {"phase": JobPhase.FAILED, "observed_generation": 1})
    path = jobs_path(of.namespace, "one", "retry")
    named = await of.gateway.client.post(path, json={"name": "two"})
    assert named.status_code == 201, named.text
    expected = of.manifest(team="vision")
    expected["metadata"] = {"labels": {"team": "vision"}, "name": "two"}
    assert text(await posted(of, "two")) == text(expected)
    generated = (await of.gateway.client.post(path)).json()["name"]
    assert (await posted(of, generated))["metadata"] == {"labels": {"team": "vision"}, "generateName": "one-"}
    await execute(shared_gateway, f"UPDATE jobs SET posted_manifest = NULL WHERE uid = '{created['uid']}'")
    unknown = (await of.gateway.client.post(path)).json()
    assert (await posted(of, unknown["name"]))["spec"] == unknown["spec"]
