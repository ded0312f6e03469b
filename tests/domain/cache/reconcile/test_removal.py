"""The removal of a SampleSet and the replacement of its objects: upstream's order, and reports about a claim in use."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.cache.reconcile.sample_sets import reconcile_set
from app.domain.cache.reconcile.values import Complaint, Create, Delete, LabelNode, SetInputs, SetObserved, SetRecord
from app.domain.cache.vocabulary import RemovalStage, SetPart, SetPhase
from tests.domain.cache.made import set_spec
from tests.domain.cache.reconcile.made import ALL, STORAGE, at_work, decide_set, found, pods

# What is left of a set; what its removal waits for, and does.
REMOVALS: list[tuple[SetObserved, RemovalStage, tuple[Any, ...]]] = [
    (at_work(), RemovalStage.NODE_LABELS, (LabelNode(node="n0", value=None), LabelNode(node="n1", value=None))),
    (at_work(labelled={}), RemovalStage.RUNTIME, (Delete(part=SetPart.RUNTIME),)),
    (SetObserved(found=found(*ALL - {SetPart.RUNTIME}), pods=pods("n0")), RemovalStage.PODS, ()),
    (
        SetObserved(found=found(*ALL - {SetPart.RUNTIME})),
        RemovalStage.SERVICE,
        (Delete(part=SetPart.SERVICE), Delete(part=SetPart.TOKEN)),
    ),
    (SetObserved(found=found(*STORAGE)), RemovalStage.CLAIM, (Delete(part=SetPart.PVC),)),
    (SetObserved(found=found(SetPart.PV)), RemovalStage.VOLUME, (Delete(part=SetPart.PV),)),
    (SetObserved(), RemovalStage.GONE, ()),
    # The namespace has gone, and took with it what was there.
    (
        SetObserved(found=found(SetPart.PV), labelled={"n0": "p"}),
        RemovalStage.NODE_LABELS,
        (LabelNode(node="n0", value=None),),
    ),
]


@pytest.mark.parametrize(("observed", "stage", "actions"), REMOVALS)
@pytest.mark.parametrize("phase", list(SetPhase))
def test_removal_goes_in_upstreams_order(
    phase: SetPhase, observed: SetObserved, stage: RemovalStage, actions: tuple[Any, ...]
) -> None:
    decision = decide_set(phase, observed, deleted=True)
    assert (decision.record.stage, decision.actions) == (stage, actions)
    assert decision.gone == (stage is RemovalStage.GONE)


def test_removal_clears_complaints() -> None:
    complaint = Complaint(reason="ErrorSecretNotExist", message="secret storage is not exist")
    assert decide_set(SetPhase.NONE, SetObserved(), deleted=True, complaint=complaint).record.complaint is None


def test_a_claim_in_use_is_reported_once_after_a_while() -> None:
    record, reasons = SetRecord(phase=SetPhase.READY, delays=7), []
    for left in [SetObserved(found=found(*STORAGE))] * 6 + [SetObserved(found=found(SetPart.PV))]:
        decision = reconcile_set(
            SetInputs(spec=set_spec(), deleted=True, record=record, observed=left, fresh_name="fresh")
        )
        reasons.append([event.reason for event in decision.events])
        record = decision.record
        assert (record.complaint is not None) == (["ClaimInUse"] in reasons and record.stage is RemovalStage.CLAIM)
    assert reasons == [[], [], [], ["ClaimInUse"], [], [], []]


@pytest.mark.parametrize(
    ("before", "pause"),
    [(None, 1.0), (RemovalStage.NODE_LABELS, 1.0), (RemovalStage.SERVICE, 5.0)],
    ids=["begun", "moved on", "stays"],
)
def test_short_stages_are_reconciled_again_soon(before: RemovalStage | None, pause: float) -> None:
    left = SetObserved(found=found(SetPart.SERVICE))
    decision = decide_set(SetPhase.READY, left, deleted=True, stage=before)
    assert (decision.record.stage, decision.wake_after) == (RemovalStage.SERVICE, pause)


@pytest.mark.parametrize(("observed", "stage", "actions"), [each for each in REMOVALS if SetPart.PV in each[0].found])
@pytest.mark.parametrize("phase", list(SetPhase))
def test_objects_with_shared_directories_are_replaced_in_the_order_of_a_removal(
    phase: SetPhase, observed: SetObserved, stage: RemovalStage, actions: tuple[Any, ...]
) -> None:
    decision = decide_set(phase, replace(observed, is_shared=True))
    assert decision.actions == actions
    assert (decision.record.stage, decision.record.phase, decision.gone) == (None, SetPhase.NONE, False)
    complaint = decision.record.complaint
    assert complaint is not None
    assert complaint.reason == "CacheDirShared"
    assert ("waits for the end of all pods" in complaint.message) == (stage is RemovalStage.CLAIM)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SetRecord(phase=SetPhase.READY, synced=True, sync_job="j", digest="d"), ("j", "d")),
        # A sync that has not ended is posted again: without its job, the set would be ready without data.
        (SetRecord(phase=SetPhase.SYNCING, sync_job="j", digest="d"), ("", "")),
        (SetRecord(phase=SetPhase.SYNC_FAILED, sync_job="j", digest="d"), ("", "")),
    ],
)
def test_only_a_set_that_is_not_synced_is_synced_after_its_objects_are_replaced(
    before: SetRecord, after: tuple[str, str]
) -> None:
    inputs = SetInputs(spec=set_spec(), deleted=False, record=before, observed=at_work(), fresh_name="fresh")
    replaced = reconcile_set(replace(inputs, observed=replace(inputs.observed, is_shared=True)))
    assert (replaced.record.sync_job, replaced.record.digest) == after
    made_again = reconcile_set(replace(inputs, record=replaced.record, observed=SetObserved()))
    assert Create(part=SetPart.PV) in made_again.actions


def test_a_deleted_set_with_shared_directories_is_removed() -> None:
    observed = SetObserved(found=found(SetPart.PV), is_shared=True)
    assert decide_set(SetPhase.READY, observed, deleted=True).record.stage is RemovalStage.VOLUME
