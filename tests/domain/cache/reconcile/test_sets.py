"""The phases of a SampleSet one by one, and its whole life when actions are lost."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.cache.reconcile.needs import needs
from app.domain.cache.reconcile.sample_sets import reconcile_set
from app.domain.cache.reconcile.values import (
    Complaint,
    Create,
    Delete,
    LabelNode,
    PostOptions,
    RuntimeStatus,
    Scale,
    ServerAnswer,
    SetDecision,
    SetInputs,
    SetObserved,
    SetRecord,
)
from app.domain.cache.vocabulary import Found, Need, RemovalStage, ServerJobState, SetPart, SetPhase
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from tests.domain.cache.made import set_spec
from tests.domain.cache.reconcile.made import (
    STORAGE,
    Cluster,
    answers,
    at_work,
    decide_set,
    found,
    next_record,
    pods,
    summary,
)
from tests.support.json_values import UNHURRIED

NO_SECRET = Complaint(reason="ErrorSecretNotExist", message="secret storage is not exist")
NOBODY = frozenset[SetPart]()


def answered(status: ServerJobState, message: str = "") -> ServerAnswer:
    return ServerAnswer(index=0, status=status, message=message)


def creates(*resources: SetPart) -> tuple[Create, ...]:
    return tuple(Create(part=resource) for resource in resources)


SERVERS = creates(SetPart.TOKEN, SetPart.SERVICE, SetPart.RUNTIME)

# Phase and what is seen; the next phase, the actions, the pause.
STEPS: list[tuple[SetPhase, SetObserved, dict[str, Any], SetPhase, tuple[Any, ...], float | None]] = [
    (SetPhase.NONE, SetObserved(), {}, SetPhase.NONE, creates(SetPart.PV, SetPart.PVC), 1),
    (SetPhase.NONE, SetObserved(found=found(SetPart.PV)), {}, SetPhase.NONE, creates(SetPart.PVC), 1),
    (SetPhase.NONE, SetObserved(found=found(*STORAGE)), {}, SetPhase.NONE, (), 1),
    (SetPhase.NONE, SetObserved(found=found(*STORAGE), volume_bound=True), {}, SetPhase.BOUND, (), 0),
    (SetPhase.NONE, SetObserved(secret=NO_SECRET), {}, SetPhase.NONE, (), 30),
    # What the cluster refuses is tried again after a longer pause.
    (SetPhase.NONE, SetObserved(found={SetPart.PV: Found.FOREIGN}), {}, SetPhase.NONE, creates(SetPart.PVC), 30),
    (
        SetPhase.BOUND,
        SetObserved(found=found(*STORAGE), failures={SetPart.TOKEN: "quota"}),
        {},
        SetPhase.BOUND,
        SERVERS,
        30,
    ),
    (SetPhase.BOUND, SetObserved(found=found(*STORAGE)), {}, SetPhase.BOUND, SERVERS, 10),
    (SetPhase.BOUND, SetObserved(found=found()), {}, SetPhase.BOUND, (), 5),
    (SetPhase.BOUND, SetObserved(found=found(), warning=NO_SECRET), {}, SetPhase.BOUND, (), 10),
    (SetPhase.BOUND, SetObserved(found=found(), warning=NO_SECRET), {"delays": 1}, SetPhase.BOUND, (), 20),
    (SetPhase.BOUND, SetObserved(found=found(), warning=NO_SECRET), {"delays": 99}, SetPhase.BOUND, (), 300),
    (SetPhase.BOUND, at_work(1), {}, SetPhase.MOUNT, (), 0),
    (SetPhase.MOUNT, at_work(), {}, SetPhase.SYNCING, (PostOptions(job="fresh", servers=(0,)),), 5),
    (SetPhase.MOUNT, at_work(sync_refusal=NO_SECRET, digest=""), {}, SetPhase.MOUNT, (), 30),
    (SetPhase.MOUNT, at_work(digest=""), {}, SetPhase.MOUNT, (), 10),
    (SetPhase.MOUNT, at_work(), {"sync_job": "a", "synced": True}, SetPhase.PARTIAL_READY, (), 0),
    (SetPhase.MOUNT, at_work(cache=None), {"sync_job": "a", "synced": True}, SetPhase.MOUNT, (), 10),
    (SetPhase.SYNCING, at_work(), {"sync_job": "a"}, SetPhase.SYNCING, (), 5),
    (SetPhase.SYNCING, at_work(sync=answered(ServerJobState.RUNNING)), {"sync_job": "a"}, SetPhase.SYNCING, (), 5),
    (SetPhase.SYNCING, at_work(sync=answered(ServerJobState.WAITING)), {"sync_job": "a"}, SetPhase.SYNCING, (), 5),
    (
        SetPhase.SYNCING,
        at_work(sync=answered(ServerJobState.NOT_POSTED)),
        {"sync_job": "a"},
        SetPhase.SYNCING,
        (PostOptions(job="a", servers=(0,)),),
        5,
    ),
    (SetPhase.SYNCING, at_work(sync=answered(ServerJobState.SUCCESS)), {"sync_job": "a"}, SetPhase.MOUNT, (), 0),
    (SetPhase.SYNCING, at_work(sync=answered(ServerJobState.FAIL)), {"sync_job": "a"}, SetPhase.SYNC_FAILED, (), 0),
    (SetPhase.SYNC_FAILED, at_work(), {"sync_job": "a", "digest": "d1"}, SetPhase.SYNC_FAILED, (), 30),
    (SetPhase.SYNC_FAILED, at_work(digest="d2"), {"sync_job": "a", "digest": "d1"}, SetPhase.MOUNT, (), 0),
    (SetPhase.SYNC_FAILED, at_work(digest=""), {"sync_job": "a", "digest": "d1"}, SetPhase.SYNC_FAILED, (), 30),
    (SetPhase.PARTIAL_READY, at_work(), {}, SetPhase.READY, (), 0),
    (SetPhase.PARTIAL_READY, at_work(1), {}, SetPhase.PARTIAL_READY, (Scale(replicas=2),), 10),
    (SetPhase.PARTIAL_READY, at_work(3), {}, SetPhase.PARTIAL_READY, (Scale(replicas=2),), 10),
    (
        SetPhase.PARTIAL_READY,
        at_work(runtime=RuntimeStatus(spec_replicas=2, ready_replicas=1)),
        {},
        SetPhase.PARTIAL_READY,
        (),
        10,
    ),
    # One replica too many is asked for, and cannot be placed.
    (
        SetPhase.PARTIAL_READY,
        at_work(runtime=RuntimeStatus(spec_replicas=3, ready_replicas=2)),
        {},
        SetPhase.PARTIAL_READY,
        (Scale(replicas=2),),
        10,
    ),
    # A pod that does not run has no node's data.
    (
        SetPhase.PARTIAL_READY,
        at_work(pods=pods("n0", "n1", running=False)),
        {},
        SetPhase.PARTIAL_READY,
        (LabelNode(node="n0", value=None), LabelNode(node="n1", value=None)),
        10,
    ),
    (
        SetPhase.PARTIAL_READY,
        at_work(labelled={"n0": "old", "n7": "imagenet-runtime-7"}),
        {},
        SetPhase.READY,
        (
            LabelNode(node="n0", value="imagenet-runtime-0"),
            LabelNode(node="n1", value="imagenet-runtime-1"),
            LabelNode(node="n7", value=None),
        ),
        0,
    ),
    (SetPhase.READY, at_work(), {}, SetPhase.READY, (), 5),
    (SetPhase.READY, at_work(cache=summary(0, 0)), {"delays": 1}, SetPhase.READY, (), 10),
    (SetPhase.READY, at_work(), {"delays": 2}, SetPhase.READY, (), 20),
    (SetPhase.READY, at_work(), {"delays": 3}, SetPhase.READY, (), 30),
    (SetPhase.READY, at_work(cache=summary(9, 9)), {"delays": 2}, SetPhase.READY, (), 20),
    (SetPhase.READY, at_work(cache=summary(9, 9)), {"delays": 3}, SetPhase.READY, (), None),
    (SetPhase.READY, at_work(cache=summary(9, 9), in_use=True), {"delays": 3}, SetPhase.READY, (), 60),
    (SetPhase.READY, at_work(3), {}, SetPhase.PARTIAL_READY, (Scale(replicas=2),), 0),
    (
        SetPhase.READY,
        at_work(pods=pods("n0")),
        {},
        SetPhase.PARTIAL_READY,
        (LabelNode(node="n1", value=None),),
        0,
    ),
    (
        SetPhase.READY,
        at_work(found=found(*STORAGE, SetPart.TOKEN, SetPart.RUNTIME)),
        {},
        SetPhase.READY,
        SERVERS[1:2],
        10,
    ),
]


@pytest.mark.parametrize(("phase", "observed", "record", "after", "actions", "pause"), STEPS)
def test_the_next_step_of_each_state(
    phase: SetPhase, observed: SetObserved, record: dict[str, Any], after: SetPhase, actions: Any, pause: float | None
) -> None:
    decision = decide_set(phase, observed, **record)
    assert (decision.record.phase, decision.actions, decision.wake_after) == (after, actions, pause)
    assert not decision.gone


def test_figures_older_than_the_end_of_a_sync_are_dropped() -> None:
    """Otherwise a set shows a total of 0 B for a while after a sync."""
    empty = summary(0, 0)
    (answer,) = answers(ServerJobState.SUCCESS)
    synced = decide_set(SetPhase.SYNCING, at_work(sync=answer, cache=empty), sync_job="a", digest="d1", cache=empty)
    assert (synced.record.phase, synced.record.synced, synced.record.cache) == (SetPhase.MOUNT, True, None)
    silent = reconcile_with(synced, at_work(cache=None))
    assert (silent.record.phase, silent.record.cache) == (SetPhase.MOUNT, None)
    reported = reconcile_with(silent, at_work(cache=summary(879 * 1024, 0)))
    assert (reported.record.phase, reported.record.cache) == (SetPhase.PARTIAL_READY, summary(879 * 1024, 0))


def reconcile_with(before: SetDecision, observed: SetObserved) -> SetDecision:
    inputs = SetInputs(spec=set_spec(), deleted=False, record=before.record, observed=observed, fresh_name="fresh")
    return reconcile_set(inputs)


def test_a_ready_set_is_reconciled_soon_and_then_every_half_minute() -> None:
    decision, pauses = decide_set(SetPhase.PARTIAL_READY, at_work()), []
    for _ in range(6):
        decision = reconcile_with(decision, at_work())
        pauses.append(decision.wake_after)
    assert pauses == [5, 10, 20, 30, 30, 30]


def test_a_set_that_waits_with_warnings_for_days_is_reconciled_every_five_minutes() -> None:
    warning, pauses = at_work(0, warning=NO_SECRET), []
    decision = decide_set(SetPhase.BOUND, warning)
    for _ in range(1100):
        decision = reconcile_with(decision, warning)
        pauses.append(decision.wake_after)
    assert pauses == [20, 40, 80, 160] + [300] * 1096
    assert reconcile_with(decision, warning).record == decision.record


def test_without_a_sync_the_data_is_there_already() -> None:
    decision = decide_set(SetPhase.MOUNT, at_work(), spec={"noSync": True})
    assert (decision.record.phase, decision.actions) == (SetPhase.PARTIAL_READY, ())
    decision = decide_set(SetPhase.SYNC_FAILED, at_work(), spec={"noSync": True}, sync_job="a", digest="d1")
    assert decision.record.phase is SetPhase.MOUNT


def test_a_failed_sync_is_tried_again_under_a_new_name_once_its_options_differ() -> None:
    decision = decide_set(SetPhase.SYNC_FAILED, at_work(digest="d2"), sync_job="old", digest="d1")
    assert (decision.record.sync_job, decision.record.digest) == ("", "")
    decision = decide_set(SetPhase.MOUNT, at_work(digest="d2"))
    assert (decision.record.sync_job, decision.record.digest) == ("fresh", "d2")


EVENTS: list[tuple[SetPhase, SetObserved, dict[str, Any], list[str]]] = [
    (
        SetPhase.NONE,
        SetObserved(found=found(*STORAGE)),
        {"made": NOBODY},
        ["CreatePVSuccessfully", "CreatePVCSuccessfully"],
    ),
    (
        SetPhase.BOUND,
        SetObserved(found=found()),
        {"made": STORAGE},
        ["CreateTokenSecretSuccessfully", "CreateServiceSuccessfully", "CreateStatefulSetSuccessfully"],
    ),
    (SetPhase.NONE, SetObserved(secret=NO_SECRET), {}, ["ErrorSecretNotExist"]),
    (SetPhase.NONE, SetObserved(secret=NO_SECRET), {"complaint": NO_SECRET}, []),
    (SetPhase.NONE, SetObserved(found={SetPart.PV: Found.FOREIGN}), {}, ["ErrorPVAlreadyExist"]),
    (
        SetPhase.BOUND,
        SetObserved(found={**found(), SetPart.RUNTIME: Found.FOREIGN}),
        {},
        ["ErrorStatefulSetAlreadyExist"],
    ),
    (SetPhase.NONE, SetObserved(failures={SetPart.PVC: "quota"}), {}, ["ErrorCreatePVC"]),
    (
        SetPhase.BOUND,
        SetObserved(found=found(*STORAGE), failures={SetPart.RUNTIME: "RUNTIME_IMAGE is not in environment variable"}),
        {},
        ["ErrorCreateStatefulSet"],
    ),
    (
        SetPhase.BOUND,
        SetObserved(found=found(), warning=Complaint(reason="FailedMount", message="x")),
        {},
        ["FailedMount"],
    ),
    (SetPhase.SYNCING, at_work(sync=answered(ServerJobState.SUCCESS)), {"sync_job": "a"}, ["DoSyncJobSuccessfully"]),
    (SetPhase.SYNCING, at_work(sync=answered(ServerJobState.FAIL, "no key")), {"sync_job": "a"}, ["ErrorDoSyncJob"]),
]


@pytest.mark.parametrize(("phase", "observed", "record", "reasons"), EVENTS)
def test_events_have_upstreams_names(
    phase: SetPhase, observed: SetObserved, record: dict[str, Any], reasons: list[str]
) -> None:
    decision = decide_set(phase, observed, **record)
    assert [event.reason for event in decision.events] == reasons


def test_a_new_phase_starts_without_complaint_and_delays() -> None:
    decision = decide_set(SetPhase.BOUND, at_work(1), complaint=NO_SECRET, delays=7)
    assert (decision.record.complaint, decision.record.delays) == (None, 0)


def test_the_last_cache_status_stays_until_there_is_a_new_one() -> None:
    assert decide_set(SetPhase.READY, at_work(cache=None), cache=summary(9, 3)).record.cache == summary(9, 3)
    assert decide_set(SetPhase.READY, at_work(cache=summary(9, 4)), cache=summary(9, 3)).record.cache == summary(9, 4)


def test_foreign_objects_are_neither_created_nor_deleted() -> None:
    foreign = SetObserved(found=dict.fromkeys(SetPart, Found.FOREIGN))
    assert decide_set(SetPhase.BOUND, foreign).actions == ()
    assert decide_set(SetPhase.BOUND, foreign, deleted=True).gone


@UNHURRIED
@given(data=st.data(), partitions=st.integers(1, 4), no_sync=st.booleans())
def test_a_set_gets_ready_and_leaves_nothing_whatever_is_lost(
    *, data: st.DataObject, partitions: int, no_sync: bool
) -> None:
    cluster, record = Cluster(), SetRecord()
    spec = set_spec(partitions=partitions, noSync=no_sync)
    losses = data.draw(st.lists(st.booleans(), max_size=40))
    record = follow(cluster, record, spec, losses, deleted=False)
    assert record.phase is SetPhase.READY
    assert record.runtime.ready == f"{partitions}/{partitions}"
    assert len(cluster.observed.labelled) == partitions
    assert len(cluster.posted) == (0 if no_sync else 1)
    losses = data.draw(st.lists(st.booleans(), max_size=20))
    record = follow(cluster, record, spec, losses, deleted=True)
    assert record.stage is RemovalStage.GONE
    assert not cluster.observed.labelled
    assert all(cluster.observed.of(resource) is Found.ABSENT for resource in SetPart)


def follow(cluster: Cluster, record: SetRecord, spec: SampleSetSpec, losses: list[bool], *, deleted: bool) -> SetRecord:
    """Reconcile until there is nothing to do. A loss is a process that ends between the write and the actions."""
    for turn in range(100):
        decision = next_record(cluster, record, spec, f"job-{turn}", deleted=deleted)
        record = decision.record
        for action in decision.actions:
            if losses and losses.pop():
                break
            cluster.do(action)
        if decision.gone:
            break
    return record


def test_a_failing_sync_recovers_after_an_edit() -> None:
    cluster, spec = Cluster(fails=True), set_spec()
    record = follow(cluster, SetRecord(), spec, [], deleted=False)
    assert record.phase is SetPhase.SYNC_FAILED
    cluster.fails = False
    record = follow(cluster, replace(record, digest="of a bad key"), spec, [], deleted=False)
    assert record.phase is SetPhase.READY


def test_a_failed_sync_has_a_complaint_until_the_next_try() -> None:
    why = Complaint(reason="ErrorDoSyncJob", message="403 Forbidden")
    decision = decide_set(SetPhase.SYNCING, at_work(sync=answered(ServerJobState.FAIL, "403 Forbidden")), sync_job="a")
    assert decision.record.complaint == why
    assert [event.message for event in decision.events] == ["403 Forbidden"]
    kept: dict[str, Any] = {"sync_job": "a", "digest": "d1", "complaint": why}
    decision = decide_set(SetPhase.SYNC_FAILED, at_work(), **kept)
    assert (decision.record.complaint, decision.events) == (why, ())
    assert (
        decide_set(SetPhase.SYNC_FAILED, at_work(digest="", sync_refusal=NO_SECRET), **kept).record.complaint
        == NO_SECRET
    )
    again = {**kept, "complaint": NO_SECRET}
    assert decide_set(SetPhase.SYNC_FAILED, at_work(), **again).record.complaint is None
    assert decide_set(SetPhase.SYNC_FAILED, at_work(digest="d2"), **kept).record.complaint is None


def test_partitions_are_followed_up_and_down() -> None:
    cluster, record = Cluster(), SetRecord()
    for partitions in (2, 4, 1):
        record = follow(cluster, record, set_spec(partitions=partitions), [], deleted=False)
        assert (record.phase, record.runtime.ready_replicas) == (SetPhase.READY, partitions)
        assert len(cluster.observed.labelled) == partitions


OBSERVED = st.builds(
    SetObserved,
    found=st.dictionaries(st.sampled_from(SetPart), st.sampled_from(Found)),
    volume_bound=st.booleans(),
    secret=st.none() | st.just(NO_SECRET),
    runtime=st.builds(RuntimeStatus, spec_replicas=st.integers(0, 3), ready_replicas=st.integers(0, 3)),
    pods=st.lists(st.sampled_from(["n0", "n1", ""]), max_size=3).map(lambda nodes: pods(*nodes)),
    labelled=st.dictionaries(st.sampled_from(["n0", "n1", "n2"]), st.just("p")),
    warning=st.none() | st.just(NO_SECRET),
    digest=st.sampled_from(["", "d1", "d2"]),
    sync=st.none() | st.builds(ServerAnswer, index=st.just(0), status=st.sampled_from(ServerJobState)),
    cache=st.none() | st.just(summary()),
    in_use=st.booleans(),
)


@UNHURRIED
@given(phase=st.sampled_from(SetPhase), observed=OBSERVED, deleted=st.booleans())
def test_any_observation_gives_a_valid_decision(*, phase: SetPhase, observed: SetObserved, deleted: bool) -> None:
    decision = decide_set(phase, observed, deleted=deleted, sync_job="a", digest="d1")
    again = decide_set(phase, observed, deleted=deleted, sync_job="a", digest="d1")
    assert decision == again
    for action in decision.actions:
        if isinstance(action, Create):
            assert not deleted
            assert observed.of(action.part) is Found.ABSENT
        if isinstance(action, Delete):
            assert deleted
            assert observed.of(action.part) is Found.OURS
            assert not observed.labelled
    if not deleted:
        assert decision.wake_after is not None or decision.record.phase is SetPhase.READY
    repeated = replace(decision.record, phase=phase)
    second = decide_set(
        phase, observed, deleted=deleted, sync_job="a", digest="d1", made=repeated.made, complaint=repeated.complaint
    )
    assert not [event for event in second.events if event.reason.startswith("Create")]


@pytest.mark.parametrize(
    ("phase", "record", "expected"),
    [
        (SetPhase.NONE, {}, {Need.SECRET}),
        (SetPhase.MOUNT, {}, {Need.SYNC_OPTIONS, Need.SECRET}),
        (SetPhase.MOUNT, {"sync_job": "a"}, {Need.CACHE, Need.WARNING, Need.SECRET}),
        (SetPhase.SYNCING, {}, {Need.SYNC_RESULT, Need.SYNC_OPTIONS, Need.CACHE, Need.WARNING, Need.SECRET}),
        (SetPhase.BOUND, {}, {Need.WARNING, Need.SECRET}),
        (SetPhase.SYNC_FAILED, {}, {Need.SYNC_OPTIONS, Need.SECRET}),
        (SetPhase.PARTIAL_READY, {}, {Need.CACHE, Need.WARNING, Need.SECRET}),
        (SetPhase.READY, {}, {Need.CACHE, Need.SECRET}),
    ],
)
def test_the_needs_of_each_phase(phase: SetPhase, record: dict[str, Any], expected: set[Need]) -> None:
    kept = SetRecord(phase=phase, **record)
    assert needs(set_spec(), kept, SetObserved(), deleted=False) == expected
    assert needs(set_spec(), kept, at_work(), deleted=False) == expected - {Need.SECRET}
    assert needs(set_spec(), kept, SetObserved(), deleted=True) == set()
