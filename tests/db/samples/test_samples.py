"""Submission, edit and deletion of SampleSets and SampleJobs. Concurrent requests for a name or key have one winner."""

import asyncio
from collections import Counter
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from app.db.feed import entries
from app.db.lists import pages
from app.db.objects import resources
from app.db.objects.idempotency import IdempotencyKey, KeyConflict, KeyInFlight, Replayed
from app.db.objects.resources import FoundRow, RowKey, StoredRow, read_list_items
from app.db.objects.submission import NameTaken, New
from app.db.postgres import codec
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseContended, NotStorable
from app.db.postgres.queries import Cursor
from app.db.postgres.timeouts import DatabaseTimeouts
from app.db.samples import edits
from app.db.samples.edits import SampleEdit
from app.db.samples.rows import SampleRow, storage_of
from app.domain.access.actors import Actor
from app.domain.access.namespaces import NamespaceSet
from app.domain.errors import Conflict, NotFound, PreconditionFailed
from app.domain.kinds.samples.kinds import SAMPLE_JOB
from app.domain.kubernetes.selectors import parse_selector
from app.domain.listing import Criteria
from app.domain.reservations.name_ranges import NameKind
from tests.db.factories import NOW, later
from tests.db.samples.factories import JOBS, NAMESPACE, SETS, insert, new_job, new_set, stored, there

KEY = IdempotencyKey(scope="s", key="k", fingerprint="f", answer=b"first")


def edit_of(row: Any, **changes: Any) -> SampleEdit:
    spec = {**row.manifest["spec"], "partitions": 2}
    edit = SampleEdit(
        manifest={**row.manifest, "spec": spec},
        labels={"app": "other"},
        set_name=row.set_name,
        actor=Actor("bob"),
        at=later(1),
        expected_version=row.version,
    )
    return replace(edit, **changes)


@pytest.mark.parametrize("new", [new_set(), new_job()], ids=["set", "job"])
async def test_the_stored_row_equals_the_returned_one(db: Database, new: New[SampleRow]) -> None:
    row = await stored(db, new)
    assert row == new.row
    where = storage_of(row.of_kind)
    assert await resources.find(db, where, NAMESPACE, new.row.name) == row
    keys: list[RowKey] = [(NAMESPACE, new.row.name), new.uid]
    found = dict.fromkeys(keys, FoundRow(new.uid, 1, NAMESPACE))
    assert await resources.versions(db, where, [*keys, (NAMESPACE, "other")]) == found
    assert await resources.sizes(db, where, [new.uid]) == {new.uid: len(codec.text_of(new.row.manifest))}
    (line,) = await resources.history(db, where, new.uid, limit=10)
    entry = line.entry
    assert (line.seq, entry.at, entry.phase, entry.reason, entry.actor.name) == (1, NOW, "", "Submitted", "alice")


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("LOCK TABLE samples IN ACCESS EXCLUSIVE MODE", DatabaseContended),
        ("LOCK TABLE idempotency_keys IN ACCESS EXCLUSIVE MODE", DatabaseContended),
        ("INSERT INTO idempotency_keys VALUES ('s', 'k', 'f', gen_random_uuid(), '', now())", KeyInFlight),
    ],
)
async def test_only_a_key_that_another_transaction_holds_is_in_flight(
    db: Database, database_url: str, statement: str, expected: type
) -> None:
    impatient = await Database.open(database_url, pool_size=1, timeouts=DatabaseTimeouts(lock=0.05))
    async with db.begin() as other:
        await other.execute(statement)
        (answer,) = await asyncio.gather(insert(impatient, new_set(), KEY), return_exceptions=True)
    await impatient.close()
    assert type(answer) is expected


async def test_a_set_a_job_and_another_namespace_may_share_a_name(db: Database) -> None:
    for new in (new_set("same"), new_job("same"), new_set("same", namespace="team-b")):
        await stored(db, new)


async def test_a_name_is_taken_until_its_holder_is_gone(db: Database) -> None:
    first = await stored(db, new_set())
    taken = NameTaken(
        kind=NameKind.JOB, name="imagenet", holder_name="imagenet", holder_uid=first.uid, holder_kind="SampleSet"
    )
    assert await insert(db, new_set()) == taken
    await edits.request_deletion(db, first.uid, actor=Actor("bob"), at=later(1))
    assert await insert(db, new_set()) == replace(taken, leaving=True)


