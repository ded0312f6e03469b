"""Which ends of pods are disruptions by the cluster, and which are failures of their programs."""

from typing import Any

import msgspec
import pytest

from app.domain.kubernetes.objects import Pod
from app.domain.status.pods.disruptions import disruption_of

ENDED = {"terminated": {"exitCode": 1, "reason": "Error"}}
# The runtime could not start the program: Kubernetes reports the epoch as the time of its start.
NO_PROGRAM = {"terminated": {"exitCode": 128, "reason": "StartError", "startedAt": "1970-01-01T00:00:00Z"}}
WAITING = {"waiting": {"reason": "ContainerCreating"}}
RESTARTED = {"waiting": {"reason": "CrashLoopBackOff"}}


def a_pod(
    state: dict[str, Any] | None, *, phase: str = "Failed", init: Any = None, last: Any = None, **more: Any
) -> Pod:
    mains = [] if state is None else [{"name": "main", "state": state, "lastState": last or {}}]
    inits = [] if init is None else [{"name": "fetch", "state": init}]
    spec = {"containers": [{"name": "main"}], "initContainers": [{"name": "fetch"}] if inits else []}
    status = {"phase": phase, "containerStatuses": mains, "initContainerStatuses": inits, **more}
    return msgspec.convert({"spec": spec, "status": status}, Pod)


def condition(reason: str, status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": "DisruptionTarget", "status": status, "reason": reason}]}


@pytest.mark.parametrize(
    "reason",
    [
        "EvictionByEvictionAPI",
        "PreemptionByScheduler",
        "DeletionByTaintManager",
        "DeletionByPodGC",
        "TerminationByKubelet",
    ],
)
def test_the_condition_names_a_disruption(reason: str) -> None:
    assert disruption_of(a_pod(ENDED, **condition(reason))) == reason
    assert disruption_of(a_pod(ENDED, **condition(reason, "False"))) is None


@pytest.mark.parametrize(
    "reason",
    [
        *("Evicted", "Preempting", "NodeLost", "NodeShutdown", "Shutdown", "Terminated"),
        # All reasons for which a kubelet refuses a pod.
        *("NodeAffinity", "NodeName", "NodePorts", "NodeUnschedulable", "TaintToleration"),
        *("OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods", "OutOfnvidia.com/gpu"),
        *("SMTAlignmentError", "TopologyAffinityError", "VolumeAttachmentLimitExceeded"),
        *("AppArmor", "Forbidden", "InitContainerRestartPolicyForbidden", "NoNewPrivs", "ProcMount", "SysctlForbidden"),
        *("PodFeatureUnsupported", "PodLevelResourcesNotSupported", "SupplementalGroupsPolicyNotSupported"),
        *("PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch"),
        *("InvalidNodeInfo", "UnexpectedAdmissionError", "UnexpectedPredicateFailureType", "UnknownReason"),
    ],
)
@pytest.mark.parametrize("state", [None, WAITING, ENDED])
def test_reasons_of_the_kubelet_are_disruptions_whether_or_not_a_container_ran(reason: str, state: Any) -> None:
    assert disruption_of(a_pod(state, reason=reason, message="Pod was rejected")) == reason


@pytest.mark.parametrize(
    ("pod", "disruption"),
    [
        (a_pod(None, reason="ReasonOfTomorrow"), "ReasonOfTomorrow"),
        (a_pod(WAITING, reason="ReasonOfTomorrow"), "ReasonOfTomorrow"),
        (a_pod(None), "PodRefused"),
        (a_pod(ENDED, reason="ReasonOfTomorrow"), None),
        (a_pod(WAITING, init=ENDED), None),
        (a_pod(NO_PROGRAM), None),
        (a_pod(RESTARTED, last=ENDED), None),
        (a_pod(WAITING, phase="Pending"), None),
        (a_pod(None, phase="Running"), None),
    ],
)
def test_a_pod_that_failed_before_a_container_started_was_refused(pod: Pod, disruption: str | None) -> None:
    assert disruption_of(pod) == disruption


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"),
        ("Evicted", 'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". '),
        ("Evicted", 'Container train exceeded its local ephemeral storage limit "1Gi". '),
        ("Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "),
    ],
)
@pytest.mark.parametrize("state", [WAITING, ENDED])
def test_a_limit_of_the_pod_itself_is_no_disruption(reason: str, message: str, state: Any) -> None:
    assert disruption_of(a_pod(state, reason=reason, message=message)) is None


def test_an_eviction_for_the_sake_of_the_node_is_a_disruption() -> None:
    message = "The node was low on resource: ephemeral-storage. Container train was using 2Gi, request is 0"
    assert disruption_of(a_pod(ENDED, reason="Evicted", message=message)) == "Evicted"
