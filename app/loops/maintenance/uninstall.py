"""Removes all objects of an installation from the cluster, including jobgate's finalizers.

Running jobs are killed, and their records in Postgres stay as they are. The caller holds the controller's lease, so
that no controller creates the objects again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata, Object
from app.domain.status.pods.ownership import controller_of
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.codec import POD as POD_CODEC
from app.k8s.errors import KubeForbidden, KubeNotFound
from app.k8s.finalizers import delete_and_release
from app.k8s.resources import CONFIG_MAP, NAMESPACE, POD, POD_GROUPS, SERVICE, WORKLOAD, KubeResource
from app.loops.cache.uninstall import SetUninstaller
from app.loops.leadership.identity import installation_record
from app.loops.leadership.lease import Leadership


async def uninstall(
    api: KubeApi,
    leadership: Leadership,
    installation: str,
    *,
    namespaces: Sequence[str],
    system_namespace: str,
    request_seconds: float,
) -> Mapping[str, int]:
    """Delete pods, Workloads, anchors and then volumes, and count the deleted objects by kind.

    No `namespaces` means all.

    The ConfigMap of the installation comes last, by its name: an installation that is limited to namespaces may list
    nothing in the system namespace.

    Raises:
        KubeError: the cluster did not answer; call it again.
        LeaseLost: the lease could not be kept; call it again.
    """
    selector = f"{labels.INSTALLATION}={installation}"
    record = installation_record(installation)
    places = await _places(api, namespaces)
    sets = SetUninstaller(api, leadership, installation, namespaces=places, request_seconds=request_seconds)
    await sets.remove_before_pods()
    deleted: Counter[str] = Counter()
    for namespace in places:
        for pod in await _unlabelled_pods(api, namespace, selector):
            leadership.guard(request_seconds)
            await delete_and_release(api, POD, pod, labels.EVIDENCE_FINALIZER, request_seconds=request_seconds)
            deleted[POD.kind] += 1
    for resource in (POD, WORKLOAD, *POD_GROUPS, SERVICE, CONFIG_MAP):
        finalizer = labels.ADMISSION_FINALIZER if resource is WORKLOAD else labels.EVIDENCE_FINALIZER
        for namespace in places:
            for item in await _list(api, resource, namespace, selector):
                if (resource, item.metadata.name) == (CONFIG_MAP, record):
                    continue
                # A removal can take longer than the lease. Without the lease, a controller may create objects again.
                leadership.guard(request_seconds)
                await delete_and_release(api, resource, item.metadata, finalizer, request_seconds=request_seconds)
                deleted[resource.kind] += 1
    await sets.remove_after_pods()
    leadership.guard(request_seconds)
    with suppress(KubeNotFound):
        found = await api.get(CONFIG_MAP, record, system_namespace, codec=OBJECT, timeout=request_seconds)
        await delete_and_release(
            api, CONFIG_MAP, found.metadata, labels.EVIDENCE_FINALIZER, request_seconds=request_seconds
        )
        deleted[CONFIG_MAP.kind] += 1
    return deleted + sets.deleted


async def _places(api: KubeApi, namespaces: Sequence[str]) -> Sequence[str | None]:
    """Return the namespaces in which objects can be, or None for all of the cluster.

    With a namespace that was deleted, its objects are gone, and also the role that permits to list them.
    """
    if not namespaces:
        return [None]
    try:
        present = {item.metadata.name for item in await api.list_all(NAMESPACE, codec=OBJECT)}
    except KubeForbidden:
        return namespaces
    return [name for name in namespaces if name in present]


async def _list(api: KubeApi, resource: KubeResource, namespace: str | None, selector: str) -> list[Object]:
    """Return all objects with the label. An API that the cluster does not serve has none."""
    try:
        return await api.list_all(resource, namespace, codec=OBJECT, label_selector=selector)
    except KubeNotFound:
        return []
    except KubeForbidden:
        # The rights to Workloads are optional, and without them none was made.
        if resource is WORKLOAD:
            return []
        raise


async def _unlabelled_pods(api: KubeApi, namespace: str | None, selector: str) -> list[Metadata]:
    """Return the pods that an anchor of the installation controls, and that a policy has kept its labels from."""
    anchors = {item.metadata.uid for item in await _list(api, CONFIG_MAP, namespace, selector)}
    found: list[Metadata] = []
    token = ""
    while anchors:
        # Page by page: most pods of the cluster are of other clients.
        page = await api.list_page(POD, namespace, codec=POD_CODEC, continue_token=token)
        held = (pod.metadata for pod in page.items if labels.EVIDENCE_FINALIZER in pod.metadata.finalizers)
        found += [
            pod
            for pod in held
            if (owner := controller_of(pod)) is not None
            and owner.uid in anchors
            and f"{labels.INSTALLATION}={pod.labels.get(labels.INSTALLATION)}" != selector
        ]
        token = page.continue_token
        if not token:
            break
    return found
