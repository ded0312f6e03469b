"""How long pods hold what they request, and how long their job works. Times are milliseconds of the installation.

pod:  bound ──────── started ─────────────────────────────── ended
job:      queued      others are awaited   works      stopped or ended
use:  of its outcome     │     idle     │ of its outcome │    idle
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from app.domain.kubernetes.pod_requests import pod_requests
from app.domain.kubernetes.quantity import whole
from app.domain.vocabulary import Outcome, StopReason, Use

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)

CPU: Final = "cpu"
PODS: Final = "pods"
JOBS: Final = "jobs"
"""The resource of which a waiting job uses one: the use Queued has no other."""

# jobgate stopped these attempts because the cluster took their nodes or quota, or had none for the others.
_BY_THE_CLUSTER: Final = frozenset({StopReason.EVICT, StopReason.UNPLACEABLE, StopReason.START_DEADLINE})
_USE_OF_OUTCOME: Final[Mapping[Outcome | None, Use]] = {
    None: Use.USEFUL,
    Outcome.SUCCEEDED: Use.USEFUL,
    Outcome.FAILED: Use.REPEATED,
    Outcome.DISRUPTED: Use.DISRUPTED,
    Outcome.STOPPED: Use.USEFUL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A time from `since` on, which goes on while `until` is None."""

    since: int
    until: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The time in which the pod of an attempt holds `requests` on a node.

    `requests` are millicores of `cpu`, whole units of every other resource, such as bytes, and one of `pods`. `started`
    is when its replica was first seen running. `work` is the work of the job as it was when the hold ended.
    """

    since: int
    requests: Mapping[str, int]
    started: int | None = None
    until: int | None = None
    work: Period | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUse:
    """What a job needs for its usage besides the holds of its attempts.

    `queued_since` is set while the job waits and holds no node; `queued` is how long it has waited so before. `work`
    is from when enough of its replicas run until it is stopped or ends. `ended` has the sums of holds that have ended,
    by resource and use: amounts times milliseconds. These are integers that JSON has as text, because they may be too
    large for its readers.
    """

    queued_since: int | None = None
    queued: int = 0
    work: Period | None = None
    ended: Mapping[str, Mapping[Use, Decimal]] = field(default_factory=dict)


UNUSED: Final = JobUse()


class UsePart(NamedTuple):
    """A part of a hold or of a wait with one use. It goes on while `until` is None."""

    use: Use
    since: int
    until: int | None


def milliseconds(time: datetime) -> int:
    return (time - _EPOCH) // _MILLISECOND


def held_requests(pod_spec: Mapping[str, Any]) -> dict[str, int]:
    """Return the requests of a pod as `Hold` has them. Fractions are rounded up, as the scheduler does."""
    amounts = {name: whole(amount * 1000 if name == CPU else amount) for name, amount in pod_requests(pod_spec).items()}
    return {**{name: amount for name, amount in amounts.items() if amount > 0}, PODS: 1}


def use_of(outcome: Outcome | None, stopping: StopReason | None) -> Use:
    """Return what the time of an attempt was good for, while its job worked."""
    if outcome is Outcome.STOPPED and stopping in _BY_THE_CLUSTER:
        return Use.DISRUPTED
    return _USE_OF_OUTCOME[outcome]


def end_hold(hold: Hold, job: JobUse, now: int) -> Hold:
    """Return the hold with its end. No clock makes it negative."""
    return replace(hold, until=max(hold.since, now), work=job.work)


def parts_of(hold: Hold, job: JobUse, outcome: Outcome | None, stopping: StopReason | None) -> Iterator[UsePart]:
    """Yield the parts of a hold, which follow each other without gaps. A hold that has ended needs no `job`."""
    work = hold.work if hold.until is not None else job.work
    own = use_of(outcome, stopping)
    # A replica that has succeeded did not wait for others.
    waits = hold.started if outcome is not Outcome.SUCCEEDED else None
    marks = [
        (own, hold.since),
        (Use.IDLE, waits),
        (own, work.since if work is not None else None),
        (Use.IDLE, work.until if work is not None else None),
    ]
    # Without a start, there is no wait that the work could end.
    yield from _between([mark for mark in marks if mark[1] is not None], hold.until)


def _between(marks: list[tuple[Use, Any]], until: int | None) -> Iterator[UsePart]:
    """Yield what lies between marks. A mark that is before an earlier one counts as at the same time."""
    use, since = marks[0]
    for following, at in marks[1:]:
        end = max(since, at if until is None else min(at, until))
        if end > since:
            yield UsePart(use, since, end)
        use, since = following, end
    if until is None or until > since:
        yield UsePart(use, since, until)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMoment:
    """What a reconcile finds of a job. `works` says that enough replicas run, `stops` that the job is stopped or has
    ended, `starts` that new attempts are allowed, `waits` that it is neither paused nor about to end, and `holds` that
    a replica has a node. `submitted` is when a job that waits for the first time began to.
    """

    works: bool
    stops: bool
    starts: bool
    waits: bool
    holds: bool
    submitted: int | None
    now: int


def next_use(before: JobUse, moment: JobMoment) -> JobUse:
    """Return the use of the job after a reconcile."""
    work, now = _next_work(before.work, moment), moment.now
    working = work is not None and work.until is None
    queued = moment.waits and not working and not moment.holds
    if queued == (before.queued_since is not None):
        return before if work == before.work else replace(before, work=work)
    if queued:
        since = now if moment.submitted is None else min(moment.submitted, now)
        return replace(before, work=work, queued_since=since)
    assert before.queued_since is not None, "a job that is not queued any more was queued"
    return replace(before, work=work, queued_since=None, queued=before.queued + max(0, now - before.queued_since))


def _next_work(work: Period | None, moment: JobMoment) -> Period | None:
    if moment.stops:
        since = work.since if work is not None else moment.now
        ended = work.until if work is not None else None
        return Period(since=since, until=max(since, moment.now) if ended is None else ended)
    if work is not None and work.until is None:
        return work
    if moment.works:
        return Period(since=moment.now)
    # The former work is forgotten once the job may start again: what it holds then waits for others.
    return None if moment.starts else work


def wait_of(before: JobUse, after: JobUse) -> UsePart | None:
    """Return the wait in the queue that ended between two states of a job."""
    if before.queued_since is None or after.queued_since is not None or after.queued == before.queued:
        return None
    return UsePart(Use.QUEUED, before.queued_since, before.queued_since + after.queued - before.queued)
