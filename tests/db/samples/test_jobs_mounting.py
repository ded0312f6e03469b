"""Jobs of whatever kind are found by the claim that they mount."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.db.installation.leases import Lease
from app.db.jobs import edits
from app.db.postgres.engine import Database
from app.db.samples import controller as sample_controller
from app.domain.access.actors import Actor
from app.domain.planning import Planner
from app.domain.vocabulary import JobPhase
from tests.db.factories import later, move, new_job, submitted

EXAMPLES = Path(__file__).parents[3] / "examples"
PLANNER = Planner(installation="i")
CLAIM = "imagenet"
TEAM = "team-a"
TOAST_BLOCKS = """
SELECT pg_relation_size(reltoastrelid) / current_setting('block_size')::int FROM pg_class WHERE oid = 'jobs'::regclass
"""


def volume(claim: str = CLAIM) -> dict[str, Any]:
    return {"name": "data", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}


def pods(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "containers" in node or "trainer" in node:  # a TrainingJob has its pods' volumes in its own spec
            yield node
        for value in node.values():
            yield from pods(value)
    elif isinstance(node, list):
        for value in node:
            yield from pods(value)


def mounting(example: str) -> dict[str, Any]:
    """An example's manifest as it is stored, the claim in its last pod."""
    document = yaml.safe_load((EXAMPLES / example).read_text())
    *_, last = pods(document["spec"])
    last["volumes"] = [*last.get("volumes", []), volume()]
    return PLANNER.draft(document, TEAM, lambda: "xxxxx").manifest


@pytest.mark.parametrize(
    "example",
    [
        "generic-job/debug.yaml",
        "generic-job/distributed-training.yaml",
        "training-job/plain-trainers.yaml",
        "training-job/parameter-server.yaml",
        "mx-job/local.yaml",
        "mx-job/kvstore.yaml",
        "di-job/corridor.yaml",
    ],
)
async def test_a_job_is_found_by_the_claim_that_it_mounts(db: Database, example: str) -> None:
    manifest = mounting(example)
    kind = manifest["kind"]
    (uid,) = await submitted(db, new_job("trains", kind=kind, manifest=manifest, names=()))
    (found,) = await sample_controller.jobs_mounting(db, TEAM, CLAIM)
    assert (found.uid, found.name, found.kind, found.phase) == (uid, "trains", kind, JobPhase.QUEUED)
    for claim in ("imagene", "imagenet2", "data", 'x" ? (true) //'):
        assert await sample_controller.jobs_mounting(db, TEAM, claim) == []
    assert await sample_controller.jobs_mounting(db, "team-b", CLAIM) == []


NEARLY = {
    "a word": {"spec": {"persistentVolumeClaim": "x", "claimName": CLAIM}},
    "a name": {"spec": {"volumes": [{"name": CLAIM, "persistentVolumeClaim": {"claimName": "other"}}]}},
    "a text": {"spec": {"args": [f'{{"persistentVolumeClaim":{{"claimName":"{CLAIM}"}}}}']}},
    "an annotation": {"metadata": {"annotations": {"persistentVolumeClaim.claimName": CLAIM}}},
    "nothing": {},
}


@pytest.mark.parametrize("manifest", NEARLY.values(), ids=list(NEARLY))
async def test_a_manifest_that_only_contains_the_name_does_not_mount_the_claim(
    db: Database, manifest: dict[str, Any]
) -> None:
    await submitted(db, new_job(manifest=manifest))
    assert await sample_controller.jobs_mounting(db, TEAM, CLAIM) == []


async def test_a_manifest_that_jsonb_cannot_represent_is_found_too(db: Database) -> None:
    spec = {"volumes": [volume()]}
    uids = await submitted(
        db,
        new_job("nul", manifest={"spec": {**spec, "args": ["a\0b", "\\u0000"]}}, names=()),
        new_job("good", manifest={"spec": spec}, names=(), created_at=later(1)),
    )
    assert [job.uid for job in await sample_controller.jobs_mounting(db, TEAM, CLAIM)] == uids[::-1]


async def test_an_edit_changes_the_claims_that_a_job_mounts(db: Database) -> None:
    (uid,) = await submitted(db, new_job(manifest={"spec": {"volumes": [volume("before")]}}))

    async def edited(*claims: str) -> None:
        manifest = {"spec": {"volumes": [volume(claim) for claim in claims]}}
        await edits.edit(
            db, uid, edits.JobEdit(namespace="team-a", manifest=manifest, labels={}, actor=Actor("me"), at=later(1))
        )

    await edited(CLAIM, "b", CLAIM)
    assert await sample_controller.jobs_mounting(db, TEAM, "before") == []
    for claim in (CLAIM, "b"):
        assert [job.uid for job in await sample_controller.jobs_mounting(db, TEAM, claim)] == [uid]
    await edited()
    assert await sample_controller.jobs_mounting(db, TEAM, CLAIM) == []


async def test_an_ended_job_mounts_the_claim_while_its_replicas_run(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job(manifest={"spec": {"volumes": [volume()]}}))
    await move(db, lease, uid, JobPhase.FAILED, still_running=1)
    (found,) = await sample_controller.jobs_mounting(db, TEAM, CLAIM)
    assert (found.uid, found.phase) == (uid, JobPhase.FAILED)
    await move(db, lease, uid, JobPhase.FAILED, still_running=0)
    assert await sample_controller.jobs_mounting(db, TEAM, CLAIM) == []


async def test_the_search_reads_no_manifest(db: Database) -> None:
    """The time would grow with the manifests of the namespace, until the statement times out."""
    args = [secrets.token_hex(16) for _ in range(10_000)]
    manifest = {"spec": {"volumes": [volume()], "args": args}}
    await submitted(db, *(new_job(f"j{n}", manifest=manifest, names=()) for n in range(8)))
    explained = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + sample_controller._MOUNTING
    async with db.read() as connection:
        (plan,) = await connection.fetchval(explained, TEAM, CLAIM, ["Failed"], 100)
        blocks = await connection.fetchval(TOAST_BLOCKS)
    assert plan["Plan"]["Actual Rows"] == 8
    assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] < blocks / 4


async def test_only_live_jobs_are_returned_the_newest_first_up_to_the_limit(db: Database, lease: Lease) -> None:
    manifest = {"spec": {"volumes": [volume()]}}
    jobs = [new_job(f"j{n}", manifest=manifest, names=(), created_at=later(n)) for n in range(5)]
    uids = await submitted(db, *jobs)
    await move(db, lease, uids[1], JobPhase.RUNNING)
    for uid, phase in ((uids[0], JobPhase.SUCCEEDED), (uids[2], JobPhase.FAILED), (uids[3], JobPhase.CANCELLED)):
        await move(db, lease, uid, phase)
    found = await sample_controller.jobs_mounting(db, TEAM, CLAIM)
    assert [(job.name, job.phase == JobPhase.RUNNING) for job in found] == [("j4", False), ("j1", True)]
    assert len(await sample_controller.jobs_mounting(db, TEAM, CLAIM, limit=1)) == 1
