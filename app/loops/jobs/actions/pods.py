"""Deletes and releases pods of jobs, and confirms that pods are gone."""

from contextlib import suppress

import msgspec
import structlog

from app.base.faultpoints import FaultPoint, reach
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata, Pod
from app.domain.manifests.metadata import job_labels
from app.domain.reconcile.actions import ConfirmGone, DeletePod, DiscardObject, ReleasePod
from app.k8s.codec import OBJECT
from app.k8s.codec import POD as POD_CODEC
from app.k8s.errors import KubeConflict, KubeNotFound
from app.k8s.finalizers import delete_and_release, release
from app.k8s.resources import POD, resource_for
from app.loops.jobs.actions.work import Work
from app.loops.jobs.evidence.whole_logs import WholeLogs
from app.loops.jobs.mirror import Mirror
from app.loops.leadership.own_cluster import OwnCluster

log = structlog.get_logger(__name__)


class PodActions:
    """Carries out actions on existing pods."""

    def __init__(
        self,
        cluster: OwnCluster,
        mirror: Mirror,
        whole_logs: WholeLogs,
    ) -> None:
        self._cluster = cluster
        self._api, self._timeout = cluster.api, cluster.timeout
        self._mirror = mirror
        self._whole_logs = whole_logs

    async def delete(self, work: Work, action: DeletePod) -> bool:
        reach(FaultPoint.POD_BEFORE_DELETE)
        self._cluster.guard()
        # The pod is gone, or a later pod has its name, which the uid protects.
        with suppress(KubeNotFound, KubeConflict):
            answer = await self._api.delete(
                POD,
                action.name,
                work.plan.identity.namespace,
                uid=action.uid,
                # The kubelet of a lost node cannot confirm the end of the pod, so the pod would stay.
                grace_period=0 if action.force else None,
                timeout=self._timeout,
            )
            self._adopt_deleting(POD_CODEC.decode(answer), action.uid)
        reach(FaultPoint.POD_DELETED)
        return True

    def _adopt_deleting(self, pod: Pod, uid: str) -> None:
        """Let the mirror know that a pod terminates, so that a reconcile before the watch does not delete it again."""
        metadata = pod.metadata
        # With the finalizer, the object existed after the delete. If it is gone since, the watch has said so, and the
        # reflector refuses it.
        if metadata.uid == uid and metadata.deletion_timestamp and labels.EVIDENCE_FINALIZER in metadata.finalizers:
            self._mirror.adopt(pod)

    async def release(self, work: Work, action: ReleasePod) -> bool:
        """Remove jobgate's finalizer from the pod and keep all others, once its logs are kept whole.

        A concurrent change of the pod does not matter.
        """
        namespace = work.plan.identity.namespace
        known = self._mirror.pod(action.uid)
        if known is not None and not await self._whole_logs.may_release(known):
            return False
        # The patch tests the uid and the finalizer, so an outdated state of the pod makes it fail without effect.
        if known is not None and await self._without_finalizer(known):
            reach(FaultPoint.POD_RELEASED)
            return True
        with suppress(KubeNotFound):
            pod = await self._api.get(POD, action.name, namespace, codec=POD_CODEC, timeout=self._timeout)
            # A pod of the next attempt may have the same name. Its finalizer must stay.
            if pod.metadata.uid != action.uid:
                return True
            if not await self._without_finalizer(pod):
                return False
        reach(FaultPoint.POD_RELEASED)
        return True

    async def _without_finalizer(self, pod: Pod) -> bool:
        self._cluster.guard()
        finalizer = labels.EVIDENCE_FINALIZER
        return await release(self._api, POD, pod.metadata, finalizer, request_seconds=self._timeout)

    async def confirm_gone(self, work: Work, action: ConfirmGone) -> bool:
        pod: Pod | None
        try:
            pod = await self._api.get(
                POD, action.name, work.plan.identity.namespace, codec=POD_CODEC, timeout=self._timeout
            )
        except KubeNotFound:
            pod = None
        # Another cluster would also answer that there is no such pod.
        await self._cluster.verify()
        # The pod exists although the mirror does not have it: a client has removed its labels, or the watch is late.
        if pod is not None and pod.metadata.uid == action.uid:
            self._adopt(work, await self._restore_labels(work, pod))
        else:
            work.expectations.unfollowed.discard(action.uid)
            work.expectations.gone.add(action.uid)
            work.expectations.revision += 1
        return True

    def _adopt(self, work: Work, pod: Pod) -> None:
        """Let the mirror have the pod, also if a policy of the cluster does not let it have the job's labels."""
        uid, unfollowed = pod.metadata.uid, work.expectations.unfollowed
        before = self._mirror.pod(uid)
        self._mirror.adopt(pod)
        if _has_labels(work, pod):
            unfollowed.discard(uid)
        # The mirror reports no change of such a pod, because it does not know its job.
        elif uid not in unfollowed or before is None or before.metadata.version != pod.metadata.version:
            unfollowed.add(uid)
            work.expectations.revision += 1

    async def _restore_labels(self, work: Work, pod: Pod) -> Pod:
        """Restore the job's labels if another client removed them. The mirror finds the pod by these labels."""
        identity = work.plan.identity
        wanted = job_labels(identity)
        if _has_labels(work, pod):
            return pod
        log.warning("pod.labels_put_back", pod=pod.metadata.name)
        # The uid makes the API server refuse the patch if a later pod has the name.
        patch = {"metadata": {"uid": pod.metadata.uid, "labels": wanted}}
        self._cluster.guard()
        patched = await self._api.merge_patch(
            POD, pod.metadata.name, identity.namespace, patch=patch, timeout=self._timeout
        )
        return POD_CODEC.decode(msgspec.json.encode(patched.raw))

    async def discard(self, work: Work, action: DiscardObject) -> bool:
        """Delete and release an object that the cluster has changed while it created it.

        Returns False while the object exists: the containers of a pod run until the end of its grace period.
        """
        altered, namespace = action.altered, work.plan.identity.namespace
        metadata = Metadata(name=altered.name, namespace=namespace, uid=altered.uid, finalizers=altered.finalizers)
        resource, finalizer = resource_for(altered.api_version, altered.kind), labels.EVIDENCE_FINALIZER
        self._cluster.guard()
        await delete_and_release(self._api, resource, metadata, finalizer, request_seconds=self._timeout)
        with suppress(KubeNotFound):
            found = await self._api.get(resource, altered.name, namespace, codec=OBJECT, timeout=self._timeout)
            if found.metadata.uid == altered.uid:
                return False
        await self._cluster.verify()
        log.warning("object.discarded", kind=altered.kind, name=altered.name)
        work.expectations.removed(altered.uid)
        return True


def _has_labels(work: Work, pod: Pod) -> bool:
    return pod.metadata.labels.items() >= job_labels(work.plan.identity).items()
