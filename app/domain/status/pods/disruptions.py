"""Determines whether the cluster, and not the program of a pod, ended the pod.

    the condition DisruptionTarget, a reason of the kubelet or the node controller    a disruption
    the node refused the pod before a container started, for whatever reason          a disruption
    a limit of the pod itself: its deadline, or the space that it may use             a failure

Another placement or a later try may cure a disruption. The disruption limit ends a replica for which it never does.
"""

import re
from typing import Final

from app.domain.kubernetes.objects import Pod
from app.domain.status.pods.containers import has_started, init_statuses, main_statuses
from app.domain.vocabulary import Reason

# The values of status.reason with which the kubelet or the node controller ends a pod that may have run.
_ENDED_BY_NODE: Final = frozenset({"Evicted", "Preempting", "NodeLost", "NodeShutdown", "Shutdown", "Terminated"})
# Those with which the kubelet refuses a pod: of its admission handlers in Kubernetes 1.37 and before. After a restart,
# a kubelet checks pods again that have run already.
_REFUSED_BY_NODE: Final = frozenset(
    {
        # The scheduler's checks, which the kubelet repeats.
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeUnschedulable",
        "TaintToleration",
        # What the node cannot give.
        "SMTAlignmentError",
        "TopologyAffinityError",
        "VolumeAttachmentLimitExceeded",
        # What the node does not support or allow. Another one may.
        "AppArmor",
        "Forbidden",
        "InitContainerRestartPolicyForbidden",
        "NoNewPrivs",
        "PodFeatureUnsupported",
        "PodLevelResourcesNotSupported",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "ProcMount",
        "SupplementalGroupsPolicyNotSupported",
        "SysctlForbidden",
        # Errors of the node.
        "InvalidNodeInfo",
        "UnexpectedAdmissionError",
        "UnexpectedPredicateFailureType",
        "UnknownReason",
    }
)
# The kubelet appends the resource that its node lacks, as in OutOfcpu or OutOfmemory.
_OUT_OF: Final = "OutOf"
# activeDeadlineSeconds of the pod.
_DEADLINE: Final = "DeadlineExceeded"
# The messages of an eviction because the pod uses more local storage than its own limits allow.
_OWN_LIMIT: Final = re.compile(
    r"^Usage of EmptyDir volume .* exceeds the limit|exceeded its local ephemeral storage limit"
    r"|^Pod ephemeral local storage usage exceeds the total limit of containers"
)


def disruption_of(pod: Pod) -> str | None:
    """Return the reason for which the cluster disrupted the pod; None if it did not."""
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget" and condition.status == "True":
            return condition.reason or condition.type
    reason = pod.status.reason
    if reason == "Evicted" and _OWN_LIMIT.search(pod.status.message):
        return None
    if reason in _ENDED_BY_NODE or reason in _REFUSED_BY_NODE or reason.startswith(_OUT_OF):
        return reason
    return (reason or Reason.POD_REFUSED) if _was_refused(pod) else None


def _was_refused(pod: Pod) -> bool:
    """Return whether the pod has failed, although none of its containers ever started.

    A container that the runtime could not start has ended, with the reason StartError.
    """
    if pod.status.phase != "Failed" or pod.status.reason == _DEADLINE:
        return False
    return not any(has_started(status) for status in (*init_statuses(pod), *main_statuses(pod)))
