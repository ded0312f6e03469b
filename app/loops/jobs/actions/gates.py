"""Removes from a pod what Kueue adds to it: scheduling gates, which keep it from the scheduler, and a finalizer."""

import msgspec

from app.base.faultpoints import FaultPoint, reach
from app.domain.kubernetes.objects import Pod
from app.domain.queueing.workload import GATES, POD_FINALIZER
from app.k8s.api import KubeApi
from app.k8s.codec import POD as CODEC
from app.k8s.resources import POD


async def remove_gates(api: KubeApi, name: str, namespace: str, uid: str, *, request_seconds: float) -> Pod:
    """Remove Kueue's gates and finalizer from the pod, without reading it first, and return the pod.

    Raises:
        KubeConflict: another pod has this name now.
        KubeNotFound: the pod is gone.
    """
    patch = {
        "metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [POD_FINALIZER]},
        "spec": {"schedulingGates": [{"name": name, "$patch": "delete"} for name in sorted(GATES)]},
    }
    answer = await api.merge_patch(POD, name, namespace, patch=patch, strategic=True, timeout=request_seconds)
    reach(FaultPoint.POD_UNGATED)
    return CODEC.decode(msgspec.json.encode(answer.raw))