async def test_one_of_many_concurrent_submissions_gets_the_name(db: Database) -> None:
    news = [new_set() for _ in range(12)]
    answers = await asyncio.gather(*(insert(db, new) for new in news))
    (winner,) = (new for new, answer in zip(news, answers, strict=True) if answer is None)
    taken = [answer for answer in answers if isinstance(answer, NameTaken)]
    assert [answer.holder_uid for answer in taken] == [winner.uid] * 11


async def test_several_are_stored_together_or_not_at_all(db: Database) -> None:
    await stored(db, new_set("b"))
    refused = await edits.submit(db, [new_set("c"), new_set("b"), new_set("a")])
    assert {place: type(answer) for place, answer in refused.items()} == {1: NameTaken}
    assert await edits.submit(db, [new_set("c"), new_set("a")]) == {}
    page = await pages.page(db, SETS, Criteria(), limit=9)
    assert sorted(row.name for row in page.rows) == ["a", "b", "c"]


async def test_a_repeated_key_is_answered_as_before(db: Database) -> None:
    news = [new_set(), new_set("b"), new_set("c")]
    answers = await asyncio.gather(*(insert(db, new, KEY) for new in news))
    (won,) = (new for new, answer in zip(news, answers, strict=True) if answer is None)
    assert [answer for answer in answers if answer is not None] == [Replayed(uid=won.uid, answer=b"first")] * 2
    assert await insert(db, new_set("d"), replace(KEY, fingerprint="other")) == KeyConflict()
    assert len((await pages.page(db, SETS, Criteria(), limit=9)).rows) == 1


async def test_a_key_whose_name_was_taken_can_be_used_again(db: Database) -> None:
    await stored(db, new_set())
    assert isinstance(await insert(db, new_set(), KEY), NameTaken)
    assert await insert(db, new_set("another"), KEY) is None


async def test_what_cannot_be_stored_is_refused(db: Database) -> None:
    with pytest.raises(NotStorable):
        await insert(db, new_set(created_by="a\0b"), KEY)
    assert await insert(db, new_set(), KEY) is None


async def test_an_edit_increases_the_versions_and_has_a_feed_entry(db: Database) -> None:
    row = await stored(db, new_set())
    after = await edits.edit(db, row.uid, edit_of(row, expected_version=1))
    assert (after.generation, after.version, after.intent_version, after.history_count) == (2, 2, 2, 2)
    assert (after.manifest["spec"]["partitions"], after.labels) == (2, {"app": "other"})
    assert after == await there(db, row.uid)
    story = await resources.history(db, SETS, row.uid, limit=9)
    assert [line.entry.reason for line in story] == ["Submitted", "Edited"]
    relabelled = await edits.edit(db, row.uid, edit_of(after, manifest=after.manifest, labels={}))
    assert (relabelled.generation, relabelled.version, relabelled.intent_version) == (2, 3, 3)


async def test_an_edit_of_a_changed_or_deleted_sample_is_refused(db: Database) -> None:
    row = await stored(db, new_set())
    with pytest.raises(PreconditionFailed):
        await edits.edit(db, row.uid, edit_of(row, expected_version=2))
    with pytest.raises(NotFound):
        await edits.edit(db, new_set().uid, edit_of(row))
    leaving = await edits.request_deletion(db, row.uid, actor=Actor("bob"), at=later(1))
    with pytest.raises(Conflict) as refused:
        await edits.edit(db, row.uid, edit_of(leaving))
    assert refused.value.code == "Deleted"
    job = await stored(db, new_job())
    gone = await edits.request_deletion(db, job.uid, actor=Actor("bob"), at=later(1))
    with pytest.raises(Conflict) as refused:
        await edits.edit(db, job.uid, edit_of(gone))
    assert refused.value.code == "Deleted"


async def test_one_of_several_concurrent_edits_of_a_version_succeeds(db: Database) -> None:
    row = await stored(db, new_set())
    waiting = (edits.edit(db, row.uid, edit_of(row, expected_version=1)) for _ in range(8))
    done = await asyncio.gather(*waiting, return_exceptions=True)
    assert Counter(type(one) for one in done) == {SampleRow: 1, PreconditionFailed: 7}
    assert [line.seq for line in await resources.history(db, SETS, row.uid, limit=99)] == [1, 2]


