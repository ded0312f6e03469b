"""Submission of new objects of any resource, alone or several in one request.

documents ─▶ each validated ─▶ no two need the same name ─▶ one commit ─▶ one answer
"""

import asyncio
import random
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from app.base.clock import Clock
from app.base.offload import is_large, offloaded
from app.db.jobs.submit import Answer, NameTaken
from app.db.objects.idempotency import KeyConflict, KeyInFlight, Replayed
from app.db.objects.resources import Row
from app.domain.access.actors import Actor
from app.domain.errors import Conflict, DomainError, FieldError, Forbidden, InvalidManifest, Problems
from app.domain.kinds.posted_metadata import SUFFIX_ALPHABET, SUFFIX_LENGTH
from app.domain.plan import Manifest
from app.domain.policy.pod_policy import violation
from app.domain.reservations.name_ranges import NameKind, NameRange, split
from app.domain.reservations.pod_limits import OverLimit
from app.services.submitting.request_keys import RequestKey

Hint: TypeAlias = Callable[[], None]
Join: TypeAlias = Callable[[Iterable[bytes]], bytes]

_KEY_WAIT: Final = 10.0  # seconds to wait for another request with the same Idempotency-Key
_KEY_POLL: Final = 0.05  # seconds between two tries
_NAME_DRAWS: Final = 5  # a suffix has millions of values, so even a second draw is rare


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """The answer to a submission. `replayed` is True if it is the stored answer to an earlier request with the same
    key.
    """

    uid: UUID
    name: str
    version: int
    body: bytes
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTogether:
    """The answer to a submission of several objects. `replayed` is as in `Created`."""

    body: bytes
    replayed: bool


class Prepared(Protocol):
    """A valid document. `generated` is True if its name was drawn, so that another one may be drawn."""

    @property
    def manifest(self) -> Manifest: ...
    @property
    def name(self) -> str: ...
    @property
    def generated(self) -> bool: ...
    @property
    def names(self) -> Sequence[NameRange]:
        """The names that it reserves, including its own."""
        ...


