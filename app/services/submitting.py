"""A new job, from its document to the commit that makes it durable."""

import asyncio
import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias
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
from app.domain.manifests.rendered import reserved_names
from app.domain.plan import JobPlan, Manifest
from app.domain.status.records import JobPendingReason, JobStatus
from app.domain.vocabulary import PendingCode, ReplicaPhase
from app.services.planning import SUFFIX_ALPHABET, SUFFIX_LENGTH, Draft, Planner

Render: TypeAlias = Callable[[JobRow], bytes]
Hint: TypeAlias = Callable[[], None]

_WAIT_FOR_WINNER: Final = 10.0
_LOOK_AGAIN: Final = 0.05
_NAME_DRAWS: Final = 5


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
class DryRun:
    manifest: Manifest
    plan: JobPlan


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

    def dry_run(self, document: Manifest, namespace: str) -> DryRun:
        """All that a submission does, but storing."""
        draft = self._planner.draft(document, namespace, self.suffix)
        return DryRun(manifest=draft.manifest, plan=self._planner.checked_plan(draft.manifest, str(self._new_uid())))

    async def submit(
        self,
        document: Manifest,
        namespace: str,
        *,
        actor: str,
        key: RequestKey | None,
        render: Render,
        retry_of: UUID | None = None,
    ) -> Created:
        """Store the job and answer with what `render` makes of it, or with what an earlier request was answered.

        Raises:
            InvalidManifest, NotStorable: nothing was stored.
            Conflict: a name is taken by a live job, or the key is in use.
        """
        for draws_left in range(_NAME_DRAWS - 1, -1, -1):
            draft = self._planner.draft(document, namespace, self.suffix)
            new = self._new_job(draft, namespace, actor, retry_of)
            body = render(_as_stored(new))
            answer = await self._decided(new if key is None else replace(new, idempotency=_key(key, body)))
            if isinstance(answer, NameTaken) and draft.generated and draws_left:
                continue
            return self._answered(answer, new, body)
        raise AssertionError("the last draw is answered")

    def _new_job(self, draft: Draft, namespace: str, actor: str, retry_of: UUID | None) -> NewJob:
        uid = self._new_uid()
        manifest = draft.manifest
        plan = self._planner.checked_plan(manifest, str(uid))
        return NewJob(
            uid=uid,
            namespace=namespace,
            name=draft.name,
            kind=manifest["kind"],
            api_version=manifest["apiVersion"],
            manifest=manifest,
            labels=manifest["metadata"].get("labels", {}),
            created_at=self._clock.now(),
            created_by=actor,
            names=[(kind.lower(), name) for kind, name in reserved_names(plan)],
            retry_of=retry_of,
            status=_first_status(plan),
        )

    def _new_uid(self) -> UUID:
        return UUID(int=self._random.getrandbits(128), version=4)

    async def _decided(self, new: NewJob) -> Answer:
        """Wait for whoever holds the same key, but not for ever."""
        deadline = self._clock.monotonic() + _WAIT_FOR_WINNER
        while True:
            answer = await self._commit.submit(new)
            if not isinstance(answer, KeyInFlight) or self._clock.monotonic() >= deadline:
                return answer
            await asyncio.sleep(_LOOK_AGAIN)

    def _answered(self, answer: Answer, new: NewJob, body: bytes) -> Created:
        match answer:
            case Submitted():
                self._hint()
                return Created(uid=new.uid, name=new.name, version=1, body=body, replayed=False)
            case Replayed(uid=uid, answer=first):
                name = msgspec.json.decode(first)["name"]
                return Created(uid=uid, name=name, version=1, body=first, replayed=True)
            case NameTaken():
                raise _name_taken(answer, new)
            case KeyConflict():
                raise _key_reused()
            case KeyInFlight():
                raise Conflict(
                    "a request with this Idempotency-Key is still under way: repeat it later", code="KeyInFlight"
                )


def _key(key: RequestKey, body: bytes) -> IdempotencyKey:
    return IdempotencyKey(scope=key.scope, key=key.key, fingerprint=key.fingerprint, answer=body)


def _key_reused() -> InvalidManifest:
    error = FieldError(
        pointer="/header/Idempotency-Key",
        code="IdempotencyKeyReused",
        detail="the key was used for a request with another body or query",
        accepted="a new key, or the same request",
    )
    return InvalidManifest(
        "the Idempotency-Key belongs to another request", code="IdempotencyKeyReused", errors=[error]
    )


def _name_taken(taken: NameTaken, new: NewJob) -> Conflict:
    if taken.kind == "job" and taken.name == new.name:
        detail = f"the live job {taken.job_name} ({taken.job_uid}) has this name"
    else:
        detail = f"the live job {taken.job_name} ({taken.job_uid}) uses the {taken.kind} name {taken.name}"
    error = FieldError(
        pointer="/metadata/name", code="NameTaken", detail=detail, accepted="another name, or wait until that job ends"
    )
    return Conflict("a name that this job needs is in use", code="NameTaken", errors=[error])


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


def _as_stored(new: NewJob) -> JobRow:
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
