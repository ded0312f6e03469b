"""The removal of a SampleSet: upstream's order, and the report about a claim that stays."""

from typing import Any

import pytest

from app.domain.cache.reconcile.sample_sets import reconcile_set
from app.domain.cache.reconcile.values import Complaint, Delete, LabelNode, SetInputs, SetObserved, SetRecord
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
