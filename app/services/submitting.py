"""A new job, from its document to the commit that makes it durable."""

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from app.clock import Clock
from app.db.job_rows import JobRow
from app.db.submissions import GroupCommit
from app.db.submit import (
    Answer,
    IdempotencyKey,
    KeyConflict,
    KeyInFlight,
    NameTaken,
    NewJob,
    Replayed,
    Submitted,
)
from app.domain.errors import Conflict, FieldError, InvalidManifest
from app.domain.generated_names import SUFFIX_ALPHABET, SUFFIX_LENGTH
from app.domain.manifests.rendered import reserved_names
from app.domain.name_ranges import NameRange
from app.domain.plan import JobPlan, Manifest
from app.domain.planning import Draft, Planner
from app.domain.pod_limits import OverLimit
from app.domain.status.records import JobPendingReason, JobStatus
from app.domain.vocabulary import PendingCode, ReplicaPhase
from app.offload import is_large, offloaded, offloaded_if_large

Render: TypeAlias = Callable[[JobRow], bytes]
Hint: TypeAlias = Callable[[], None]
_Decision = TypeVar("_Decision")

_WAIT_FOR_WINNER: Final = 10.0
_LOOK_AGAIN: Final = 0.05
NAME_DRAWS: Final = 5
LARGE_JOB: Final = 500  # replicas; a native status of more takes longer to render than others should wait


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKey:
    """An Idempotency-Key: whose, for which route, and a fingerprint of what was asked."""

    scope: str
    key: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """The answer to a submission: its body, as it was sent the first time."""

    uid: UUID
    name: str
    version: int
    body: bytes
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a document would become."""

    draft: Draft
    uid: UUID
    plan: JobPlan

    @property
    def manifest(self) -> Manifest:
        return self.draft.manifest

    @property
    def names(self) -> list[NameRange]:
        """What it reserves, its own name among it."""
        return reserved_names(self.plan)


def fingerprint(body: object, query: Mapping[str, str]) -> str:
    """The same for two requests that ask for the same, however they are spelt."""
    return hashlib.sha256(msgspec.json.encode([body, query], order="deterministic")).hexdigest()


class Submitter:
    """Answers nothing before it is durable."""

    def __init__(
        self, commit: GroupCommit, planner: Planner, clock: Clock, hint: Hint, randomness: random.Random
    ) -> None:
        self._commit = commit
        self._planner = planner
        self._clock = clock
        self._hint = hint
        self._random = randomness

    def suffix(self) -> str:
        return "".join(self._random.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))

    async def submit(
        self,
        document: Manifest,
        namespace: str,
        *,
        actor: str,
        key: RequestKey | None,
        render: Render,
        retry_of: UUID | None = None,
        administers: bool = False,
    ) -> Created:
        """Store the job and answer with what `render` makes of it, or with what an earlier request was answered.

        Raises:
            InvalidManifest, Forbidden, NotStorable: nothing was stored.
            Conflict: a name is taken by a live job, or the key is in use.
        """
        for draws_left in range(NAME_DRAWS - 1, -1, -1):
            prepared = await self.prepare(document, namespace, administers=administers)
            new = self.new_job(prepared, actor, retry_of)
            body = await rendered(render, new)
            keyed = new if key is None else replace(new, idempotency=kept_answer(key, body))
            answer = await decided(self._clock, partial(self._commit.submit, keyed), _is_in_flight)
            if isinstance(answer, NameTaken) and prepared.draft.generated and draws_left:
                continue
            return self._answered(answer, new, body)
        raise AssertionError("the last draw is answered")

    async def prepare(self, document: Manifest, namespace: str, *, administers: bool = False) -> Prepared:
        """All that can be said of a document without the database; in another thread if the document is large.

        `administers` says that it may have exemptions from the pod policy.
        """
        return await offloaded_if_large(document, self._prepare, document, namespace, administers=administers)

    def _prepare(self, document: Manifest, namespace: str, *, administers: bool) -> Prepared:
        draft = self._planner.draft(document, namespace, self.suffix, administers=administers)
        uid = UUID(int=self._random.getrandbits(128), version=4)
        return Prepared(draft=draft, uid=uid, plan=self._planner.checked_plan(draft.accepted, str(uid)))

    def new_job(self, prepared: Prepared, actor: str, retry_of: UUID | None = None) -> NewJob:
        """The row of a job that is about to be stored. The planner keeps its typed spec for the answer and the plan."""
        manifest, plan = prepared.draft.manifest, prepared.plan
        self._planner.keep(prepared.draft.accepted, prepared.uid, generation=1)
        return NewJob(
            uid=prepared.uid,
            namespace=manifest["metadata"]["namespace"],
            name=prepared.draft.name,
            kind=manifest["kind"],
            api_version=manifest["apiVersion"],
            manifest=manifest,
            labels=manifest["metadata"].get("labels", {}),
            created_at=self._clock.now(),
            created_by=actor,
            names=prepared.names,
            retry_of=retry_of,
            status=_first_status(plan),
            pods=len(plan.replicas),
        )

    def _answered(self, answer: Answer, new: NewJob, body: bytes) -> Created:
        match answer:
            case Submitted():
                self._hint()
                return Created(uid=new.uid, name=new.name, version=1, body=body, replayed=False)
            case Replayed(uid=uid, answer=first):
                name = msgspec.json.decode(first)["name"]
                return Created(uid=uid, name=name, version=1, body=first, replayed=True)
            case NameTaken():
                error = name_taken(answer, new.name)
                raise Conflict("a name that this job needs is in use", code="NameTaken", errors=[error])
            case OverLimit():
                raise Conflict("the job has no room now", code="TooManyPods", errors=[answer.error("/spec")])
            case KeyConflict():
                raise key_reused()
            case KeyInFlight():
                raise key_in_flight()


async def rendered(render: Render, new: NewJob) -> bytes:
    """The answer to a submission; rendered in another thread if the job is large."""
    row = as_stored(new)
    if sum(new.status.aggregate.values()) > LARGE_JOB or is_large(new.manifest):
        return await offloaded(render, row)
    return render(row)


async def decided(
    clock: Clock, ask: Callable[[], Awaitable[_Decision]], is_in_flight: Callable[[_Decision], bool]
) -> _Decision:
    """Wait for whoever holds the same key, but not for ever."""
    deadline = clock.monotonic() + _WAIT_FOR_WINNER
    while True:
        answer = await ask()
        if not is_in_flight(answer) or clock.monotonic() >= deadline:
            return answer
        await asyncio.sleep(_LOOK_AGAIN)


def _is_in_flight(answer: Answer) -> bool:
    return isinstance(answer, KeyInFlight)


def kept_answer(key: RequestKey, body: bytes) -> IdempotencyKey:
    return IdempotencyKey(scope=key.scope, key=key.key, fingerprint=key.fingerprint, answer=body)


def key_in_flight() -> Conflict:
    return Conflict("a request with this Idempotency-Key is still under way: repeat it later", code="KeyInFlight")


def key_reused() -> InvalidManifest:
    error = FieldError(
        pointer="/header/Idempotency-Key",
        code="IdempotencyKeyReused",
        detail="the key was used for a request with another body or query",
        accepted="a new key, or the same request",
    )
    return InvalidManifest(
        "the Idempotency-Key belongs to another request", code="IdempotencyKeyReused", errors=[error]
    )


def name_taken(taken: NameTaken, wanted: str, base: str = "") -> FieldError:
    if taken.kind == "job" and taken.name == wanted:
        detail = f"the live job {taken.job_name} ({taken.job_uid}) has this name"
    else:
        detail = f"the live job {taken.job_name} ({taken.job_uid}) uses the {taken.kind} name {taken.name}"
    return FieldError(
        pointer=f"{base}/metadata/name",
        code="NameTaken",
        detail=detail,
        accepted="another name, or wait until that job ends",
    )


def _first_status(plan: JobPlan) -> JobStatus:
    """What is true of a job before the controller has seen it."""
    count = len(plan.replicas)
    waiting = JobPendingReason(
        code=PendingCode.QUEUED,
        message="the controller has not looked at this job yet",
        since=None,
        replicas=(),
        count=count,
    )
    aggregate = dict.fromkeys(ReplicaPhase, 0) | {ReplicaPhase.CREATING: count}
    return JobStatus(aggregate=aggregate, pending_reasons=(waiting,))


def as_stored(new: NewJob) -> JobRow:
    """The row that the commit will make."""
    return JobRow(
        uid=new.uid,
        namespace=new.namespace,
        name=new.name,
        kind=new.kind,
        api_version=new.api_version,
        labels=new.labels,
        manifest=new.manifest,
        generation=1,
        version=1,
        created_at=new.created_at,
        created_by=new.created_by,
        retry_of=new.retry_of,
        cancel_requested_at=None,
        cancel_requested_by=None,
        cancel_reason=None,
        remove_requested_at=None,
        deleted_at=None,
        status=new.status,
    )
