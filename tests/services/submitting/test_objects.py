"""Submission of jobs: generated names, idempotency keys, and refusals before anything is stored."""

import random
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from app.db.jobs.group_commit import GroupCommit
from app.db.jobs.submit import NewJob
from app.db.objects.idempotency import KeyConflict, KeyInFlight, Replayed
from app.db.objects.submission import Answer, NameTaken, Submitted
from app.domain.access.actors import Actor
from app.domain.errors import Conflict, InvalidManifest
from app.domain.kinds.job_kind import Limits
from app.domain.kinds.posted_metadata import SUFFIX_ALPHABET, SUFFIX_LENGTH, generate_name
from app.domain.planning import Planner
from app.domain.reservations.name_ranges import NameKind, NameRange
from app.domain.vocabulary import ReplicaPhase
from app.services.submitting import request_keys
from app.services.submitting.jobs import JobSubmitter, PreparedJob
from app.services.submitting.objects import SubmitRequest
from app.services.submitting.request_keys import RequestKey, fingerprint
from tests.support.gateways.gateway import manifest
from tests.support.plans import accept_any_plan

REQUEST = SubmitRequest(namespace="team", actor=Actor("me"))
KEY = RequestKey(scope="s", key="k", fingerprint="f")
HOLDER = UUID(int=9)


class Clock:
    """A clock that advances by one second at each reading."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        self.seconds += 1
        return self.seconds


class Scripted(GroupCommit):
    """Returns these answers in order, and the last one from then on."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.seen: list[NewJob] = []

    @override
    async def submit(self, job: NewJob) -> Answer:
        self.seen.append(job)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def submitter(commit: GroupCommit, limits: Limits | None = None) -> tuple[JobSubmitter, list[str]]:
    hints: list[str] = []
    planner = Planner(installation="i", limits=limits or Limits())
    service = JobSubmitter(commit, planner, Clock(), lambda: hints.append("hint"), random.Random(7), accept_any_plan)
    return service, hints


def name_of(prepared: PreparedJob) -> bytes:
    return b'{"name":"%s"}' % prepared.new.row.name.encode()


async def submit(commit: GroupCommit, document: Any, key: RequestKey | None = None) -> Any:
    return await submitter(commit)[0].submit(document, REQUEST, key=key, render=name_of)


def taken(name: str) -> NameTaken:
    return NameTaken(kind=NameKind.JOB, name=name, holder_name="holder", holder_uid=HOLDER, holder_kind="live job")


async def test_the_stored_job_has_names_status_and_idempotency_key() -> None:
    commit = Scripted(Submitted())
    service, hints = submitter(commit)
    created = await service.submit(manifest("a"), REQUEST, key=KEY, render=name_of)
    (job,) = commit.seen
    row = job.row
    assert (row.namespace, row.name, row.created_by, row.manifest["metadata"]["namespace"]) == (
        "team",
        "a",
        "me",
        "team",
    )
    assert {NameRange("pod", "a-worker-0", 2), NameRange("job", "a")} <= set(job.names)
    assert row.status.aggregate[ReplicaPhase.CREATING] == sum(row.status.aggregate.values()) == 2
    assert job.idempotency is not None
    assert (job.idempotency.answer, created.body, created.uid) == (b'{"name":"a"}', b'{"name":"a"}', job.uid)
    assert hints == ["hint"]


async def test_a_generated_name_that_is_in_use_is_generated_again() -> None:
    document = manifest("x") | {"metadata": {"generateName": "run-"}}
    commit = Scripted(taken("run-a"), taken("run-b"), Submitted())
    created = await submit(commit, document)
    assert len({job.row.name for job in commit.seen}) == 3
    assert created.name == commit.seen[-1].row.name
    assert all("generateName" not in job.row.manifest["metadata"] for job in commit.seen)
    with pytest.raises(Conflict, match="in use"):
        await submit(Scripted(taken("run-a")), document)


async def test_a_given_name_in_use_is_refused_and_its_owner_reported() -> None:
    with pytest.raises(Conflict) as refused:
        await submit(Scripted(taken("a")), manifest("a"))
    assert refused.value.code == "NameTaken"
    assert str(HOLDER) in refused.value.errors[0].detail


async def test_a_request_waits_for_another_one_with_the_same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_keys, "_POLL", 0.001)
    created = await submit(
        Scripted(KeyInFlight(), KeyInFlight(), Replayed(uid=HOLDER, answer=b'{"name":"w"}')), manifest("a"), KEY
    )
    assert (created.replayed, created.name, created.uid) == (True, "w", HOLDER)
    with pytest.raises(Conflict) as refused:
        await submit(Scripted(KeyInFlight()), manifest("a"), KEY)
    assert refused.value.code == "KeyInFlight"


async def test_a_key_of_another_request_is_refused() -> None:
    with pytest.raises(InvalidManifest) as refused:
        await submit(Scripted(KeyConflict()), manifest("a"), KEY)
    assert refused.value.errors[0].pointer == "/header/Idempotency-Key"


async def test_objects_that_no_cluster_accepts_are_never_stored() -> None:
    commit = Scripted(Submitted())
    service, _ = submitter(commit, Limits(max_rendered_pod_bytes=500))
    with pytest.raises(InvalidManifest):
        await service.submit(manifest("a"), REQUEST, key=None, render=name_of)
    with pytest.raises(InvalidManifest):
        await service.prepare(manifest("a"), REQUEST)
    assert commit.seen == []


@given(st.text(min_size=1, max_size=300))
def test_generated_names_fit(base: str) -> None:
    name = generate_name(base, lambda: "x" * SUFFIX_LENGTH)
    assert len(name) <= 63
    assert name.endswith("x" * SUFFIX_LENGTH)
    assert base.startswith(name[:-SUFFIX_LENGTH])


def test_suffixes_differ_and_contain_no_vowels() -> None:
    service, _ = submitter(Scripted(Submitted()))
    drawn = {service.suffix() for _ in range(200)}
    assert len(drawn) > 190
    assert set("".join(drawn)) <= set(SUFFIX_ALPHABET)


def test_fingerprints_depend_on_values_and_not_on_spelling() -> None:
    assert fingerprint({"a": 1, "b": [2]}, {"x": "y"}) == fingerprint({"b": [2], "a": 1}, {"x": "y"})
    assert (
        len({fingerprint(body, query) for body, query in (({"a": 1}, {}), ({"a": 2}, {}), ({"a": 1}, {"q": "1"}))}) == 3
    )
