"""Removes all objects of an installation from the cluster, including jobgate's finalizers.

Running jobs are killed, and their records in Postgres stay as they are. The caller holds the controller's lease, so
that no controller creates the objects again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata
from app.domain.status.pods.ownership import controller_of
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.codec import POD as POD_CODEC
from app.k8s.errors import KubeNotFound
from app.k8s.finalizers import delete_and_release
from app.k8s.resources import CONFIG_MAP, POD, POD_GROUPS, SERVICE, WORKLOAD
from app.loops.cache.uninstall import SetUninstaller
from app.loops.leadership.installation_record import record_name
from app.loops.leadership.lease import Leadership
from app.loops.maintenance.labelled import list_labelled, list_scopes


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
    record = record_name(installation)
    where = await list_scopes(api, namespaces)
    sets = SetUninstaller(api, leadership, installation, namespaces=where, request_seconds=request_seconds)
    await sets.remove_before_pods()
    deleted: Counter[str] = Counter()
    for namespace in where:
        for pod in await _unlabelled_pods(api, namespace, selector):
            leadership.guard(request_seconds)
            await delete_and_release(api, POD, pod, labels.EVIDENCE_FINALIZER, request_seconds=request_seconds)
            deleted[POD.kind] += 1
    for resource in (POD, WORKLOAD, *POD_GROUPS, SERVICE, CONFIG_MAP):
        finalizer = labels.ADMISSION_FINALIZER if resource is WORKLOAD else labels.EVIDENCE_FINALIZER
        for namespace in where:
            for item in [found async for found in list_labelled(api, resource, namespace, selector, OBJECT)]:
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


async def _unlabelled_pods(api: KubeApi, namespace: str | None, selector: str) -> list[Metadata]:
    """Return the pods that an anchor of the installation controls, and that a policy has kept its labels from."""
    anchors = {item.metadata.uid async for item in list_labelled(api, CONFIG_MAP, namespace, selector, OBJECT)}
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
