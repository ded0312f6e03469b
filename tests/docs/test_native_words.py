"""docs/status.md and docs/concepts.md have a column with the words of every kind."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from app.domain.kinds import registry
from app.domain.kinds.job_kind import JobKind, Limits, Site, StatusFacts
from app.domain.plan import JobIdentity, Manifest, Rank
from app.domain.status.records import Attempt, JobStatus, Replica
from app.domain.vocabulary import TERMINAL_PHASES, JobPhase, Outcome, Reason, ReplicaPhase
from tests.docs.test_docs import read, rows
from tests.support.plans import GIVEN, T0

DATA = Path(__file__).parents[1] / "data"
JOB_KINDS: dict[str, JobKind[Any]] = {kind.name: kind for kind in registry.JOB_KINDS.values()}
NOWHERE = "\N{EN DASH}"
NEVER_RAN = {JobPhase.QUEUED, JobPhase.CREATING, JobPhase.PENDING}
OUTCOMES = {
    ReplicaPhase.SUCCEEDED: Outcome.SUCCEEDED,
    ReplicaPhase.FAILED: Outcome.FAILED,
    ReplicaPhase.DELETED: Outcome.STOPPED,
}


def accepted(kind: JobKind[Any]) -> Manifest:
    """The most complete manifest of the golden files of the kind."""
    folder = type(kind).__module__.rpartition(".")[2]
    posted = yaml.safe_load((DATA / folder / "everything" / "manifest.yaml").read_text(encoding="utf-8"))
    return kind.accept(posted, Limits(), GIVEN).manifest


def documented(heading: str, kind: str) -> dict[str, str]:
    """The word of the kind for each uniform phase or bucket."""
    head, *lines = rows(read("docs/status.md"), heading)
    column = next(index for index, title in enumerate(head) if title.partition(":")[0] == kind)
    words = {cells[0]: cells[column].partition(";")[0] for cells in lines}
    return {uniform: "" if word == "(empty)" else word for uniform, word in words.items()}


@pytest.mark.parametrize("heading", ["Native phases", "Native counts"])
def test_every_kind_has_a_column(heading: str) -> None:
    head, *_ = rows(read("docs/status.md"), heading)
    assert {title.partition(":")[0] for title in head[1:]} == set(JOB_KINDS)


@pytest.mark.parametrize("kind", JOB_KINDS.values(), ids=list(JOB_KINDS))
def test_status_page_has_every_native_phase(kind: JobKind[Any]) -> None:
    manifest = accepted(kind)
    out_of_reach = set() if kind.supports_pause else {JobPhase.PAUSED, JobPhase.RESUMING}
    out_of_reach |= set() if kind.scaling(kind.read(manifest)) else {JobPhase.SCALING}
    shown = {}
    for phase in JobPhase:
        reason = Reason.RULE_FULFILLED if phase in TERMINAL_PHASES else Reason.STARTED
        status = JobStatus(phase=phase, reason=reason, started_at=None if phase in NEVER_RAN else T0)
        native = kind.native_status(kind.read(manifest), StatusFacts(status=status, replicas=(), created_at=T0))
        shown[str(phase)] = NOWHERE if phase in out_of_reach else native["phase"]
    assert documented("Native phases", kind.name) == shown


@pytest.mark.parametrize("kind", JOB_KINDS.values(), ids=list(JOB_KINDS))
def test_status_page_has_every_native_count(kind: JobKind[Any]) -> None:
    assert documented("Native counts", kind.name) == {str(phase): counted_as(kind, phase) for phase in ReplicaPhase}


def counted_as(kind: JobKind[Any], phase: ReplicaPhase) -> str:
    """The word under which the kind counts a replica in this phase."""
    manifest = accepted(kind)
    identity = JobIdentity(
        uid="u", kind=kind.name, api_version="", namespace="n", name="j", generation=1, installation="i"
    )
    key = next(iter(kind.plan(kind.read(manifest), identity, resumed=False, site=Site()).replicas))
    outcome = OUTCOMES.get(phase)
    attempt = Attempt(number=1, phase=phase, outcome=outcome, pod_uid=None if phase is ReplicaPhase.CREATING else "p")
    replica = Replica(key=key, attempt=attempt, settled=outcome is not None)
    status = JobStatus(phase=JobPhase.RUNNING, aggregate={phase: 1})
    facts = StatusFacts(status=status, replicas=[replica], created_at=T0)
    found = [
        word for word, count in counts(kind.name, key, kind.native_status(kind.read(manifest), facts)).items() if count
    ]
    assert len(found) < 2, "the first task has several replicas, so the word of this one is ambiguous"
    return found[0] if found else NOWHERE


def counts(kind: str, key: Rank, native: dict[str, Any]) -> dict[str, int]:
    """The counts of the task of the replica."""
    match kind:
        case "GenericJob":
            found = native["aggregate"]
        case "TrainingJob":
            found = next(
                one["resource_states"]
                for one in native["replica_statuses"]
                if one["training_resource_type"] == key.task
            )
        case "MxJob":
            found = next(
                one["ReplicasStates"] for one in native["replicaStatuses"] if one["Mx_replica_type"].lower() == key.task
            )
        case "DIJob":
            found = native["taskStatus"][key.task]
        case _:
            raise AssertionError(f"add the field in which a {kind} counts its replicas")
    return dict(found)


def test_concepts_page_has_a_column_for_every_kind() -> None:
    head, *lines = rows(read("docs/concepts.md"), "How the kinds use them")
    assert set(head[1:]) == set(JOB_KINDS)
    assert all(len(cells) == len(head) and all(cells) for cells in lines)
