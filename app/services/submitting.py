"""New objects of any resource, from their documents to the commit that makes them durable.

documents ─▶ each prepared, as if it came alone ─▶ no two need one name ─▶ one commit ─▶ one body
"""

import asyncio
import hashlib
import random
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from app.clock import Clock
from app.db.idempotency import IdempotencyKey, KeyConflict, KeyInFlight, Replayed
from app.db.jobs.submit import Answer, NameTaken
from app.db.resources import Row
from app.domain.errors import Conflict, DomainError, FieldError, Forbidden, InvalidManifest, Problems
from app.domain.kinds.posted_metadata import SUFFIX_ALPHABET, SUFFIX_LENGTH
from app.domain.plan import Manifest
from app.domain.policy.pod_policy import violation
from app.domain.reservations.name_ranges import NameKind, NameRange, split
from app.domain.reservations.pod_limits import OverLimit
from app.offload import is_large, offloaded

Hint: TypeAlias = Callable[[], None]
Join: TypeAlias = Callable[[Iterable[bytes]], bytes]

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
class CreatedTogether:
    """The answer to a submission of several objects: its body, as it was sent the first time."""

    body: bytes
    replayed: bool


class Prepared(Protocol):
    """What a document would become. `generated` says that another name may be drawn if this one is taken."""

    @property
    def manifest(self) -> Manifest: ...
    @property
    def name(self) -> str: ...
    @property
    def generated(self) -> bool: ...
    @property
    def names(self) -> Sequence[NameRange]:
        """What it reserves, its own name among it."""
        ...


