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
from typing import Any, Final, Generic, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from app.base.clock import Clock
from app.base.offload import offload
from app.db.objects.idempotency import Replayed
from app.db.objects.submission import Answer, NameTaken, New
from app.domain.access.actors import Actor
from app.domain.errors import Conflict, DomainError, FieldError, Forbidden, InvalidManifest, Problems
from app.domain.kinds.posted_metadata import SUFFIX_ALPHABET, SUFFIX_LENGTH
from app.domain.plan import Manifest
from app.domain.policy.pod_policy import violation
from app.domain.reservations.name_ranges import NameKind, NameRange, split
from app.domain.reservations.pod_limits import OverLimit
from app.services.hints import Hint
from app.services.submitting.request_keys import RequestKey, earlier_answer, past_same_key

Join: TypeAlias = Callable[[Iterable[bytes]], bytes]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitRequest:
    """The namespace, the actor and the origin of new objects.

    Args:
        administers: whether the caller may exempt objects from the pod policy.
        posted: the document that stays readable as the posted one, by default the submitted one.
        retry_of: the uid of the object that the new one repeats.
    """

    namespace: str
    actor: Actor
    administers: bool = False
    posted: Manifest | None = None
    retry_of: UUID | None = None


_New = TypeVar("_New", bound=New[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(Generic[_New]):
    """A valid document as a new object.

    `generated` is True if its name was drawn, so that another one may be drawn. `is_slow` says that rendering it takes
    so long that it must run in a thread.
    """

    new: _New
    generated: bool
    is_slow: bool


_Prepared = TypeVar("_Prepared", bound=Prepared[Any])


# The objects to store, and the body of the answer if they are stored.
_Built: TypeAlias = tuple[Sequence[_Prepared], bytes]


class Submitter(ABC, Generic[_Prepared, _New]):
    """Submits objects of one resource, and answers once they are durable.

    `what` is the word for an object in messages. `hint` announces new objects to the controller.
    """

    def __init__(self, what: str, clock: Clock, hint: Hint, randomness: random.Random) -> None:
        self._what = what
        self._clock = clock
        self._hint = hint
        self._random = randomness

    @abstractmethod
    async def prepare(self, document: Manifest, request: SubmitRequest) -> _Prepared:
        """Validate a document and complete it, without the database, and in a thread if it is large.

        Raises:
            InvalidManifest, Forbidden: the document is not valid. The error lists all problems.
        """

    @abstractmethod
    async def store(self, news: Sequence[_New]) -> Mapping[int, Answer]:
        """Store all objects durably, or none. Return the refusals by index; none means success.

        The first object carries the idempotency key of the request.
        """

    @abstractmethod
    def remedy(self, taken: NameTaken) -> str:
        """Return what a client can do about a taken name, for the `accepted` field of the error."""

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
        request: SubmitRequest,
        *,
        key: RequestKey | None,
        render: Callable[[_Prepared], bytes],
    ) -> Created:
        """Store the object, and return the response body that `render` makes.

        A repeated request (same key and fingerprint) gets the stored answer to the first one.

        Raises:
            InvalidManifest, Forbidden, NotStorable: the document is not valid. Nothing was stored.
            Conflict: a name or the idempotency key is in use, or a limit of pods is reached. Nothing was stored.
        """
        build = partial(self._build, document, request, render)
        prepared, body, refused = await self._build_and_store(build, key)
        if not refused:
            row = prepared[0].new.row
            return Created(uid=row.uid, name=row.name, version=row.version, body=body, replayed=False)
        first = self._first_answer(refused, prepared, alone=True)
        # That of the stored answer: this attempt may have drawn another name.
        name = msgspec.json.decode(first.answer)["name"]
        return Created(uid=first.uid, name=name, version=1, body=first.answer, replayed=True)

    async def prepare_together(self, documents: Sequence[Manifest], request: SubmitRequest) -> list[_Prepared]:
        """Validate several documents and complete them, without the database.

        Raises:
            InvalidManifest, Forbidden: some are not valid. The error lists all problems, each below `/items/<index>`.
        """
        for draws_left in range(_NAME_DRAWS - 1, -1, -1):
            prepared = await self._prepare_each(documents, request)
            clashes = await offload(_clashes, prepared)
            if not clashes:
                return prepared
            if not draws_left or not all(prepared[index].generated for index in clashes):
                raise InvalidManifest(f"two of the {self._what}s need the same name", errors=clashes.values())
        raise AssertionError("the last draw is answered")

    async def submit_together(
        self,
        documents: Sequence[Manifest],
        request: SubmitRequest,
        *,
        key: RequestKey | None,
        render: Callable[[_Prepared], bytes],
        join: Join,
    ) -> CreatedTogether:
        """Store all objects or none, and return the answer that `join` makes of what `render` makes of each.

        A repeated request (same key and fingerprint) gets the stored answer to the first one.

        Raises:
            InvalidManifest, Forbidden, NotStorable: a document is not valid. Nothing was stored.
            Conflict: a name or the idempotency key is in use, or a limit of pods is reached. Nothing was stored.
        """
        build = partial(self._build_together, documents, request, render, join)
        prepared, body, refused = await self._build_and_store(build, key)
        if not refused:
            return CreatedTogether(body=body, replayed=False)
        return CreatedTogether(body=self._first_answer(refused, prepared, alone=False).answer, replayed=True)

    async def _build(
        self, document: Manifest, request: SubmitRequest, render: Callable[[_Prepared], bytes]
    ) -> _Built[_Prepared]:
        prepared = await self.prepare(document, request)
        return [prepared], await offload(render, prepared) if prepared.is_slow else render(prepared)

    async def _build_together(
        self, documents: Sequence[Manifest], request: SubmitRequest, render: Callable[[_Prepared], bytes], join: Join
    ) -> _Built[_Prepared]:
        prepared = await self.prepare_together(documents, request)
        return prepared, await offload(lambda: join([render(item) for item in prepared]))

    async def _build_and_store(
        self, build: Callable[[], Awaitable[_Built[_Prepared]]], key: RequestKey | None
    ) -> tuple[Sequence[_Prepared], bytes, Mapping[int, Answer]]:
        """Build and store, and repeat while only drawn names are taken. Return the last attempt and its refusals."""
        for draws_left in range(_NAME_DRAWS - 1, -1, -1):
            prepared, body = await build()
            news = [item.new for item in prepared]
            if key is not None:
                # The body is stored with the objects in one transaction, so a repetition gets the same bytes.
                news[0] = replace(news[0], idempotency=key.with_answer(body))
            refused = await past_same_key(partial(self.store, news), self._clock)
            if not refused:
                self._hint()
            elif draws_left and _only_drawn_names_taken(refused, prepared):
                continue
            return prepared, body, refused
        raise AssertionError("the last draw is answered")

    async def _prepare_each(self, documents: Sequence[Manifest], request: SubmitRequest) -> list[_Prepared]:
        problems = Problems()
        prepared: list[_Prepared] = []
        are_valid = True
        for index, document in enumerate(documents):
            try:
                prepared.append(await self.prepare(document, request))
            except (InvalidManifest, Forbidden) as error:
                are_valid = are_valid and isinstance(error, Forbidden)
                problems.extend(_below(index, error))
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
        if (first := earlier_answer(refused.get(0))) is not None:
            return first
        bases = {index: "" if alone else f"/items/{index}" for index in sorted(refused)}
        over = [
            answer.error(f"{base}/spec")
            for index, base in bases.items()
            if isinstance(answer := refused[index], OverLimit)
        ]
        if over:
            one = f"the {self._what} would exceed the limit of pods"
            several = f"these {self._what}s would exceed the limit of pods; none was stored"
            raise Conflict(one if alone else several, code="TooManyPods", errors=over)
        taken = [
            _name_taken(answer, prepared[index].new.row.name, base, self.remedy(answer))
            for index, base in bases.items()
            if isinstance(answer := refused[index], NameTaken)
        ]
        one = f"a name that this {self._what} needs is in use"
        several = f"names that these {self._what}s need are in use; none was stored"
        raise Conflict(one if alone else several, code="NameTaken", errors=taken)


def _below(index: int, refused: DomainError) -> Iterable[FieldError]:
    if not refused.errors:
        yield FieldError(pointer=f"/items/{index}", code=refused.code, detail=refused.message)
    for error in refused.errors:
        yield replace(error, pointer=f"/items/{index}{error.pointer}")


def _clashes(prepared: Sequence[Prepared[Any]]) -> dict[int, FieldError]:
    """Return an error, by the index of the object, for each one that needs the same name as an earlier one."""
    seen: dict[tuple[str, str], list[tuple[NameRange, int]]] = defaultdict(list)
    clashes = {}
    for index, item in enumerate(prepared):
        for names in item.new.names:
            family = seen[names.kind, split(names.name)[0]]
            for other, first in family:
                name = names.first_shared(other)
                if name is not None:
                    own = "has the" if names.kind == NameKind.JOB else f"needs the {names.kind}"
                    detail = f"items[{first}] of this request {own} name {name}, too"
                    at = f"/items/{index}/metadata/name"
                    clashes[index] = FieldError(pointer=at, code="Duplicate", detail=detail, accepted="another name")
                    break
            family.append((names, index))
    return clashes


def _only_drawn_names_taken(refused: Mapping[int, Answer], prepared: Sequence[Prepared[Any]]) -> bool:
    return all(isinstance(answer, NameTaken) and prepared[index].generated for index, answer in refused.items())


def _name_taken(taken: NameTaken, wanted: str, base: str, remedy: str) -> FieldError:
    holder = f"the {taken.holder_kind} {taken.holder_name} ({taken.holder_uid})"
    if taken.kind == NameKind.JOB and taken.name == wanted:
        detail = f"{holder} has this name" + (", which is free once its objects are deleted" if taken.leaving else "")
    else:
        detail = f"{holder} uses the {taken.kind} name {taken.name}"
    return FieldError(pointer=f"{base}/metadata/name", code="NameTaken", detail=detail, accepted=remedy)