async def test_a_deleted_set_is_gone_with_its_objects_and_a_job_at_once(db: Database) -> None:
    row, job = await stored(db, new_set()), await stored(db, new_job())
    leaving = await edits.request_deletion(db, row.uid, actor=Actor("bob"), at=later(1), reason="enough")
    assert (leaving.delete_requested_at, leaving.gone_at) == (later(1), None)
    assert (leaving.version, leaving.intent_version, leaving.generation) == (2, 2, 1)
    (line,) = await resources.history(db, SETS, row.uid, after_seq=1, limit=9)
    assert (line.entry.actor, line.entry.message) == (Actor("bob"), "enough")
    assert await edits.request_deletion(db, row.uid, actor=Actor("carol"), at=later(2)) == leaving
    gone = await edits.request_deletion(db, job.uid, actor=Actor("bob"), at=later(1))
    assert gone.gone_at == later(1)
    newer = await stored(db, new_job(created_at=later(-5)))
    assert await resources.find(db, JOBS, NAMESPACE, "warm") == newer

    def refuse(row: StoredRow) -> None:
        raise PreconditionFailed(f"version {row.version}")

    with pytest.raises(PreconditionFailed, match="version 1"):
        await edits.request_deletion(db, newer.uid, actor=Actor("bob"), at=later(1), check=refuse)
    assert await there(db, newer.uid) == newer


async def test_of_several_gone_samples_the_newest_is_found(db: Database) -> None:
    old, new = new_job(), new_job(created_at=later(9))
    for one in (new, old):
        await stored(db, one)
        await edits.request_deletion(db, one.uid, actor=Actor("bob"), at=later(20))
    found = await resources.find(db, JOBS, NAMESPACE, "warm")
    assert found is not None
    assert found.uid == new.uid
    assert await resources.find(db, SETS, NAMESPACE, "warm") is None


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, ["c", "b", "a"]),
        ({"namespaces": NamespaceSet.of("team-b")}, ["b"]),
        ({"namespaces": NamespaceSet.of()}, []),
        ({"namespaces": NamespaceSet.of(NAMESPACE, "team-b"), "prefix": "a"}, ["a"]),
        ({"name": "c"}, ["c"]),
        ({"search": "b"}, ["b"]),
        ({"set_name": "other"}, ["c"]),
        ({"phases": [""]}, ["c", "b", "a"]),
        ({"phases": ["Running"]}, []),
        ({"labels": parse_selector("tier=x")}, ["b"]),
        ({"labels": parse_selector("tier notin (x)")}, ["c", "a"]),
        ({"labels": parse_selector("!tier")}, ["c", "a"]),
        ({"created_after": later(1)}, ["c", "b"]),
        ({"created_before": later(2), "deleted": True}, ["b", "z", "a"]),
    ],
    ids=map(str, count()),
)
async def test_lists_show_what_was_asked_for(db: Database, where: dict[str, Any], expected: list[str]) -> None:
    await stored(db, new_set("no-job"))
    await stored(db, new_job("a"))
    gone = await stored(db, new_job("z", created_at=later(0.5)))
    await edits.request_deletion(db, gone.uid, actor=Actor("bob"), at=later(1))
    await stored(db, new_job("b", namespace="team-b", created_at=later(1), labels={"tier": "x"}))
    await stored(db, new_job("c", "other", created_at=later(2)))
    wanted = Criteria(**where)
    page = await pages.page(db, JOBS, wanted, limit=9)
    assert ([row.name for row in page.rows], page.next) == (expected, None)
    everything = await pages.page(db, JOBS, Criteria(deleted=True), limit=9)
    things = await read_list_items(db, SAMPLE_JOB.resource, [row.uid for row in everything.rows])
    assert sorted(thing.name for thing in things.values() if wanted.matches(thing)) == sorted(expected)


async def test_pages_follow_each_other(db: Database) -> None:
    for number in range(5):
        await stored(db, new_job(f"j{number}", created_at=later(number // 2)))
    seen: list[str] = []
    after: Cursor | None = None
    for _ in range(3):
        page = await pages.page(db, JOBS, Criteria(), after=after, limit=2)
        seen += [row.name for row in page.rows]
        after = page.next
    assert after is None
    assert sorted(seen) == [f"j{number}" for number in range(5)]


async def test_changes_are_told_in_the_feed_by_resource(db: Database) -> None:
    row, job = await stored(db, new_set()), await stored(db, new_job())
    await edits.edit(db, row.uid, edit_of(row))
    await edits.request_deletion(db, job.uid, actor=Actor("bob"), at=later(1))
    await entries.publish(db)
    events = (await entries.read(db, 0, 100)).events
    assert [(event.type, event.resource, event.job_uid, event.version) for event in events] == [
        ("created", "samplesets", row.uid, 1),
        ("created", "samplejobs", job.uid, 1),
        ("edited", "samplesets", row.uid, 2),
        ("deleted", "samplejobs", job.uid, 2),
    ]
