"""Jobs are found, listed in order without gaps or repeats, and changed with a word about who wanted it."""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from app.db.installation.leases import Lease
from app.db.jobs import attempts, controller, edits, reads, replicas, scale_records
from app.db.jobs.edits import JobEdit
from app.db.jobs.rows import STORED_JOBS
from app.db.lists import pages
from app.db.objects import resources
from app.db.objects import resources as changed_things
from app.db.objects.resources import RowKey
from app.db.postgres.engine import Database
from app.db.postgres.queries import Cursor
from app.db.reservations.names import request_removal_of_previous
from app.domain.access.actors import Actor
from app.domain.access.namespaces import NamespaceSet
from app.domain.errors import Conflict, DomainError, NotFound, PreconditionFailed
from app.domain.kinds.base import JOBS
from app.domain.kubernetes.selectors import parse_selector
from app.domain.listing import Criteria
from app.domain.plan import Rank
from app.domain.reservations.name_ranges import NameRange
from app.domain.resize import ScaleChange
from app.domain.status.records import Attempt, Condition, JobStatus
from app.domain.vocabulary import ConditionType, JobPhase, Outcome
from tests.db.factories import NOW, decision, later, move, new_job, replica, stored, submitted


async def test_a_job_is_read_as_it_was_submitted(db: Database) -> None:
    parent = uuid4()
    job = new_job(retry_of=parent)
    await submitted(db, job)
    row = await resources.get(db, STORED_JOBS, job.uid)
    assert row is not None
    assert row == job.row
    assert (row.retry_of, row.created_by, row.version, row.generation, row.has_ended) == (parent, "alice", 1, 1, False)
    assert await resources.get(db, STORED_JOBS, uuid4()) is None


async def test_a_name_finds_the_live_job_or_else_the_newest(db: Database, lease: Lease) -> None:
    old, new = new_job(created_at=later(9)), new_job(created_at=later(5))
    await submitted(db, old)
    await move(db, lease, old.uid, JobPhase.FAILED)
    await submitted(db, new)
    for expected in (new.uid, old.uid):
        found = await resources.find(db, STORED_JOBS, "team-a", "train")
        assert found is not None
        assert found.uid == expected
        keys: list[RowKey] = [("team-a", "train"), expected, ("team-b", "train"), uuid4(), ("team-a", "other")]
        versions = await resources.versions(db, STORED_JOBS, keys)
        assert {key: version[:2] for key, version in versions.items()} == dict.fromkeys(
            keys[:2], (expected, found.version)
        )
        if not found.has_ended:
            await move(db, lease, new.uid, JobPhase.SUCCEEDED)
    assert await resources.find(db, STORED_JOBS, "team-b", "train") is None


async def test_the_whole_job_has_conditions_replicas_and_attempts(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job())
    condition = Condition(
        type=ConditionType.RUNNING,
        status="True",
        reason="R",
        message="m",
        last_transition_at=NOW,
        observed_generation=1,
    )
    status = JobStatus(phase=JobPhase.RUNNING, conditions=(condition,), started_at=NOW)
    ended = Attempt(number=1, outcome=Outcome.FAILED, exit_code=3)
    key = Rank("worker", 10)
    workers = [replica("worker", 10, Attempt(number=2)), replica("worker", 9)]
    done = decision(status, changed=workers, ended=[(key, ended)])
    await controller.persist(db, lease, [(await stored(db, uid)).write(done, pod_names={key: "pod"})])
    found = await reads.whole(db, uid)
    assert found is not None
    assert found.row.status == status
    assert [(one.replica, one.pod_name) for one in found.replicas] == [(workers[1], None), (workers[0], "pod")]
    assert found.attempts == [("worker", 10, ended)]
    assert await replicas.of(db, uid) == found.replicas
    assert (await attempts.of_many(db, [uid]))[uid] == found.attempts
    assert await reads.whole(db, uuid4()) is None


async def read_list_items(db: Database, where: Criteria) -> set[str]:
    return {row.name for row in (await pages.page(db, STORED_JOBS, where, limit=100)).rows}


