"""Which difference a job has, from its objects in the cluster and its record, and which remedy belongs to it."""

from dataclasses import replace

import pytest

from app.domain.recovery.differences import (
    Choices,
    ClusterJob,
    ClusterPod,
    Difference,
    JobFinding,
    KnownJob,
    KnownReplica,
    NoRemedy,
    Remedy,
    compare,
    terminal_phase,
    with_remedies,
)
from app.domain.vocabulary import JobPhase
from tests.support.plans import W0, W1

KNOWN = KnownJob(uid="u", namespace="ns", name="job", kind="GenericJob", phase=JobPhase.RUNNING)
BEGUN = replace(KNOWN, anchors=("anchor",), had_pods=True, replicas={W0: KnownReplica(attempt=2, pod_name="job-0")})
ENDED = replace(KNOWN, phase=JobPhase.FAILED)


def objects(*pods: ClusterPod, anchor: str | None = "anchor", ended: JobPhase | None = None) -> ClusterJob:
    found = ClusterJob(uid="u", namespace="ns", name="job", kind="GenericJob", anchor=anchor, ended=ended)
    found.pods.extend(pods)
    return found


def pod(attempt: int, name: str = "job-0") -> ClusterPod:
    return ClusterPod(key=W0, attempt=attempt, name=name)


SUCCEEDED = JobPhase.SUCCEEDED
CASES = {
    "nothing anywhere": (None, None, None),
    "an anchor that the database does not know": (objects(), None, Difference.LOST),
    "an ended job that the database does not know": (objects(ended=SUCCEEDED), None, Difference.LOST),
    "a pod of an anchor that is gone": (objects(pod(1), anchor=None), None, Difference.ORPHANED),
    "both live": (objects(pod(2)), BEGUN, None),
    "both live, first recorded anchor": (objects(), KNOWN, None),
    "both ended": (objects(ended=SUCCEEDED), ENDED, None),
    "ended in the database": (objects(pod(3)), ENDED, None),
    "ended in the cluster": (objects(ended=SUCCEEDED), BEGUN, Difference.ENDED),
    "ended in the cluster before its anchor is recorded": (objects(ended=SUCCEEDED), KNOWN, Difference.ENDED),
    "ended, says the anchor of another client": (objects(anchor="other", ended=SUCCEEDED), BEGUN, None),
    "a later attempt": (objects(pod(2), pod(3)), BEGUN, Difference.AHEAD),
    "an earlier attempt": (objects(pod(1)), BEGUN, None),
    "a later attempt under another name": (objects(pod(3, "other")), BEGUN, None),
    "a later attempt of the anchor of another client": (objects(pod(3), anchor="other"), BEGUN, None),
    "a rank that is not recorded": (objects(ClusterPod(key=W1, attempt=9, name="job-1")), BEGUN, None),
    "no objects of a job that had some": (None, BEGUN, Difference.MISSING),
    "no anchor of a job that had pods": (objects(pod(2), anchor=None), BEGUN, Difference.MISSING),
    "no objects of a job that had none": (None, KNOWN, Difference.UNSTARTED),
    "no objects of an ended job": (None, ENDED, None),
    "a former namespace": (None, replace(BEGUN, namespace="ns~1"), None),
}


@pytest.mark.parametrize("case", CASES)
def test_difference(case: str) -> None:
    found, known, difference = CASES[case]
    finding = compare(found, known)
    assert (finding.difference if finding is not None else None) is difference


def test_a_finding_names_the_job_and_what_both_sides_know() -> None:
    finding = compare(objects(pod(4), pod(3), ended=SUCCEEDED), BEGUN)
    assert finding == JobFinding(
        difference=Difference.ENDED,
        uid="u",
        namespace="ns",
        name="job",
        kind="GenericJob",
        recorded=JobPhase.RUNNING,
        ended=SUCCEEDED,
        pods=("job-0", "job-0"),
        attempts={W0: 4},
    )


@pytest.mark.parametrize(
    ("text", "phase"), [("Succeeded", SUCCEEDED), ("Running", None), ("succeeded", None), ("", None), (None, None)]
)
def test_only_terminal_phases_of_anchors_are_believed(text: str | None, phase: JobPhase | None) -> None:
    assert terminal_phase(text) is phase


ALL = Choices(unknown=Remedy.RELEASE, live=Remedy.FAIL)


@pytest.mark.parametrize(
    ("difference", "without", "chosen"),
    [
        (Difference.LOST, "--unknown=release|delete", Remedy.RELEASE),
        (Difference.ORPHANED, None, Remedy.DELETE),
        (Difference.MISSING, "--live=requeue|fail", Remedy.FAIL),
        (Difference.ENDED, None, Remedy.END),
        (Difference.AHEAD, None, Remedy.ADOPT),
        (Difference.UNSTARTED, None, Remedy.START),
    ],
)
def test_remedy(difference: Difference, without: str | None, chosen: Remedy) -> None:
    finding = JobFinding(difference=difference, uid="u", namespace="ns", name="job", kind="GenericJob")
    assert with_remedies([finding], ALL) == [(finding, chosen)]
    if without is None:
        assert with_remedies([finding], Choices()) == [(finding, chosen)]
    else:
        with pytest.raises(NoRemedy, match=r"ns/job \(u\) is .*" + without.replace("|", r"\|")):
            with_remedies([finding], Choices())
