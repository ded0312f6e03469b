"""The phases of a SampleJob, row by row."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.cache.reconcile.values import Complaint, JobObserved, JobRecord, PostOptions, Terminate
from app.domain.cache.vocabulary import SampleJobPhase, ServerJobState
from app.domain.errors import Conflict
from app.domain.kinds.samples.edits import require_editable
from tests.domain.cache.reconcile.made import answers, decide_job
from tests.support.json_values import UNHURRIED

R = ServerJobState
READY = JobObserved(set_uid="u", running=(1, 0), digest="d1")
REFUSAL = Complaint(reason="ErrorCreateSyncJob", message="data source cannot be empty")
NO_SERVER = "no runtime server of the set is running"


def seen(*statuses: ServerJobState) -> JobObserved:
    return JobObserved(set_uid="u", running=(0, 1), digest="d1", answers=answers(*statuses))


@pytest.mark.parametrize(("kind", "servers"), [("sync", (0,)), ("rmr", (0,)), ("warmup", (0, 1)), ("clear", (0, 1))])
def test_a_job_is_posted_to_the_first_server_or_to_all(kind: str, servers: tuple[int, ...]) -> None:
    decision = decide_job(kind, READY)
    kept = JobRecord(phase=SampleJobPhase.PENDING, job="fresh", digest="d1", servers=servers, set_uid="u")
    assert decision.record == kept
    assert decision.actions == (PostOptions(job="fresh", servers=servers),)
    assert decision.refreshes_set


def test_a_terminating_job_ends_the_others_first() -> None:
    assert decide_job("clear", READY, terminate=True).actions == (
        Terminate(),
        PostOptions(job="fresh", servers=(0, 1)),
    )


@pytest.mark.parametrize(
    ("observed", "reason", "message"),
    [
        (JobObserved(), "ErrorSampleSetNotExist", "SampleSet imagenet is not exist"),
        (
            JobObserved(set_uid="u", is_leaving=True, digest="d1", running=(0,)),
            "ErrorSampleSetNotExist",
            "SampleSet imagenet is being deleted",
        ),
        (JobObserved(set_uid="u", running=(0,), refusal=REFUSAL), REFUSAL.reason, REFUSAL.message),
        (JobObserved(set_uid="u", digest="d1"), "ErrorCreateSyncJob", NO_SERVER),
        (JobObserved(set_uid="u", digest="d1", running=(1,)), "ErrorCreateSyncJob", NO_SERVER),
        (JobObserved(set_uid="u", running=(0,)), "ErrorCreateSyncJob", "the options are not known yet"),
    ],
)
def test_a_job_that_cannot_start_reports_the_reason_once(observed: JobObserved, reason: str, message: str) -> None:
    decision = decide_job("sync", observed)
    assert [(event.reason, event.message) for event in decision.events] == [(reason, message)]
    assert (decision.record.phase, decision.actions, decision.wake_after) == (SampleJobPhase.NONE, (), 10)
    assert decide_job("sync", observed, complaint=decision.record.complaint).events == ()


POST_1 = (PostOptions(job="a", servers=(1,)),)
POST_BOTH = (PostOptions(job="a", servers=(0, 1)),)
P, N = SampleJobPhase, SampleJobPhase.NONE
FOLLOWED: list[tuple[SampleJobPhase, tuple[ServerJobState, ...], SampleJobPhase, tuple[Any, ...]]] = [
    (P.PENDING, (), P.PENDING, ()),
    (P.PENDING, (R.WAITING, R.WAITING), P.PENDING, ()),
    (P.PENDING, (R.NOT_POSTED, R.NOT_POSTED), P.PENDING, POST_BOTH),
    (P.PENDING, (R.WAITING, R.NOT_POSTED), P.PENDING, POST_1),
    (P.PENDING, (R.UNKNOWN, R.NOT_POSTED), P.PENDING, POST_1),
    (P.PENDING, (R.RUNNING, R.WAITING), P.RUNNING, ()),
    (P.PENDING, (R.SUCCESS, R.WAITING), P.RUNNING, ()),
    (P.PENDING, (R.SUCCESS, R.SUCCESS), P.SUCCEEDED, ()),
    (P.PENDING, (R.FAIL, R.WAITING), P.FAILED, ()),
    (P.RUNNING, (R.RUNNING, R.RUNNING), P.RUNNING, ()),
    (P.RUNNING, (R.UNKNOWN, R.SUCCESS), P.RUNNING, ()),
    (P.RUNNING, (R.SUCCESS, R.NOT_POSTED), P.RUNNING, POST_1),
    (P.RUNNING, (R.SUCCESS, R.SUCCESS), P.SUCCEEDED, ()),
    # Upstream hid a failure of server 1 behind what server 0 was doing.
    (P.RUNNING, (R.RUNNING, R.FAIL), P.FAILED, ()),
]


@pytest.mark.parametrize(("phase", "statuses", "after", "actions"), FOLLOWED)
def test_a_job_is_followed(
    phase: SampleJobPhase, statuses: tuple[ServerJobState, ...], after: SampleJobPhase, actions: tuple[Any, ...]
) -> None:
    decision = decide_job("warmup", seen(*statuses), phase, job="a", digest="d1", servers=(0, 1))
    assert (decision.record.phase, decision.actions) == (after, actions)
    ended = {P.SUCCEEDED: ["DoWarmupJobSuccessfully"], P.FAILED: ["ErrorDoWarmupJob"]}
    assert [event.reason for event in decision.events] == ended.get(after, [])


def test_a_terminating_job_never_ends_itself() -> None:
    def actions(*statuses: ServerJobState) -> tuple[Any, ...]:
        return decide_job("clear", seen(*statuses), P.PENDING, terminate=True, job="a", servers=(0, 1)).actions

    assert actions(R.NOT_POSTED, R.NOT_POSTED) == (Terminate(), *POST_BOTH)
    assert actions(R.UNKNOWN, R.NOT_POSTED) == ()
    assert actions(R.WAITING, R.NOT_POSTED) == POST_1
    assert actions(R.SUCCESS, R.WAITING) == ()


@pytest.mark.parametrize(("digest", "after"), [("d1", P.FAILED), ("", P.FAILED), ("d2", P.NONE)])
def test_a_failed_job_begins_anew_once_its_options_differ(digest: str, after: SampleJobPhase) -> None:
    observed = JobObserved(set_uid="u", digest=digest)
    decision = decide_job("rmr", observed, P.FAILED, job="a", digest="d1", servers=(0,))
    assert decision.record.phase is after
    assert bool(decision.record.job) == (after is P.FAILED)


@pytest.mark.parametrize("phase", [P.PENDING, P.RUNNING])
@pytest.mark.parametrize("now", ["", "another"])
def test_a_job_whose_set_is_gone_fails_and_belongs_to_no_other_set(phase: SampleJobPhase, now: str) -> None:
    observed = JobObserved(set_uid=now, running=(0, 1), digest="d2", answers=answers(R.NOT_POSTED, R.NOT_POSTED))
    decision = decide_job("warmup", observed, phase, job="a", digest="d1", servers=(0, 1))
    assert (decision.record.phase, decision.actions, decision.wake_after) == (P.FAILED, (), None)
    assert decision.record.message == "the SampleSet imagenet that the job was posted to is gone"
    assert [event.reason for event in decision.events] == ["ErrorDoWarmupJob"]
    # Nor later: a namesake with other options is no new try.
    again = decide_job("warmup", observed, P.FAILED, job="a", digest="d1", message=decision.record.message)
    assert (again.record.phase, again.actions, again.events, again.wake_after) == (P.FAILED, (), (), None)


@pytest.mark.parametrize(
    ("servers", "replicas", "statuses", "after"),
    [
        ((0, 1), 1, (R.SUCCESS, R.UNKNOWN), P.SUCCEEDED),
        ((0, 1), 1, (R.RUNNING, R.UNKNOWN), P.RUNNING),
        ((0, 1), 2, (R.SUCCESS, R.UNKNOWN), P.RUNNING),
        ((0, 1), None, (R.SUCCESS, R.UNKNOWN), P.RUNNING),
        ((0,), 0, (R.UNKNOWN,), P.RUNNING),
        ((1,), 1, (R.UNKNOWN,), P.FAILED),
    ],
)
def test_jobs_do_not_wait_for_removed_servers(
    servers: tuple[int, ...], replicas: int | None, statuses: tuple[ServerJobState, ...], after: SampleJobPhase
) -> None:
    observed = replace(seen(*statuses), replicas=replicas)
    decision = decide_job("clear", observed, P.RUNNING, job="a", digest="d1", servers=servers)
    assert decision.record.phase is after


def test_a_job_that_has_succeeded_stays_as_it_is() -> None:
    record = JobRecord(phase=P.SUCCEEDED, job="a", digest="d1", set_uid="u")
    decision = decide_job("rmr", JobObserved(digest="d2"), P.SUCCEEDED, job="a", digest="d1")
    assert (decision.record, decision.actions, decision.wake_after) == (record, (), None)
    with pytest.raises(Conflict) as refused:
        require_editable(record)
    assert "cannot be updated after succeeded" in refused.value.message
    require_editable(JobRecord(phase=P.FAILED))


@UNHURRIED
@given(
    phase=st.sampled_from(SampleJobPhase),
    kind=st.sampled_from(["sync", "warmup", "rmr", "clear"]),
    statuses=st.lists(st.sampled_from(ServerJobState), max_size=3),
    terminate=st.booleans(),
)
def test_any_answers_give_a_valid_decision(
    *, phase: SampleJobPhase, kind: str, statuses: list[ServerJobState], terminate: bool
) -> None:
    decision = decide_job(kind, seen(*statuses), phase, terminate=terminate, job="a", digest="d1", servers=(0, 1))
    posts = [action for action in decision.actions if isinstance(action, PostOptions)]
    assert len(posts) <= 1
    assert all(post.job == decision.record.job for post in posts)
    assert (decision.wake_after is None) == (decision.record.phase is P.SUCCEEDED)
    if Terminate() in decision.actions:
        assert terminate
        assert phase is P.NONE or set(statuses[:2]) <= {R.NOT_POSTED}