class New(Protocol):
    """What is handed to the database, a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def uid(self) -> UUID: ...
    @property
    def name(self) -> str: ...
    @property
    def manifest(self) -> Manifest: ...


_Prepared = TypeVar("_Prepared", bound=Prepared)
_New = TypeVar("_New", bound=New)


def fingerprint(body: object, query: Mapping[str, str]) -> str:
    """The same for two requests that ask for the same, however they are spelt."""
    return hashlib.sha256(msgspec.json.encode([body, query], order="deterministic")).hexdigest()


class Submitter(ABC, Generic[_Prepared, _New, Row]):
    """Submits objects of one resource, and answers nothing before they are durable. `what` names one of them."""

    def __init__(self, what: str, clock: Clock, hint: Hint, randomness: random.Random) -> None:
        self._what = what
        self._clock = clock
        self._hint = hint
        self._random = randomness

    @abstractmethod
    async def prepare(self, document: Manifest, namespace: str, *, administers: bool = False) -> _Prepared:
        """All that can be said of a document without the database; in another thread if the document is large.

        `administers` says that it may have exemptions from the pod policy.

        Raises:
            InvalidManifest, Forbidden: with every error of the document.
        """

    @abstractmethod
    def new(self, prepared: _Prepared, actor: str, retry_of: UUID | None = None) -> _New:
        """What is handed to the database. `retry_of` is the object that this one repeats."""

    @abstractmethod
    def as_stored(self, new: _New) -> Row:
        """The row that the commit will make."""

    @abstractmethod
    async def store(self, news: Sequence[_New]) -> Mapping[int, Answer]:
        """Store all of them durably, or none; then by place why not. The key of the first one stands for all."""

    def is_slow(self, new: _New) -> bool:
        """Whether it takes longer to render than other requests should wait."""
        return is_large(new.manifest)

    def check_sum(self, prepared: Sequence[_Prepared], count: int) -> None:
        """Raises InvalidManifest if those of `count` objects that are prepared exceed a limit for one request."""

    def suffix(self) -> str:
        """The drawn part of a name."""
        return "".join(self._random.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))

    def draw_uid(self) -> UUID:
        return UUID(int=self._random.getrandbits(128), version=4)

    async def submit(
        self,
        document: Manifest,
        namespace: str,
        *,
        actor: str,
        key: RequestKey | None,
        render: Callable[[Row], bytes],
        retry_of: UUID | None = None,
        administers: bool = False,
    ) -> Created:
        """Store the object and answer with what `render` makes of it, or with what an earlier request was answered.

        Raises:
            InvalidManifest, Forbidden, NotStorable: nothing was stored.
            Conflict: a name is in use, or the key is.
        """

        async def build() -> _Attempt[_Prepared, _New]:
            prepared = await self.prepare(document, namespace, administers=administers)
            new = self.new(prepared, actor, retry_of)
            row = self.as_stored(new)
            body = await offloaded(render, row) if self.is_slow(new) else render(row)
            return _Attempt(prepared=[prepared], news=[new], body=body)

        attempt, refused = await self._stored(build, key)
        if not refused:
            (new,) = attempt.news
            return Created(uid=new.uid, name=new.name, version=1, body=attempt.body, replayed=False)
        first = self._replayed(refused, attempt.prepared, alone=True)
        name = msgspec.json.decode(first.answer)["name"]
        return Created(uid=first.uid, name=name, version=1, body=first.answer, replayed=True)

    async def prepare_together(
        self, documents: Sequence[Manifest], namespace: str, *, administers: bool = False
    ) -> list[_Prepared]:
        """All that can be said of several documents without the database.

        Raises:
            InvalidManifest, Forbidden: with the errors of all of them, each below `/items/<place>`.
        """
        for draws_left in range(_NAME_DRAWS - 1, -1, -1):
            prepared = await self._prepare_each(documents, namespace, administers=administers)
            clashes = await offloaded(_clashes, prepared)
            if not clashes:
                return prepared
            if not draws_left or not all(prepared[place].generated for place in clashes):
                raise InvalidManifest(f"two of the {self._what}s need one name", errors=clashes.values())
        raise AssertionError("the last draw is answered")

    async def submit_together(
        self,
        documents: Sequence[Manifest],
        namespace: str,
        *,
        actor: str,
        key: RequestKey | None,
        render: Callable[[Row], bytes],
        join: Join,
        administers: bool = False,
    ) -> CreatedTogether:
        """Store all of them and answer with what `render` makes of each, joined, or with what was answered earlier.

        Raises:
            InvalidManifest, Forbidden, NotStorable: nothing was stored.
            Conflict: names are in use, or the key is; nothing was stored.
        """

        async def build() -> _Attempt[_Prepared, _New]:
            prepared = await self.prepare_together(documents, namespace, administers=administers)
            return await offloaded(self._joined, prepared, actor, render, join)

        attempt, refused = await self._stored(build, key)
        if not refused:
            return CreatedTogether(body=attempt.body, replayed=False)
        return CreatedTogether(body=self._replayed(refused, attempt.prepared, alone=False).answer, replayed=True)

    def _joined(
        self, prepared: Sequence[_Prepared], actor: str, render: Callable[[Row], bytes], join: Join
    ) -> "_Attempt[_Prepared, _New]":
        news = [self.new(one, actor) for one in prepared]
        return _Attempt(prepared=prepared, news=news, body=join([render(self.as_stored(new)) for new in news]))

    async def _stored(
        self, build: "Callable[[], Awaitable[_Attempt[_Prepared, _New]]]", key: RequestKey | None
    ) -> "tuple[_Attempt[_Prepared, _New], Mapping[int, Answer]]":
        """Build and store, again while nothing but drawn names are taken. What was refused is by place."""
        for draws_left in range(_NAME_DRAWS - 1, -1, -1):
            attempt = await build()
            news = list(attempt.news)
            if key is not None:
                kept = IdempotencyKey(scope=key.scope, key=key.key, fingerprint=key.fingerprint, answer=attempt.body)
                news[0] = replace(news[0], idempotency=kept)
            refused = await self._decided(partial(self.store, news))
            if not refused:
                self._hint()
            elif draws_left and _is_luck(refused, attempt.prepared):
                continue
            return attempt, refused
        raise AssertionError("the last draw is answered")

    async def _decided(self, store: Callable[[], Awaitable[Mapping[int, Answer]]]) -> Mapping[int, Answer]:
        """Wait for whoever holds the same key, but not for ever."""
        deadline = self._clock.monotonic() + _WAIT_FOR_WINNER
        while True:
            refused = await store()
            if not isinstance(refused.get(0), KeyInFlight) or self._clock.monotonic() >= deadline:
                return refused
            await asyncio.sleep(_LOOK_AGAIN)

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
            self.check_sum(prepared, len(documents))
            await asyncio.sleep(0)  # a hundred large manifests must not hold up everybody else
        wrong = len(documents) - len(prepared)
        if wrong and are_valid:
            raise violation(
                f"the pod policy does not allow {wrong} of the {len(documents)} {self._what}s; none was stored",
                problems,
            )
        problems.raise_if_any(f"{wrong} of the {len(documents)} manifests are not valid; none was stored")
        return prepared

    def _replayed(self, refused: Mapping[int, Answer], prepared: Sequence[_Prepared], *, alone: bool) -> Replayed:
        """The first answer of a repeated request; every other refusal is raised."""
        match refused.get(0):
            case Replayed() as first:
                return first
            case KeyConflict():
                raise _key_reused()
            case KeyInFlight():
                detail = "a request with this Idempotency-Key is still under way: repeat it later"
                raise Conflict(detail, code="KeyInFlight")
        bases = {place: "" if alone else f"/items/{place}" for place in sorted(refused)}
        over = [
            said.error(f"{base}/spec") for place, base in bases.items() if isinstance(said := refused[place], OverLimit)
        ]
        if over:
            one, several = f"the {self._what} has no room now", f"these {self._what}s have no room now; none was stored"
            raise Conflict(one if alone else several, code="TooManyPods", errors=over)
        taken = [
            _name_taken(said, prepared[place].name, base)
            for place, base in bases.items()
            if isinstance(said := refused[place], NameTaken)
        ]
        one = f"a name that this {self._what} needs is in use"
        several = f"names that these {self._what}s need are in use; none was stored"
        raise Conflict(one if alone else several, code="NameTaken", errors=taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt(Generic[_Prepared, _New]):
    """What would be stored, and the body of the answer if it is."""

    prepared: Sequence[_Prepared]
    news: Sequence[_New]
    body: bytes


def _below(place: int, refused: DomainError) -> Iterable[FieldError]:
    if not refused.errors:
        yield FieldError(pointer=f"/items/{place}", code=refused.code, detail=refused.message)
    for error in refused.errors:
        yield replace(error, pointer=f"/items/{place}{error.pointer}")


def _clashes(prepared: Sequence[Prepared]) -> dict[int, FieldError]:
    """What needs a name that another one before it needs."""
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


def _is_luck(refused: Mapping[int, Answer], prepared: Sequence[Prepared]) -> bool:
    """Only drawn names are taken: others may be drawn."""
    return all(isinstance(said, NameTaken) and prepared[place].generated for place, said in refused.items())


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


def _name_taken(taken: NameTaken, wanted: str, base: str) -> FieldError:
    holder = f"the {taken.holder} {taken.job_name} ({taken.job_uid})"
    if taken.kind == NameKind.JOB and taken.name == wanted:
        detail = f"{holder} has this name" + (", which is free when its objects are removed" if taken.leaving else "")
    else:
        detail = f"{holder} uses the {taken.kind} name {taken.name}"
    return FieldError(
        pointer=f"{base}/metadata/name",
        code="NameTaken",
        detail=detail,
        accepted="another name, or wait until that one is free",
    )
