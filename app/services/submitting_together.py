"""Several jobs of one request: all their errors come at once, then all are stored in one transaction, or none.

documents ─▶ each prepared, as if it came alone ─▶ no two need one name ─▶ one commit ─▶ one body
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from app.clock import Clock
from app.db.submissions import GroupCommit
from app.db.submit import Answer, KeyConflict, KeyInFlight, NameTaken, NewJob, Replayed
from app.domain.errors import Conflict, DomainError, FieldError, Forbidden, InvalidManifest, Problems
from app.domain.name_ranges import NameRange, split
from app.domain.plan import Manifest
from app.domain.pod_limits import OverLimit
from app.domain.policy.pod_policy import violation
from app.offload import offloaded
from app.services.submitting import (
    NAME_DRAWS,
    Hint,
    Prepared,
    Render,
    RequestKey,
    Submitter,
    as_stored,
    decided,
    kept_answer,
    key_in_flight,
    key_reused,
    name_taken,
)

Join: TypeAlias = Callable[[Iterable[bytes]], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTogether:
    """The answer to the request: its body, as it was sent the first time."""

    body: bytes
    replayed: bool


class TogetherSubmitter:
    """Answers nothing before all of it is durable. Its jobs have no more than `max_replicas` together."""

    def __init__(
        self, submitter: Submitter, commit: GroupCommit, clock: Clock, hint: Hint, *, max_replicas: int
    ) -> None:
        self._submitter = submitter
        self._commit = commit
        self._clock = clock
        self._hint = hint
        self._max_replicas = max_replicas

    async def prepare(
        self, documents: Sequence[Manifest], namespace: str, *, administers: bool = False
    ) -> list[Prepared]:
        """All that can be said of them without the database.

        Raises:
            InvalidManifest, Forbidden: with the errors of all of them, each below `/items/<place>`.
        """
        for draws_left in range(NAME_DRAWS - 1, -1, -1):
            prepared = await self._prepare_each(documents, namespace, administers=administers)
            clashes = await offloaded(_clashes, prepared)
            if not clashes:
                return prepared
            if not draws_left or not all(prepared[place].draft.generated for place in clashes):
                raise InvalidManifest("two of the jobs need one name", errors=clashes.values())
        raise AssertionError("the last draw is answered")

    async def submit(
        self,
        documents: Sequence[Manifest],
        namespace: str,
        *,
        actor: str,
        key: RequestKey | None,
        render: Render,
        join: Join,
        administers: bool = False,
    ) -> CreatedTogether:
        """Store all of them and answer with what `render` makes of each, joined, or with what was answered earlier.

        Raises:
            InvalidManifest, NotStorable: nothing was stored.
            Conflict: names are taken by live jobs, or the key is in use; nothing was stored.
        """
        for draws_left in range(NAME_DRAWS - 1, -1, -1):
            prepared = await self.prepare(documents, namespace, administers=administers)
            jobs = await offloaded(self._new_jobs, prepared, actor)
            body = await offloaded(_rendered, jobs, render, join)
            if key is not None:
                jobs[0] = replace(jobs[0], idempotency=kept_answer(key, body))
            refused = await decided(self._clock, partial(self._commit.submit_together, jobs), _is_in_flight)
            if not refused:
                self._hint()
                return CreatedTogether(body=body, replayed=False)
            if not (draws_left and _is_luck(refused, prepared)):
                return _refused(refused, prepared)
        raise AssertionError("the last draw is answered")

    def _new_jobs(self, prepared: Sequence[Prepared], actor: str) -> list[NewJob]:
        return [self._submitter.new_job(one, actor) for one in prepared]

    async def _prepare_each(
        self, documents: Sequence[Manifest], namespace: str, *, administers: bool
    ) -> list[Prepared]:
        problems, prepared, replicas = Problems(), [], 0
        are_valid = True
        for place, document in enumerate(documents):
            try:
                one = await self._submitter.prepare(document, namespace, administers=administers)
                prepared.append(one)
                replicas += len(one.plan.replicas)
            except (InvalidManifest, Forbidden) as error:
                are_valid = are_valid and isinstance(error, Forbidden)
                problems.extend(_below(place, error))
            self._check_sum(replicas, place, len(documents))
            await asyncio.sleep(0)  # a hundred large manifests must not hold up everybody else
        wrong = len(documents) - len(prepared)
        if wrong and are_valid:
            raise violation(
                f"the pod policy does not allow {wrong} of the {len(documents)} jobs; none was stored", problems
            )
        problems.raise_if_any(f"{wrong} of the {len(documents)} manifests are not valid; none was stored")
        return prepared

    def _check_sum(self, replicas: int, place: int, count: int) -> None:
        """Stop at the manifest that makes the list too large: those after it are not looked at."""
        if replicas <= self._max_replicas:
            return
        detail = f"the first {place + 1} of the {count} manifests have {replicas} replicas together"
        accepted = f"{self._max_replicas} replicas or fewer in one List"
        error = FieldError(pointer="/items", code="TooManyReplicas", detail=detail, accepted=accepted)
        raise InvalidManifest("the List has too many replicas; none was stored", errors=[error])


def _rendered(jobs: Iterable[NewJob], render: Render, join: Join) -> bytes:
    return join([render(as_stored(job)) for job in jobs])


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
                    detail = f"items[{first}] of this request needs the {names.kind} name {name}, too"
                    at = f"/items/{place}/metadata/name"
                    clashes[place] = FieldError(pointer=at, code="Duplicate", detail=detail, accepted="another name")
                    break
            family.append((names, place))
    return clashes


def _is_in_flight(refused: Mapping[int, Answer]) -> bool:
    return isinstance(refused.get(0), KeyInFlight)


def _is_luck(refused: Mapping[int, Answer], prepared: Sequence[Prepared]) -> bool:
    """Only drawn names are taken: others may be drawn."""
    return all(isinstance(said, NameTaken) and prepared[place].draft.generated for place, said in refused.items())


def _refused(refused: Mapping[int, Answer], prepared: Sequence[Prepared]) -> CreatedTogether:
    """A replay of the first answer is an answer, the rest is raised. The first job carries the key of all."""
    match refused.get(0):
        case Replayed(answer=first):
            return CreatedTogether(body=first, replayed=True)
        case KeyConflict():
            raise key_reused()
        case KeyInFlight():
            raise key_in_flight()
    problems = Problems()
    problems.extend(
        said.error(f"/items/{place}/spec") for place, said in sorted(refused.items()) if isinstance(said, OverLimit)
    )
    if problems:
        raise Conflict("these jobs have no room now; none was stored", code="TooManyPods", errors=problems.errors)
    problems.extend(
        name_taken(said, prepared[place].draft.name, f"/items/{place}")
        for place, said in sorted(refused.items())
        if isinstance(said, NameTaken)
    )
    raise Conflict("names that these jobs need are in use; none was stored", code="NameTaken", errors=problems.errors)