async def test_pages_follow_each_other_without_gap_or_repeat(db: Database) -> None:
    uids = await submitted(db, *(new_job(f"job-{n}", names=(), created_at=later(n // 4)) for n in range(10)))
    await edits.request_deletion(db, uids[0], actor=Actor("a"), at=NOW)
    seen: list[UUID] = []
    cursor: Cursor | None = None
    for _ in range(5):
        page = await pages.page(db, STORED_JOBS, Criteria(), after=cursor, limit=2)
        seen += [row.uid for row in page.rows]
        await submitted(db, new_job(f"newer-{len(seen)}", names=(), created_at=later(100)))
        cursor = page.next
        if cursor is None:
            break
    assert cursor is None
    assert sorted(seen) == sorted(uids[1:])
    assert seen[0] in uids[8:]


async def test_filters(db: Database, lease: Lease) -> None:
    prod = {"env": "prod", "tier/x": "web"}
    made = (
        new_job("alpha", created_at=later(1), labels=prod),
        new_job("beta", created_at=later(2), labels={"env": "dev"}, kind="MxJob"),
        new_job("alphabet", created_at=later(3), labels={}, namespace="team-b"),
        new_job("deleted", created_at=later(4)),
        new_job("hidden", created_at=later(5), namespace="kube-system"),
    )
    await submitted(db, *made)
    await move(db, lease, made[1].uid, JobPhase.FAILED, finished_at=later(50))
    await edits.request_deletion(db, made[3].uid, actor=Actor("a"), at=NOW)
    cases = [
        (Criteria(), {"alpha", "beta", "alphabet"}),
        (Criteria(deleted=True), {"alpha", "beta", "alphabet", "deleted"}),
        (Criteria(namespaces=NamespaceSet.of("team-b")), {"alphabet"}),
        (Criteria(namespaces=NamespaceSet.of("team-b", "team-a")), {"alpha", "beta", "alphabet"}),
        (Criteria(namespaces=NamespaceSet.of()), set()),
        (Criteria(namespaces=NamespaceSet(never=frozenset({"team-b"}))), {"alpha", "beta"}),
        (Criteria(phases=[JobPhase.FAILED, JobPhase.RUNNING]), {"beta"}),
        (Criteria(kinds=["MxJob"]), {"beta"}),
        (Criteria(search="et"), {"beta", "alphabet"}),
        (Criteria(search="%"), set()),
        (Criteria(created_after=later(2)), {"beta", "alphabet"}),
        (Criteria(created_before=later(2)), {"alpha"}),
        (Criteria(finished_after=later(50)), {"beta"}),
        (Criteria(finished_before=later(50)), set()),
        (Criteria(uids=[made[0].uid, made[3].uid, uuid4()]), {"alpha", "deleted"}),
        (Criteria(namespaces=NamespaceSet.of("team-b"), uids=[made[0].uid]), set()),
    ]
    things = await changed_things.read_list_items(db, JOBS, [job.uid for job in made])
    for where, expected in cases:
        assert await read_list_items(db, where) == expected, where
        criteria = where
        assert {thing.name for thing in things.values() if criteria.matches(thing)} == expected, where


@pytest.mark.parametrize(
    "selector",
    [
        "env=prod",
        "env!=prod",
        "env",
        "!env",
        "env in (dev,prod)",
        "env notin (dev)",
        "tier/x=web,env",
        "it's=x",
        "$1={}",
    ],
)
async def test_the_database_selects_as_the_domain_does(db: Database, selector: str) -> None:
    labels = [{"env": "prod", "tier/x": "web"}, {"env": "dev"}, {}, {"env": ""}]
    await submitted(db, *(new_job(f"job-{n}", names=(), labels=one) for n, one in enumerate(labels)))
    try:
        requirements = parse_selector(selector)
    except Exception:  # noqa: BLE001  what the parser refuses never comes here
        return
    expected = {f"job-{n}" for n, one in enumerate(labels) if all(r.matches(one) for r in requirements)}
    assert await read_list_items(db, Criteria(labels=requirements)) == expected


def edit(**changes: object) -> JobEdit:
    base = JobEdit(namespace="team-a", manifest={"spec": 2}, labels={"b": "c"}, actor=Actor("bob"), at=later(5))
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        ({}, 1),
        ({"metadata": {"labels": {"b": "c"}}}, 1),
        ({"spec": 2}, 2),
        ({"spec": 2, "metadata": {"labels": {"b": "c"}}}, 2),
        ({"assigned": {"sizes": {"worker": 3}}}, 2),
    ],
)
async def test_the_generation_counts_changes_of_everything_but_metadata(
    db: Database, change: dict[str, object], generation: int
) -> None:
    manifest = {"spec": 1, "assigned": {"sizes": {"worker": 2}}, "metadata": {"labels": {"a": "b"}}}
    (uid,) = await submitted(db, new_job(manifest=manifest))
    row = await edits.edit(db, uid, edit(manifest=manifest | change))
    assert (row.generation, row.version, (await stored(db, uid)).intent_version) == (generation, 2, 2)


async def test_an_edit_increases_generation_and_version_and_records_the_actor(db: Database) -> None:
    (uid,) = await submitted(db, new_job())
    scale = ScaleChange(task="worker", from_replicas=2, to_replicas=5, reason="more")
    row = await edits.edit(db, uid, edit(expected_version=1, scales=[scale, replace(scale, task="ps")], message="m"))
    assert (row.generation, row.version, row.manifest, row.labels) == (2, 2, {"spec": 2}, {"b": "c"})
    assert row == await resources.get(db, STORED_JOBS, uid)
    line = (await resources.history(db, STORED_JOBS, uid, after_seq=1, limit=10))[0]
    assert (line.seq, line.entry.reason, line.entry.actor.name, line.entry.message) == (2, "Edited", "bob", "m")
    again = await edits.edit(db, uid, edit(manifest={"spec": 3}, expected_intent_version=2, scales=[scale]))
    assert again.generation == 3
    records = await scale_records.page(db, uid, limit=10)
    assert [(one.seq, one.task, one.to_replicas, one.actor) for one in records] == [
        (1, "worker", 5, "bob"),
        (2, "ps", 5, "bob"),
        (3, "worker", 5, "bob"),
    ]
    assert (await stored(db, uid)).intent_is_new


@pytest.mark.parametrize(
    ("phase", "changes", "refusal", "code"),
    [
        (JobPhase.RUNNING, {"expected_version": 1}, PreconditionFailed, "PreconditionFailed"),
        (JobPhase.RUNNING, {"expected_intent_version": 2}, PreconditionFailed, "PreconditionFailed"),
        (JobPhase.FAILED, {}, Conflict, "AlreadyFinished"),
    ],
)
async def test_a_refused_edit_changes_nothing(
    db: Database, lease: Lease, phase: JobPhase, changes: dict[str, int], refusal: type[DomainError], code: str
) -> None:
    (uid,) = await submitted(db, new_job())
    await move(db, lease, uid, phase)
    before = await resources.get(db, STORED_JOBS, uid)
    with pytest.raises(refusal) as refused:
        await edits.edit(db, uid, edit(**changes))
    assert refused.value.code == code
    assert await resources.get(db, STORED_JOBS, uid) == before


async def test_unknown_jobs_are_not_found(db: Database) -> None:
    with pytest.raises(NotFound):
        await edits.edit(db, uuid4(), edit())
    with pytest.raises(NotFound):
        await edits.request_cancel(db, uuid4(), actor=Actor("a"), at=NOW)
    with pytest.raises(NotFound):
        await edits.request_deletion(db, uuid4(), actor=Actor("a"), at=NOW)


async def test_only_the_first_cancel_of_a_live_job_changes_it(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job())
    row = await edits.request_cancel(db, uid, actor=Actor("bob"), at=later(1), reason="enough")
    assert row.cancel_requested_at == later(1)
    assert await edits.request_cancel(db, uid, actor=Actor("eve"), at=later(2)) == row
    intent = (await stored(db, uid)).intent
    assert (intent.cancel, intent.cancel_actor, intent.cancel_reason, intent.remove) == (
        True,
        Actor("bob"),
        "enough",
        False,
    )
    (other,) = await submitted(db, new_job("other"))
    await move(db, lease, other, JobPhase.SUCCEEDED)
    assert (await edits.request_cancel(db, other, actor=Actor("bob"), at=NOW)).cancel_requested_at is None


async def test_delete_cancels_removes_and_hides(db: Database) -> None:
    (uid,) = await submitted(db, new_job())
    row = await edits.request_deletion(db, uid, actor=Actor("bob"), at=later(1))
    assert (row.deleted_at, row.remove_requested_at) == (later(1), later(1))
    assert await edits.request_deletion(db, uid, actor=Actor("eve"), at=later(2)) == row
    with pytest.raises(Conflict) as refused:
        await edits.edit(db, uid, edit())
    assert refused.value.code == "Deleted"
    intent = (await stored(db, uid)).intent
    assert (intent.cancel, intent.cancel_actor, intent.remove) == (True, Actor("bob"), True)
    lines = await resources.history(db, STORED_JOBS, uid, limit=10)
    assert [(line.seq, line.entry.reason) for line in lines] == [(1, "Submitted"), (2, "DeleteRequested")]


async def test_removing_a_finished_job_does_not_cancel_it(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job())
    await move(db, lease, uid, JobPhase.SUCCEEDED)
    # A new job with a name of the ended one needs its objects to go.
    async with db.begin() as connection:
        await request_removal_of_previous(connection, [("team-a", NameRange("job", "train"))])
    removed = await resources.get(db, STORED_JOBS, uid)
    assert removed is not None
    assert (removed.remove_requested_at is None, removed.cancel_requested_at, removed.deleted_at) == (False, None, None)
    row = await edits.request_deletion(db, uid, actor=Actor("bob"), at=later(2))
    assert (row.remove_requested_at, row.deleted_at) == (removed.remove_requested_at, later(2))
    assert row.cancel_requested_at is None
