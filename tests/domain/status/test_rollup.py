"""From replicas to the job: buckets, the phase of a job that goes on, and why it waits."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.plan import Rank
from app.domain.status.failures import crashed_replicas, failure_of
from app.domain.status.observed import ClusterRefusal, ObservedJob, PendingReason, RefusalVerdict
from app.domain.status.records import Attempt, JobPendingReason, JobStatus, Replica, ReplicaFailure
from app.domain.status.rollup import (
    MAX_REASONS,
    OTHER_MESSAGES,
    aggregate,
    bucket,
    has_to_start,
    pending_reasons,
    situation,
)
from app.domain.vocabulary import JobPhase, Outcome, PendingCode, Reason, ReplicaPhase, StopReason
from tests.support.plans import T0, W0, W1, a_pod, a_replica, an_attempt, at, by_rank, ended, running_status

P = ReplicaPhase


@pytest.mark.parametrize(
    ("replica", "going_on", "at_an_end"),
    [
        (a_replica(), P.RUNNING, P.RUNNING),
        (a_replica(attempt=an_attempt(stopping=StopReason.PAUSE)), P.CREATING, P.RUNNING),
        (ended(W0, Outcome.SUCCEEDED), P.SUCCEEDED, P.SUCCEEDED),
        (ended(W0, Outcome.FAILED), P.FAILED, P.FAILED),
        (ended(W0, Outcome.DISRUPTED), P.FAILED, P.FAILED),
        (ended(W0, Outcome.FAILED, settled=False), P.CREATING, P.FAILED),
        (ended(W0, Outcome.DISRUPTED, settled=False), P.CREATING, P.DELETED),
        (ended(W0, Outcome.STOPPED, settled=False), P.CREATING, P.DELETED),
    ],
)
def test_an_end_that_another_attempt_follows_counts_as_creating(
    replica: Replica, going_on: ReplicaPhase, at_an_end: ReplicaPhase
) -> None:
    assert bucket(replica, restarting=True) is going_on
    assert bucket(replica, restarting=False) is at_an_end


replicas = st.builds(
    Replica,
    key=st.just(W0),
    attempt=st.builds(
        Attempt, number=st.just(1), phase=st.sampled_from(ReplicaPhase), outcome=st.none() | st.sampled_from(Outcome)
    ),
    settled=st.booleans(),
)


@given(st.lists(replicas), st.booleans())
def test_the_aggregate_sums_to_the_replicas(some: list[Replica], restarting: bool) -> None:  # noqa: FBT001
    counts = aggregate(some, restarting=restarting)
    assert set(counts) == set(ReplicaPhase)
    assert sum(counts.values()) == len(some)


@pytest.mark.parametrize(
    ("status", "counts", "expected"),
    [
        (JobStatus(), {P.CREATING: 2}, JobPhase.CREATING),
        (JobStatus(), {P.CREATING: 1, P.PENDING: 1}, JobPhase.PENDING),
        (JobStatus(), {P.PENDING: 2}, JobPhase.PENDING),
        (JobStatus(), {P.PENDING: 1, P.RUNNING: 1}, JobPhase.PENDING),
        (JobStatus(), {P.RUNNING: 2}, JobPhase.RUNNING),
        (JobStatus(), {P.RUNNING: 1, P.SUCCEEDED: 1}, JobPhase.RUNNING),
        (running_status(), {P.CREATING: 1, P.RUNNING: 1}, JobPhase.RESTARTING),
        (running_status(), {P.UNKNOWN: 1, P.RUNNING: 1}, JobPhase.RUNNING),
        (running_status(), {P.UNKNOWN: 1, P.SUCCEEDED: 1}, JobPhase.UNKNOWN),
        (running_status(), {P.UNKNOWN: 2}, JobPhase.UNKNOWN),
        (running_status(), {P.UNKNOWN: 1, P.CREATING: 1}, JobPhase.RESTARTING),
        (running_status(phase=JobPhase.RESUMING), {P.CREATING: 1, P.RUNNING: 1}, JobPhase.RESUMING),
        (running_status(phase=JobPhase.RESUMING), {P.RUNNING: 2}, JobPhase.RUNNING),
        (running_status(), {P.FAILED: 2}, JobPhase.RUNNING),
    ],
)
def test_the_phase_of_a_job_that_goes_on(
    status: JobStatus, counts: Mapping[ReplicaPhase, int], expected: JobPhase
) -> None:
    assert situation(status, {phase: counts.get(phase, 0) for phase in ReplicaPhase}, {}, None, {}).phase is expected


@pytest.mark.parametrize(
    ("replica", "expected"),
    [
        (a_replica(attempt=an_attempt(phase=P.CREATING)), True),
        (a_replica(attempt=an_attempt(phase=P.PENDING)), True),
        (ended(W0, Outcome.FAILED, settled=False), True),
        (ended(W0, Outcome.FAILED), False),
        (a_replica(), False),
        (a_replica(attempt=an_attempt(phase=P.UNKNOWN)), False),
    ],
)
def test_a_job_waits_for_replicas_that_have_yet_to_start(replica: Replica, *, expected: bool) -> None:
    assert has_to_start(replica) is expected


PREPARING = a_replica(W0, an_attempt(phase=P.PENDING))
CREATING = a_replica(W0, an_attempt(seen=False, phase=P.CREATING))
QUOTA = ClusterRefusal(
    verdict=RefusalVerdict.RETRY, code=PendingCode.QUOTA_EXCEEDED, message="exceeded quota", since=T0
)
NO_ROOM = {"pending_events": {"worker0-1": PendingReason(code=PendingCode.UNSCHEDULABLE, message="full")}}
NO_VOLUME = PendingReason(code=PendingCode.VOLUME, message="no volume")
PULL = PendingReason(code=PendingCode.IMAGE_PULL, message="not found")


@pytest.mark.parametrize(
    ("replica", "pods", "observed", "expected"),
    [
        (CREATING, [], {}, None),
        (CREATING, [], {"refusals": {W0: QUOTA}}, "QuotaExceeded: exceeded quota"),
        (CREATING, [], {"job_refusal": QUOTA}, "QuotaExceeded: exceeded quota"),
        (a_replica(), [a_pod()], {"job_refusal": QUOTA}, None),
        (
            a_replica(W0, an_attempt(2, seen=False, phase=P.CREATING)),
            [a_pod(attempt=1)],
            {"refusals": {W0: QUOTA}},
            "NameTerminating: the pod of the previous attempt is still terminating",
        ),
        (
            a_replica(W0, an_attempt(2, seen=False, phase=P.CREATING), retry_at=at(20)),
            [],
            {"refusals": {W0: QUOTA}},
            "BackOff: attempt 2 starts at 2030-01-01T00:00:20+00:00",
        ),
        (a_replica(W0, an_attempt(2, seen=False, phase=P.CREATING), retry_at=at(0)), [], {}, None),
        (PREPARING, [a_pod(phase=P.PENDING, pending=PULL)], {}, "ImagePull: not found"),
        (
            PREPARING,
            [a_pod(phase=P.PENDING, pending=PULL)],
            {"pending_events": {"worker0-1": NO_VOLUME}},
            "ImagePull: not found",
        ),
        (
            PREPARING,
            [a_pod(phase=P.PENDING, pending=PendingReason(code=PendingCode.CONTAINER_CREATING, message="wait"))],
            {"pending_events": {"worker0-1": NO_VOLUME}},
            "Volume: no volume",
        ),
        (CREATING, [a_pod(phase=P.CREATING, group="g")], NO_ROOM, "GangUnschedulable: full"),
        (ended(W0, Outcome.SUCCEEDED), [], {"job_refusal": QUOTA}, None),
        (
            a_replica(attempt=an_attempt(stopping=StopReason.PAUSE)),
            [a_pod()],
            {},
            "NameTerminating: the pod of the previous attempt is still terminating",
        ),
    ],
)
def test_why_a_replica_waits(replica: Replica, pods: list[Any], observed: dict[str, Any], expected: str | None) -> None:
    found = pending_reasons({W0: replica}, {W0: pods}, ObservedJob(**observed), at(10), {})
    assert [f"{reason.code}: {reason.message}" for reason in found] == ([expected] if expected else [])


def test_reasons_are_grouped_and_the_most_frequent_comes_first() -> None:
    some = by_rank(*(a_replica(W0._replace(rank=rank), an_attempt(seen=False, phase=P.CREATING)) for rank in range(30)))
    other = ClusterRefusal(
        verdict=RefusalVerdict.WAIT, code=PendingCode.PREVIOUS_OBJECTS, message="still there", since=at(5)
    )
    refusals = {key: replace_since(QUOTA, key.rank) for key in some} | {W1: other}
    first, second = pending_reasons(some, {}, ObservedJob(refusals=refusals), at(10), {})
    assert (first.code, first.count, len(first.replicas), first.since) == ("QuotaExceeded", 29, 20, T0)
    assert (second.code, second.count, second.replicas) == ("PreviousObjects", 1, ("worker[1]",))


def test_reasons_with_many_messages_are_few() -> None:
    """Each of many replicas may wait with another message, and the status is small nevertheless."""
    keys = [W0._replace(rank=rank) for rank in range(500)]
    waiting = by_rank(*(a_replica(key, an_attempt(key=key, seen=False, phase=P.CREATING)) for key in keys))
    refusals = {
        key: ClusterRefusal(
            verdict=RefusalVerdict.WAIT,
            code=PendingCode.QUOTA_EXCEEDED if key.rank % 5 else PendingCode.CLUSTER_DENIED,
            message=f"refused {key.rank}",
            since=at(key.rank),
        )
        for key in keys
    }
    reasons = pending_reasons(waiting, {}, ObservedJob(refusals=refusals), at(999), {})
    assert len(reasons) == MAX_REASONS + 2
    assert sum(reason.count for reason in reasons) == len(keys)
    assert {reason.code for reason in reasons[MAX_REASONS:]} == {"ClusterDenied", "QuotaExceeded"}
    assert all(reason.message == OTHER_MESSAGES for reason in reasons[MAX_REASONS:])
    assert all(len(reason.replicas) <= 20 for reason in reasons)


def replace_since(refusal: ClusterRefusal, seconds: int) -> ClusterRefusal:
    return ClusterRefusal(verdict=refusal.verdict, code=refusal.code, message=refusal.message, since=at(seconds))


@pytest.mark.parametrize(
    ("lost", "before", "reason"),
    [
        ([Outcome.FAILED], Reason.STARTED, Reason.RESTARTING),
        ([Outcome.SUCCEEDED], Reason.STARTED, Reason.RESTARTING),
        ([Outcome.DISRUPTED], Reason.STARTED, Reason.DISRUPTED),
        ([Outcome.DISRUPTED, Outcome.FAILED], Reason.STARTED, Reason.RESTARTING),
        ([Outcome.FAILED], Reason.DISRUPTED, Reason.RESTARTING),
        ([Outcome.DISRUPTED], Reason.RESTARTING, Reason.RESTARTING),
        ([], Reason.DISRUPTED, Reason.DISRUPTED),
    ],
)
def test_a_restart_is_called_a_disruption_while_nothing_else_has_happened(
    lost: list[Outcome], before: Reason, reason: Reason
) -> None:
    replicas = by_rank(*(ended(Rank("worker", i), outcome, settled=False) for i, outcome in enumerate(lost)))
    phase = JobPhase.RUNNING if before is Reason.STARTED else JobPhase.RESTARTING
    counts = dict.fromkeys(ReplicaPhase, 0) | {P.CREATING: 2}
    found = situation(running_status(phase=phase, reason=before), counts, replicas, None, {})
    assert (found.phase, found.reason) == (JobPhase.RESTARTING, reason)


def test_a_change_of_size_comes_before_a_restart() -> None:
    counts = dict.fromkeys(ReplicaPhase, 0) | {P.CREATING: 1, P.RUNNING: 1}
    assert situation(running_status(), counts, {}, "worker from 2 to 3", {}).phase is JobPhase.SCALING


def crash(key: Rank, number: int = 1, **how: Any) -> ReplicaFailure:
    return failure_of(key, an_attempt(number, key=key, **({"outcome": Outcome.FAILED} | how)))


MISSING: dict[str, Any] = {"exit_code": 127, "reason": "StartError", "message": "exec: no paddle_k8s\n"}
COMES_BACK = a_replica(W0, an_attempt(2, seen=False, phase=P.CREATING), retry_at=at(20))
IS_BACK = a_replica(W0, an_attempt(2, phase=P.PENDING))
ENDED = ended(W0, Outcome.FAILED, settled=False, how=MISSING)
WAITS = a_replica(W1, an_attempt(key=W1, seen=False, phase=P.CREATING))
BOUND = a_replica(W1, an_attempt(key=W1, phase=P.PENDING))
RUNS = a_replica(W1, an_attempt(key=W1))


@pytest.mark.parametrize(
    ("replicas", "how", "phase", "reason", "message"),
    [
        (
            [ENDED, RUNS],
            MISSING,
            JobPhase.PENDING,
            Reason.RESTARTING,
            (
                "1 of 2 replicas failed before the job first ran: "
                "worker[0] failed in attempt 1 (exit code 127, StartError): exec: no paddle_k8s"
            ),
        ),
        (
            [COMES_BACK, WAITS],
            {"exit_code": 1},
            JobPhase.CREATING,
            Reason.RESTARTING,
            (
                "1 of 2 replicas failed before the job first ran: worker[0] failed in attempt 1 (exit code 1); "
                "others yet to start: 1"
            ),
        ),
        (
            [COMES_BACK, BOUND],
            {"outcome": Outcome.DISRUPTED, "reason": "Evicted"},
            JobPhase.PENDING,
            Reason.DISRUPTED,
            (
                "1 of 2 replicas failed before the job first ran: worker[0] was taken away in attempt 1 (Evicted); "
                "others yet to start: 1"
            ),
        ),
        (
            [IS_BACK, RUNS],
            {"exit_code": 1},
            JobPhase.PENDING,
            Reason.WAITING_FOR_PODS,
            "1 of 2 replicas have not started: worker[0] failed in attempt 1 (exit code 1)",
        ),
        (
            [IS_BACK, WAITS],
            {"exit_code": 1},
            JobPhase.PENDING,
            Reason.CREATING,
            "1 of 2 replicas have no node yet: worker[0] failed in attempt 1 (exit code 1)",
        ),
    ],
)
def test_the_message_describes_a_failure_before_the_first_run(
    replicas: list[Replica], how: dict[str, Any], phase: JobPhase, reason: Reason, message: str
) -> None:
    counts = aggregate(replicas, restarting=True)
    found = situation(JobStatus(), counts, by_rank(*replicas), None, {W0: crash(W0, **how)})
    assert (found.phase, found.reason, found.message) == (phase, reason, message)


def test_the_message_of_a_restart_lists_three_failures_and_the_number_of_others() -> None:
    keys = [Rank("worker", rank) for rank in range(5)]
    replicas = by_rank(*(ended(key, Outcome.FAILED, settled=False) for key in keys))
    counts = aggregate(replicas.values(), restarting=True)
    found = situation(running_status(), counts, replicas, None, {key: crash(key, exit_code=3) for key in keys})
    assert found.message == (
        "5 of 5 replicas are restarting: worker[0] failed in attempt 1 (exit code 3); "
        "worker[1] failed in attempt 1 (exit code 3); worker[2] failed in attempt 1 (exit code 3); and 2 more"
    )


REASONS = {
    "no node fits": JobPendingReason(
        code=PendingCode.UNSCHEDULABLE,
        message="0/3 nodes: 3 Insufficient nvidia.com/gpu",
        since=T0,
        replicas=(),
        count=1,
    ),
    "no scheduler": JobPendingReason(
        code=PendingCode.NOT_SCHEDULED, message="no scheduler has reported a result", since=T0, replicas=(), count=2
    ),
    "old pod": JobPendingReason(
        code=PendingCode.NAME_TERMINATING, message="terminating", since=T0, replicas=(), count=1
    ),
    "no image": JobPendingReason(code=PendingCode.IMAGE_PULL, message="not found", since=T0, replicas=(), count=2),
}


@pytest.mark.parametrize(
    ("status", "reasons", "message"),
    [
        (JobStatus(), [], "2 of 2 replicas have no node yet"),
        (JobStatus(), ["no scheduler"], "NotScheduled: no scheduler has reported a result"),
        (
            JobStatus(),
            ["no scheduler", "old pod", "no node fits"],
            "Unschedulable: 0/3 nodes: 3 Insufficient nvidia.com/gpu (1 of 2 replicas)",
        ),
        (JobStatus(), ["no image", "no node fits"], "ImagePull: not found"),
        (JobStatus(), ["no scheduler", "old pod"], "NameTerminating: terminating (1 of 2 replicas)"),
        (running_status(), ["no scheduler"], "2 of 2 replicas are restarting"),
        (running_status(), ["no image"], "2 of 2 replicas are restarting: ImagePull: not found"),
        (
            running_status(phase=JobPhase.RESUMING),
            ["no image"],
            "2 of 2 replicas are coming back: ImagePull: not found",
        ),
    ],
)
def test_the_message_of_a_waiting_job_is_the_most_informative_pending_reason(
    status: JobStatus, reasons: list[str], message: str
) -> None:
    waiting = by_rank(*(a_replica(key, an_attempt(key=key, seen=False, phase=P.CREATING)) for key in (W0, W1)))
    counts = aggregate(waiting.values(), restarting=True)
    assert situation(status, counts, waiting, None, {}, [REASONS[name] for name in reasons]).message == message


@pytest.mark.parametrize(
    ("replica", "expected"),
    [
        (ENDED, "BackOff: attempt 1 failed (exit code 127, StartError): exec: no paddle_k8s; attempt 2 follows"),
        (
            COMES_BACK,
            (
                "BackOff: attempt 1 failed (exit code 127, StartError): exec: no paddle_k8s; "
                "attempt 2 starts at 2030-01-01T00:00:20+00:00"
            ),
        ),
    ],
)
def test_a_back_off_names_the_failure(replica: Replica, expected: str) -> None:
    (found,) = pending_reasons({W0: replica}, {}, ObservedJob(), at(10), {W0: crash(W0, **MISSING)})
    assert f"{found.code}: {found.message}" == expected


@pytest.mark.parametrize(
    ("replica", "former", "known", "expected"),
    [
        (ENDED, None, None, 1),
        (ended(W0, Outcome.DISRUPTED, settled=False), None, None, 1),
        (ended(W0, Outcome.FAILED), None, None, None),
        (ended(W0, Outcome.SUCCEEDED, settled=False), None, None, None),
        (ended(W0, Outcome.STOPPED, settled=False), None, None, None),
        (COMES_BACK, ENDED.attempt, None, 1),
        (COMES_BACK, an_attempt(1, outcome=Outcome.SUCCEEDED), None, None),
        (COMES_BACK, an_attempt(1, outcome=Outcome.FAILED, stopping=StopReason.PAUSE), None, None),
        (COMES_BACK, None, crash(W0), 1),
        (COMES_BACK, None, None, None),
        (IS_BACK, None, crash(W0), 1),
        (a_replica(W0, an_attempt(2)), None, crash(W0), None),  # it runs
        (a_replica(W0, an_attempt(3, seen=False, phase=P.CREATING)), None, crash(W0), None),  # not the last attempt
        (WAITS, None, None, None),
    ],
)
def test_a_crash_is_known_until_the_replica_runs_again(
    replica: Replica, former: Attempt | None, known: ReplicaFailure | None, expected: int | None
) -> None:
    former_attempts = {replica.key: former} if former is not None else {}
    found = crashed_replicas({replica.key: replica}, former_attempts, [known] if known is not None else [])
    assert [failure.attempt for failure in found.values()] == ([] if expected is None else [expected])
