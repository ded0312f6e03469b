"""Deletes the objects of a job that are not pods: its anchor, Services, PodGroup and list of hosts.

The database keeps the names of the Services and ConfigMaps that the job has used, also in former sizes, until they are
gone. Up to MOST_BY_NAME objects are read by name, because kube-apiserver reads a whole namespace for a list by label.
After a restore from an older backup, the names of later sizes are unknown: the garbage collector deletes such objects,
because their owner, the anchor, is deleted. It also deletes the PodGroups that a job had before edits of its minimum,
and all of them if jobgate has lost a right to them.
"""

from contextlib import suppress

from app.base.faultpoints import FaultPoint, reach
from app.db.postgres.engine import Database
from app.db.reservations import names
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata
from app.domain.manifests import gangs
from app.domain.plan import JobIdentity
from app.domain.reservations.name_ranges import NameKind
from app.domain.status.pods.ownership import is_owned
from app.k8s.codec import OBJECT
from app.k8s.errors import KubeConflict, KubeForbidden, KubeNotFound
from app.k8s.resources import CONFIG_MAP, SERVICE, KubeResource, resource_for
from app.loops.jobs.actions.work import Work
from app.loops.leadership.own_cluster import OwnCluster

# For more objects, a list costs less: a page of it has up to 500 of them.
MOST_BY_NAME = 30
RESOURCE_OF = {NameKind.SERVICE: SERVICE, NameKind.CONFIG_MAP: CONFIG_MAP}


class Remover:
    """Deletes the objects of jobs."""

    def __init__(
        self,
        cluster: OwnCluster,
        db: Database,
    ) -> None:
        self._cluster = cluster
        self._api, self._timeout = cluster.api, cluster.timeout
        self._db = db

    async def remove(self, work: Work) -> bool:
        """Delete the objects of the job. Returns True once none is left.

        An object that the anchor of the job does not control belongs to another client, and stays.
        """
        identity = work.plan.identity
        named = await self._read(CONFIG_MAP, labels.anchor_name(identity.uid), identity.namespace)
        # The anchor may be gone already. Its recorded uids still identify the objects that it controlled.
        recorded = {*work.anchors, *work.expectations.anchors}
        anchor = [
            metadata
            for metadata in named
            if metadata.uid in recorded or metadata.labels.items() >= _own_labels(identity).items()
        ]
        anchors = {*recorded, *(metadata.uid for metadata in anchor)}
        # Without an anchor, the job owns nothing: it was paused, or it waited for its start, until its end.
        found = await self._find(work) if anchors else []
        owned = [(resource, metadata) for resource, metadata in found if is_owned(metadata, identity.uid, anchors)]
        left = [
            metadata for resource, metadata in owned if not await self._delete(resource, metadata, identity.namespace)
        ]
        if not left:
            # While objects are left, the anchor proves that they belong to the job, also to the next controller.
            left = [metadata for metadata in anchor if not await self._delete(CONFIG_MAP, metadata, identity.namespace)]
        await self._cluster.verify()
        reach(FaultPoint.OBJECTS_REMOVED)
        work.expectations.objects_gone = not left
        work.expectations.revision += not left
        return not left

    async def _find(self, work: Work) -> list[tuple[KubeResource, Metadata]]:
        """Return the objects that may belong to the job. Its anchor may be among them."""
        identity = work.plan.identity
        ranges = await names.of_objects(self._db, identity.uid, RESOURCE_OF)
        wanted = [(RESOURCE_OF[NameKind(name_range.kind)], name_range) for name_range in ranges]
        group = await self._find_group(work)
        if sum(name_range.count for _, name_range in wanted) <= MOST_BY_NAME:
            return group + [
                (resource, metadata)
                for resource, name_range in wanted
                for name in name_range.names
                for metadata in await self._read(resource, name, identity.namespace)
            ]
        return group + [
            (resource, metadata)
            for resource in dict.fromkeys(resource for resource, _ in wanted)
            for metadata in await self._list(resource, identity)
        ]

    async def _find_group(self, work: Work) -> list[tuple[KubeResource, Metadata]]:
        """Return the PodGroup of the job, if it has one that jobgate may read."""
        gang = work.plan.gang
        if gang is None or gang.api is None:
            return []
        resource = resource_for(gang.api_version, gangs.KIND)
        with suppress(KubeForbidden):
            found = await self._read(resource, gangs.group_name(work.plan), work.plan.identity.namespace)
            return [(resource, metadata) for metadata in found]
        return []

    async def _read(self, resource: KubeResource, name: str, namespace: str) -> list[Metadata]:
        """Return the object with this name, if there is one."""
        with suppress(KubeNotFound):
            return [(await self._api.get(resource, name, namespace, codec=OBJECT, timeout=self._timeout)).metadata]
        return []

    async def _list(self, resource: KubeResource, identity: JobIdentity) -> list[Metadata]:
        selector = ",".join(f"{key}={value}" for key, value in _own_labels(identity).items())
        found = await self._api.list_all(resource, identity.namespace, codec=OBJECT, label_selector=selector)
        return [item.metadata for item in found]

    async def _delete(self, resource: KubeResource, found: Metadata, namespace: str) -> bool:
        """Delete an object. Returns False if it remains, or if another one has its name.

        A PodGroup that jobgate may not delete counts as gone.
        """
        self._cluster.guard()
        try:
            answer = await self._api.delete(resource, found.name, namespace, uid=found.uid, timeout=self._timeout)
        except KubeNotFound:
            return True
        except KubeConflict:
            return False
        except KubeForbidden:
            if resource.kind != gangs.KIND:
                raise
            # The garbage collector deletes it with the anchor.
            return True
        # An object that a finalizer holds is answered with the time of its deletion. The answer for one that is gone is
        # a Status, or the object as it was.
        return OBJECT.decode(answer).metadata.deletion_timestamp is None


def _own_labels(identity: JobIdentity) -> dict[str, str]:
    """Return the labels that every object of the job has, and no object of another job of any installation."""
    return {labels.INSTALLATION: identity.installation, labels.JOB_UID: identity.uid}