class New(Protocol):
    """A dataclass that the database stores as a new object."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def uid(self) -> UUID: ...
    @property
    def name(self) -> str: ...
    @property
    def manifest(self) -> Manifest: ...


_Prepared = TypeVar("_Prepared", bound=Prepared)
_New = TypeVar("_New", bound=New)


class Submitter(ABC, Generic[_Prepared, _New, Row]):
    """Submits objects of one resource, and answers once they are durable.

    `what` is the word for an object in messages. `hint` announces new objects to the controller.
    """

    def __init__(self, what: str, clock: Clock, hint: Hint, randomness: random.Random) -> None:
        self._what = what
        self._clock = clock
        self._hint = hint
        self._random = randomness

    @abstractmethod
    async def prepare(
        self, document: Manifest, namespace: str, *, administers: bool = False, posted: Manifest | None = None
    ) -> _Prepared:
        """Validate a document and complete it, without the database, and in a thread if it is large.

        `administers` says whether the caller may exempt the object from the pod policy. `posted` is the document that
        stays readable as the posted one, by default `document`.

        Raises:
            InvalidManifest, Forbidden: the document is not valid. The error lists all problems.
        """

    @abstractmethod
    def new(self, prepared: _Prepared, actor: Actor, retry_of: UUID | None = None) -> _New:
        """Return the argument of `store`. `retry_of` is the uid of the object that this one repeats."""

    @abstractmethod
    def as_stored(self, new: _New) -> Row:
        """Return the row as the commit will store it, so that the answer can be rendered before."""

    @abstractmethod
    async def store(self, news: Sequence[_New]) -> Mapping[int, Answer]:
        """Store all objects durably, or none. Return the refusals by index; none means success.

        The first object carries the idempotency key of the request.
        """

    @abstractmethod
    def remedy(self, taken: NameTaken) -> str:
        """Return what a client can do about a taken name, for the `accepted` field of the error."""

    def is_slow(self, prepared: _Prepared) -> bool:
        """Whether rendering takes so long that it must run in a thread."""
        return is_large(prepared.manifest)

    def check_total(self, prepared: Sequence[_Prepared], count: int) -> None:
        """Raise InvalidManifest if the objects prepared so far, of `count`, exceed a limit for one request."""

    def suffix(self) -> str:
        """Draw the suffix of a generated name."""
        return "".join(self._random.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))

    def draw_uid(self) -> UUID:
        return UUID(int=self._random.getrandbits(128), version=4)

    async def submit(
        self,
        document: Manifest,
        namespace: str,
        *,
        actor: Actor,
        key: RequestKey | None,
        render: Callable[[Row], bytes],
        retry_of: UUID | None = None,
        administers: bool = False,
        posted: Manifest | None = None,
    ) -> Created:
        """Store the object, and return the response body that `render` makes from its database row.

        A repeated request (same key and fingerprint) gets the stored answer to the first one. `posted` is as in
        `prepare`.

        Raises:
            InvalidManifest, Forbidden, NotStorable: the document is not valid. Nothing was stored.
            Conflict: a name or the idempotency key is in use, or a limit of pods is reached. Nothing was stored.
        """

        async def build() -> _Attempt[_Prepared, _New]:
            prepared = await self.prepare(document, namespace, administers=administers, posted=posted)
            new = self.new(prepared, actor, retry_of)
            row = self.as_stored(new)
            body = await offloaded(render, row) if self.is_slow(prepared) else render(row)
            return _Attempt(prepared=[prepared], news=[new], body=body)

        attempt, refused = await self._stored(build, key)
        if not refused:
            (new,) = attempt.news
            return Created(uid=new.uid, name=new.name, version=1, body=attempt.body, replayed=False)
        first = self._first_answer(refused, attempt.prepared, alone=True)
        # That of the stored answer: this attempt may have drawn another name.
        name = msgspec.json.decode(first.answer)["name"]
        return Created(uid=first.uid, name=name, version=1, body=first.answer, replayed=True)

    async def prepare_together(
        self, documents: Sequence[Manifest], namespace: str, *, administers: bool = False
    ) -> list[_Prepared]:
        """Validate several documents and complete them, without the database.

        Raises:
            InvalidManifest, Forbidden: some are not valid. The error lists all problems, each below `/items/<index>`.
        """
        for draws_left in range(_NAME_DRAWS - 1, -1, -1):
            prepared = await self._prepare_each(documents, namespace, administers=administers)
            clashes = await offloaded(_clashes, prepared)
            if not clashes:
                return prepared
            if not draws_left or not all(prepared[place].generated for place in clashes):
                raise InvalidManifest(f"two of the {self._what}s need the same name", errors=clashes.values())
        raise AssertionError("the last draw is answered")

    async def submit_together(
        self,
        documents: Sequence[Manifest],
        namespace: str,
        *,
        actor: Actor,
        key: RequestKey | None,
        render: Callable[[Row], bytes],
        join: Join,
        administers: bool = False,
    ) -> CreatedTogether:
        """Store all objects or none, and return the answer that `join` makes of their rendered rows.

        A repeated request (same key and fingerprint) gets the stored answer to the first one.

        Raises:
            InvalidManifest, Forbidden, NotStorable: a document is not valid. Nothing was stored.
            Conflict: a name or the idempotency key is in use, or a limit of pods is reached. Nothing was stored.
        """

        async def build() -> _Attempt[_Prepared, _New]:
            prepared = await self.prepare_together(documents, namespace, administers=administers)
            return await offloaded(self._joined, prepared, actor, render, join)

        attempt, refused = await self._stored(build, key)
        if not refused:
            return CreatedTogether(body=attempt.body, replayed=False)
        return CreatedTogether(body=self._first_answer(refused, attempt.prepared, alone=False).answer, replayed=True)

    def _joined(
        self, prepared: Sequence[_Prepared], actor: Actor, render: Callable[[Row], bytes], join: Join
    ) -> "_Attempt[_Prepared, _New]":
        news = [self.new(one, actor) for one in prepared]
        return _Attempt(prepared=prepared, news=news, body=join([render(self.as_stored(new)) for new in news]))

    async def _stored(
        self, build: "Callable[[], Awaitable[_Attempt[_Prepared, _New]]]", key: RequestKey | None
    ) -> "tuple[_Attempt[_Prepared, _New], Mapping[int, Answer]]":
        """Build and store, and repeat while only drawn names are taken. Return the last attempt and its refusals."""
        for draws_left in range(_NAME_DRAWS - 1, -1, -1):
            attempt = await build()
            news = list(attempt.news)
            if key is not None:
                # The body is stored with the objects in one transaction, so a repetition gets the same bytes.
                news[0] = replace(news[0], idempotency=key.with_answer(attempt.body))
            refused = await self._past_same_key(partial(self.store, news))
            if not refused:
                self._hint()
            elif draws_left and _only_drawn_names_taken(refused, attempt.prepared):
                continue
            return attempt, refused
        raise AssertionError("the last draw is answered")

    async def _past_same_key(self, store: Callable[[], Awaitable[Mapping[int, Answer]]]) -> Mapping[int, Answer]:
        """Repeat `store` while another request with the same idempotency key is running, up to a time limit."""
        deadline = self._clock.monotonic() + _KEY_WAIT
        while True:
            # Not only a read: if the other request fails, this one takes its place.
            refused = await store()
            if not isinstance(refused.get(0), KeyInFlight) or self._clock.monotonic() >= deadline:
                return refused
            await asyncio.sleep(_KEY_POLL)

    async def _prepare_each(
        self, documents: Sequence[Manifest], namespace: str, *, administers: bool
    ) -> list[_Prepared]:
        problems = Problems()
        prepared: list[_Prepared] = []
        are_valid = True
        for place, document in enumerate(documents):
            try:
                prepared.append(await self.prepare(document, namespace, administers=administers))
            except (InvalidManifest, Forbidden) as error:
                are_valid = are_valid and isinstance(error, Forbidden)
                problems.extend(_below(place, error))
            self.check_total(prepared, len(documents))
            await asyncio.sleep(0)  # a hundred large manifests must not delay other requests
        wrong = len(documents) - len(prepared)
        # 403 only if the policy alone is violated. A document that is not valid makes it 422.
        if wrong and are_valid:
            raise violation(
                f"the pod policy does not allow {wrong} of the {len(documents)} {self._what}s; none was stored",
                problems,
            )
        problems.raise_if_any(f"{wrong} of the {len(documents)} manifests are not valid; none was stored")
        return prepared

    def _first_answer(self, refused: Mapping[int, Answer], prepared: Sequence[_Prepared], *, alone: bool) -> Replayed:
        """Return the stored answer if the request is a repetition; raise every other refusal.

        `alone` says whether the request had one object, so that pointers do not begin with `/items/<index>`.
        """
        # The first object carries the idempotency key of the request.
        match refused.get(0):
            case Replayed() as first:
                return first
            case KeyConflict():
                raise _key_reused()
            case KeyInFlight():
                detail = "another request with this Idempotency-Key is still running: repeat this one later"
                raise Conflict(detail, code="KeyInFlight")
        bases = {place: "" if alone else f"/items/{place}" for place in sorted(refused)}
        over = [
            answer.error(f"{base}/spec")
            for place, base in bases.items()
            if isinstance(answer := refused[place], OverLimit)
        ]
        if over:
            one = f"the {self._what} would exceed the limit of pods"
            several = f"these {self._what}s would exceed the limit of pods; none was stored"
            raise Conflict(one if alone else several, code="TooManyPods", errors=over)
        taken = [
            _name_taken(answer, prepared[place].name, base, self.remedy(answer))
            for place, base in bases.items()
            if isinstance(answer := refused[place], NameTaken)
        ]
        one = f"a name that this {self._what} needs is in use"
        several = f"names that these {self._what}s need are in use; none was stored"
        raise Conflict(one if alone else several, code="NameTaken", errors=taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt(Generic[_Prepared, _New]):
    """The objects to store, and the body of the answer if they are stored."""

    prepared: Sequence[_Prepared]
    news: Sequence[_New]
    body: bytes


def _below(place: int, refused: DomainError) -> Iterable[FieldError]:
    if not refused.errors:
        yield FieldError(pointer=f"/items/{place}", code=refused.code, detail=refused.message)
    for error in refused.errors:
        yield replace(error, pointer=f"/items/{place}{error.pointer}")


def _clashes(prepared: Sequence[Prepared]) -> dict[int, FieldError]:
    """Return an error for each object that needs the same name as an earlier one, by index."""
    seen: dict[tuple[str, str], list[tuple[NameRange, int]]] = defaultdict(list)
    clashes = {}
    for place, one in enumerate(prepared):
        for names in one.names:
            family = seen[names.kind, split(names.name)[0]]
            for other, first in family:
                name = names.first_shared(other)
                if name is not None:
                    own = "has the" if names.kind == NameKind.JOB else f"needs the {names.kind}"
                    detail = f"items[{first}] of this request {own} name {name}, too"
                    at = f"/items/{place}/metadata/name"
                    clashes[place] = FieldError(pointer=at, code="Duplicate", detail=detail, accepted="another name")
                    break
            family.append((names, place))
    return clashes


def _only_drawn_names_taken(refused: Mapping[int, Answer], prepared: Sequence[Prepared]) -> bool:
    return all(isinstance(answer, NameTaken) and prepared[place].generated for place, answer in refused.items())


def _key_reused() -> InvalidManifest:
    error = FieldError(
        pointer="/header/Idempotency-Key",
        code="IdempotencyKeyReused",
        detail="the key was used for a request with another body or query",
        accepted="a new key, or the same request",
    )
    return InvalidManifest(
        "the Idempotency-Key was used for another request", code="IdempotencyKeyReused", errors=[error]
    )


def _name_taken(taken: NameTaken, wanted: str, base: str, remedy: str) -> FieldError:
    holder = f"the {taken.holder} {taken.job_name} ({taken.job_uid})"
    if taken.kind == NameKind.JOB and taken.name == wanted:
        detail = f"{holder} has this name" + (", which is free once its objects are deleted" if taken.leaving else "")
    else:
        detail = f"{holder} uses the {taken.kind} name {taken.name}"
    return FieldError(pointer=f"{base}/metadata/name", code="NameTaken", detail=detail, accepted=remedy)
