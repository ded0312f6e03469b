"""Submission, edits and deletion of SampleSets and SampleJobs on a real database."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from app.base.clock import SystemClock
from app.db.installation import leases
from app.db.objects.resources import StoredRow
from app.db.postgres.engine import Database
from app.db.samples import controller as sample_controller
from app.db.samples.rows import SampleRow
from app.domain.access.actors import Actor
from app.domain.cache.limits import CacheLimits
from app.domain.cache.reconcile.values import JobRecord, SetRecord
from app.domain.cache.source_limits import SourceLimits
from app.domain.cache.vocabulary import SampleJobPhase, SetPhase
from app.domain.errors import Conflict, InvalidManifest, NotFound, PreconditionFailed, Unavailable
from app.domain.kinds.posted_metadata import SUFFIX_LENGTH
from app.domain.kinds.sample_kind import SampleKind
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.kinds.samples.specs.sample_set import API_VERSION
from app.domain.listing import Criteria
from app.services.editing.samples import SampleEditor
from app.services.reading.objects import Address
from app.services.reading.samples import SampleReader
from app.services.submitting.objects import Created, SubmitRequest
from app.services.submitting.request_keys import RequestKey
from app.services.submitting.samples import PreparedSample, SampleSubmitter
from tests.support.waiting import until

TEAM = "team"
REQUEST = SubmitRequest(namespace=TEAM, actor=Actor("me"))
KEY = RequestKey(scope="s", key="k", fingerprint="f")
WAITING = """
SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'samples'::regclass
"""


@dataclass
class Service:
    """The services of sample kinds. `hints` records each announcement to the controller."""

    db: Database
    hints: list[str] = field(default_factory=list)
    randomness: random.Random = field(default_factory=lambda: random.Random(7))

    def __post_init__(self) -> None:
        self.limits = CacheLimits(
            namespace="",
            secret_namespaces=frozenset({"shared"}),
            cache_roots=("/mnt", "/dev/shm/jobgate"),
            sources=SourceLimits(directories=("/data",)),
        )

    def submitter(self, kind: SampleKind = SAMPLE_SET) -> SampleSubmitter:
        return SampleSubmitter(kind, self.db, SystemClock(), self._hint, self.limits, self.randomness)

    def editor(self, kind: SampleKind = SAMPLE_SET) -> SampleEditor:
        return SampleEditor(kind, self.db, SystemClock(), self._hint, self.limits)

    def reader(self, kind: SampleKind = SAMPLE_SET) -> SampleReader:
        return SampleReader(kind, self.db)

    def _hint(self) -> None:
        self.hints.append("hint")

    async def submit(self, document: Any, key: RequestKey | None = None, kind: SampleKind = SAMPLE_SET) -> Created:
        return await self.submitter(kind).submit(document, REQUEST, key=key, render=name_of)

    async def row(self, name: str = "imagenet", kind: SampleKind = SAMPLE_SET) -> SampleRow:
        return await self.reader(kind).row(Address(namespace=TEAM, name=name))

    async def conclude(self, row: SampleRow, record: SetRecord | JobRecord) -> None:
        lease = await leases.acquire(self.db, "controller", "a test", ttl=600)
        assert lease is not None
        done = sample_controller.SampleWrite(
            uid=row.uid,
            intent_version=row.intent_version,
            generation=row.generation,
            phase=record.phase,
            record=record,
        )
        assert await sample_controller.persist(self.db, lease, done, row.created_at)


@pytest_asyncio.fixture
async def service(database_url: str) -> AsyncIterator[Service]:
    db = await Database.open(database_url, pool_size=8)
    yield Service(db)
    await db.close()


def name_of(prepared: PreparedSample) -> bytes:
    return b'{"name":"%s"}' % prepared.new.row.name.encode()


def a_set(name: str = "imagenet", metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    source = {"uri": "file:///data/images/"}
    return {
        "apiVersion": API_VERSION,
        "kind": "SampleSet",
        "metadata": metadata or {"name": name},
        "spec": {"partitions": 1, "secretRef": {"name": "storage"}, "source": source} | spec,
    }


def a_job(name: str = "warm", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "SampleJob",
        "metadata": {"name": name},
        "spec": {"type": "warmup", "sampleSetRef": {"name": "imagenet"}} | spec,
    }


def any_version(_: StoredRow) -> None:
    """Accept every version of the object."""


async def test_a_submitted_object_is_stored_and_announced(service: Service) -> None:
    created = await service.submit(a_set(metadata={"name": "imagenet", "labels": {"team": "vision"}}))
    row = await service.row()
    assert (created.uid, created.name, created.version, created.replayed) == (row.uid, "imagenet", 1, False)
    assert (row.namespace, row.created_by, row.labels, row.set_name) == (TEAM, "me", {"team": "vision"}, "imagenet")
    assert row.manifest["metadata"]["namespace"] == TEAM
    assert row.manifest["spec"]["noSync"] is False
    assert service.hints == ["hint"]
    await service.submit(a_job(), kind=SAMPLE_JOB)
    assert (await service.row("warm", SAMPLE_JOB)).set_name == "imagenet"


async def test_generate_name_generates_a_name(service: Service) -> None:
    document = a_set(metadata={"generateName": "a" * 60})
    first, second = await service.submit(document), await service.submit(document)
    assert first.name != second.name
    assert len(first.name) == SAMPLE_SET.name_max
    assert "generateName" not in (await service.row(first.name)).manifest["metadata"]


async def test_a_generated_name_that_is_in_use_is_generated_again(service: Service) -> None:
    document = a_set(metadata={"generateName": "run-"})
    first = await service.submit(document)
    again = Service(service.db, randomness=random.Random(7))
    second = await again.submit(document)
    assert (first.name[:-SUFFIX_LENGTH], second.name[:-SUFFIX_LENGTH]) == ("run-", "run-")
    assert first.name != second.name


async def test_a_name_in_use_is_refused_and_its_owner_reported(service: Service) -> None:
    first = await service.submit(a_set())
    with pytest.raises(Conflict) as refused:
        await service.submit(a_set())
    assert (refused.value.code, refused.value.errors[0].pointer) == ("NameTaken", "/metadata/name")
    assert str(first.uid) in refused.value.errors[0].detail
    await service.editor().delete(TEAM, "imagenet", actor=Actor("me"), precondition=any_version)
    with pytest.raises(Conflict) as refused:
        await service.submit(a_set())
    assert (refused.value.code, refused.value.errors[0].code) == ("NameTaken", "NameTaken")
    assert service.hints == ["hint", "hint"]


async def test_a_repeated_request_gets_the_answer_to_the_first(service: Service) -> None:
    answers = await asyncio.gather(*(service.submit(a_set(), KEY) for _ in range(6)))
    assert sorted(answer.replayed for answer in answers) == [False] + [True] * 5
    assert {(answer.uid, answer.body) for answer in answers} == {(answers[0].uid, b'{"name":"imagenet"}')}
    with pytest.raises(InvalidManifest) as refused:
        await service.submit(a_set("other"), replace(KEY, fingerprint="other"))
    assert refused.value.code == "IdempotencyKeyReused"


async def test_submissions_together_leave_connections_to_other_requests(service: Service, database_url: str) -> None:
    """Another transaction keeps the table of samples, so that no submission ends; reads go on meanwhile."""
    other = await asyncpg.connect(database_url, timeout=60)
    async with asyncio.timeout(120), asyncio.TaskGroup() as group, other.transaction():
        await other.execute("LOCK TABLE samples IN SHARE ROW EXCLUSIVE MODE")
        submitter = service.submitter()
        for number in range(20):
            document = a_set(f"set-{number}")
            group.create_task(submitter.submit(document, REQUEST, key=None, render=name_of))
        await until(lambda: other.fetchval(WAITING), lambda count: count >= 2, what="two transactions wait")
        for _ in range(20):
            assert (await service.reader().page(Criteria(), None, 9)).rows == []
        assert await other.fetchval(WAITING) == 2
    await other.close()
    assert len((await service.reader().page(Criteria(), None, 99)).rows) == 20


@pytest.mark.parametrize(
    ("document", "pointers"),
    [
        ({}, {"/apiVersion", "/kind"}),
        (a_job(), {"/kind"}),
        (a_set() | {"apiVersion": "v1"}, {"/apiVersion"}),
        (a_set(partitions=0, noSync=1), {"/spec/partitions", "/spec/noSync"}),
        (a_set("x" * 45), {"/metadata/name"}),
        (a_set(metadata={"name": "a", "namespace": "other"}), {"/metadata/namespace"}),
        (a_set(secretRef={"name": "s", "namespace": "other"}), {"/spec/secretRef/namespace"}),
        (
            a_set(cache={"levels": [{"mediumType": "SSD", "path": "/srv/x"}]}),
            {"/spec/cache/levels/0/path"},
        ),
    ],
    ids=["nothing", "job", "version", "fields", "name", "namespace", "secret", "directory"],
)
async def test_a_refusal_lists_all_errors(service: Service, document: dict[str, Any], pointers: set[str]) -> None:
    with pytest.raises(InvalidManifest) as refused:
        await service.submit(document)
    assert {error.pointer for error in refused.value.errors} == pointers
    assert (await service.reader().page(Criteria(), None, 9)).rows == []
    assert service.hints == []


@pytest.mark.parametrize("namespace", ["", TEAM, "shared"])
async def test_secrets_of_the_own_and_of_shared_namespaces_are_allowed(service: Service, namespace: str) -> None:
    prepared = await service.submitter().prepare(a_set(secretRef={"name": "s", "namespace": namespace}), REQUEST)
    row = prepared.new.row
    assert (row.name, row.set_name, prepared.generated) == ("imagenet", "imagenet", False)
    with pytest.raises(NotFound):
        await service.row()


async def test_edits_of_mutable_fields_are_stored(service: Service) -> None:
    await service.submit(a_set())
    editor = service.editor()
    changed = await editor.replace(TEAM, "imagenet", a_set(partitions=3), actor=Actor("you"), precondition=any_version)
    assert (changed.row.generation, changed.row.version, changed.pending) == (2, 2, True)
    patch = {"metadata": {"labels": {"a": "b"}}}
    labelled = await editor.merge(TEAM, "imagenet", patch, actor=Actor("you"), precondition=any_version)
    assert (labelled.row.generation, labelled.row.version) == (2, 3)
    assert labelled.row.labels == {"a": "b"}
    assert labelled.row.manifest["spec"]["partitions"] == 3
    assert len(service.hints) == 3
    same = await editor.merge(TEAM, "imagenet", patch, actor=Actor("you"), precondition=any_version)
    assert (same.row, same.pending, len(service.hints)) == (labelled.row, True, 3)
    story = await service.reader().history(labelled.row.uid, 0, 9)
    assert [(line.entry.reason, line.entry.actor.name) for line in story] == [
        ("Submitted", "me"),
        ("Edited", "you"),
        ("Edited", "you"),
    ]


SYNCED = SetRecord(phase=SetPhase.MOUNT, synced=True)


@pytest.mark.parametrize(
    ("record", "patch", "pointers"),
    [
        (SetRecord(), {"spec": {"csi": {"driver": "juicefs"}, "tolerations": [{"key": "a"}]}}, {"/spec/tolerations"}),
        (SetRecord(), {"metadata": {"name": "other"}}, {"/metadata/name"}),
        (SetRecord(), {"kind": "SampleJob"}, {"/kind"}),
        (SetRecord(), {"spec": {"partitions": None}}, {"/spec/partitions"}),
        (SYNCED, {"spec": {"source": {"uri": "file:///data/others/"}}}, {"/spec/source"}),
        (SetRecord(phase=SetPhase.READY), {"spec": {"noSync": True}}, {"/spec/noSync"}),
        (SYNCED, {"spec": {"noSync": True, "tolerations": [{"key": "a"}]}}, {"/spec/noSync", "/spec/tolerations"}),
    ],
)
async def test_an_edit_of_an_immutable_field_is_refused(
    service: Service, record: SetRecord, patch: dict[str, Any], pointers: set[str]
) -> None:
    await service.submit(a_set())
    await service.conclude(await service.row(), record)
    before = await service.row()
    with pytest.raises(InvalidManifest) as refused:
        await service.editor().merge(TEAM, "imagenet", patch, actor=Actor("you"), precondition=any_version)
    assert {error.pointer for error in refused.value.errors} == pointers
    assert await service.row() == before


async def test_a_job_that_has_succeeded_cannot_be_edited(service: Service) -> None:
    await service.submit(a_job(), kind=SAMPLE_JOB)
    row = await service.row("warm", SAMPLE_JOB)
    patch = {"spec": {"warmupOptions": {"paths": ["a"]}}}
    edited = await service.editor(SAMPLE_JOB).merge(TEAM, "warm", patch, actor=Actor("you"), precondition=any_version)
    await service.conclude(edited.row, JobRecord(phase=SampleJobPhase.SUCCEEDED))
    with pytest.raises(Conflict) as refused:
        await service.editor(SAMPLE_JOB).merge(
            TEAM, "warm", {"spec": None}, actor=Actor("you"), precondition=any_version
        )
    assert refused.value.code == "AlreadyFinished"
    assert (await service.row("warm", SAMPLE_JOB)).uid == row.uid


async def test_concurrent_edits_without_a_precondition_are_all_stored(service: Service) -> None:
    await service.submit(a_set())
    names = [f"k{number}" for number in range(6)]
    edits = (
        service.editor().merge(
            TEAM, "imagenet", {"metadata": {"labels": {name: "x"}}}, actor=Actor("you"), precondition=any_version
        )
        for name in names
    )
    await asyncio.gather(*edits)
    row = await service.row()
    assert (row.labels, row.version) == (dict.fromkeys(names, "x"), 7)


async def test_an_edit_of_another_version_changes_nothing(service: Service) -> None:
    await service.submit(a_set())

    def only_the_second(row: StoredRow) -> None:
        if row.version != 2:
            raise PreconditionFailed("read it again")

    for refused in (
        service.editor().replace(TEAM, "imagenet", a_set(), actor=Actor("you"), precondition=only_the_second),
        service.editor().merge(TEAM, "imagenet", {}, actor=Actor("you"), precondition=only_the_second),
        service.editor().delete(TEAM, "imagenet", actor=Actor("you"), precondition=only_the_second),
    ):
        with pytest.raises(PreconditionFailed):
            await refused
    assert (await service.row()).version == 1


async def test_an_edit_that_loses_every_time_can_be_repeated(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    await service.submit(a_set())

    async def lose(*_: object) -> None:
        raise PreconditionFailed("another edit came first")

    editor = service.editor()
    monkeypatch.setattr(editor, "store", lose)
    with pytest.raises(Unavailable) as refused:
        await editor.merge(
            TEAM, "imagenet", {"metadata": {"labels": {"a": "b"}}}, actor=Actor("you"), precondition=any_version
        )
    assert refused.value.code == "Contended"


async def test_a_second_deletion_changes_nothing(service: Service) -> None:
    await service.submit(a_set())
    await service.submit(a_job(), kind=SAMPLE_JOB)
    first = await service.editor().delete(TEAM, "imagenet", actor=Actor("you"), precondition=any_version)
    again = await service.editor().delete(TEAM, "imagenet", actor=Actor("me"), precondition=any_version)
    assert (first.pending, first.row.gone_at, again) == (True, None, first)
    assert [line.entry.actor for line in await service.reader().history(first.row.uid, 1, 9)] == [Actor("you")]
    with pytest.raises(Conflict) as refused:
        await service.editor().merge(TEAM, "imagenet", {}, actor=Actor("you"), precondition=any_version)
    assert refused.value.code == "Deleted"
    gone = await service.editor(SAMPLE_JOB).delete(TEAM, "warm", actor=Actor("you"), precondition=any_version)
    assert (gone.pending, gone.row.gone_at) == (False, gone.row.delete_requested_at)
    assert len(service.hints) == 4
    with pytest.raises(NotFound):
        await service.editor(SAMPLE_JOB).delete(TEAM, "other", actor=Actor("you"), precondition=any_version)


async def test_concurrent_deletions_are_stored_once(service: Service) -> None:
    await service.submit(a_set())
    done = await asyncio.gather(
        *(service.editor().delete(TEAM, "imagenet", actor=Actor(f"a{n}"), precondition=any_version) for n in range(6))
    )
    row = await service.row()
    assert [one.row for one in done] == [row] * 6
    assert (row.version, row.history_count) == (2, len(await service.reader().history(row.uid, 0, 9))) == (2, 2)


async def test_a_set_with_places_that_are_no_longer_allowed_can_be_edited(service: Service) -> None:
    """A set is scaled after its directory for caches and that of its source were removed from the settings."""
    document = a_set(cache={"levels": [{"mediumType": "SSD", "path": "/mnt/a", "cacheSize": 1}]})
    await service.submit(document)
    service.limits = CacheLimits(namespace="", cache_roots=("/ssd",))
    with pytest.raises(InvalidManifest):
        await service.submit({**document, "metadata": {"name": "another"}})
    patch = {"spec": {"partitions": 5}}
    changed = await service.editor().merge(TEAM, "imagenet", patch, actor=Actor("me"), precondition=lambda _: None)
    assert changed.row.manifest["spec"]["partitions"] == 5
    other = {"spec": {"source": {"uri": "file:///data/others/"}}}
    with pytest.raises(InvalidManifest, match="no directory for file:// sources"):
        await service.editor().merge(TEAM, "imagenet", other, actor=Actor("you"), precondition=any_version)


async def test_an_object_with_empty_values_of_an_earlier_version_can_be_edited(service: Service) -> None:
    """An earlier version accepted empty values that upstream's CRDs forbid, and stored some of them as defaults."""
    await service.submit(a_set())
    empty = {"csi": {"driver": ""}, "cache": {"levels": [{"mediumType": "", "path": "", "cacheSize": 1}]}}
    async with service.db.begin() as connection:
        change = (
            "UPDATE samples SET manifest = jsonb_set(manifest::jsonb, '{spec}', (manifest->'spec')::jsonb || $1::jsonb)"
        )
        await connection.execute(change, empty)
    patch = {"spec": {"partitions": 5}}
    changed = await service.editor().merge(TEAM, "imagenet", patch, actor=Actor("me"), precondition=any_version)
    assert (
        changed.row.manifest["spec"].items()
        >= {
            "partitions": 5,
            "csi": {"driver": "juicefs"},
            "cache": {"levels": [{"cacheSize": 1}]},
        }.items()
    )
    other = {"spec": {"cache": {"levels": [{"path": "/mnt/other"}]}}}
    with pytest.raises(InvalidManifest, match="immutable"):
        await service.editor().merge(TEAM, "imagenet", other, actor=Actor("me"), precondition=any_version)
